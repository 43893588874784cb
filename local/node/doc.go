// Package node is the local stack's kubelet and kube-proxy for a few nodes: it
// registers them, renews their leases, runs every pod that is bound to them as
// something that really listens, and writes its status through the API server and
// its admission as a kubelet would.
//
// A container whose image maps to a local binary runs as a process of its own.
// Any other is an HTTP server within the agent that listens on the container's
// declared ports and says which pod it is. Pods publish addresses like those of a
// VPC and listen on the loopback addresses behind them (package vpc); Services are
// proxied on their cluster IPs. Nothing is sent to any other address.
//
// # Built-in servers
//
// /healthz and /livez answer 200, /readyz (and the path of the readiness probe)
// 503 until the server is ready; every other path answers with a JSON object: pod,
// uid, address, headers and so on. ?delay=200ms waits first, ?status=500 answers
// with that status. A port named https, or probed by HTTPS, speaks TLS. Commands
// and arguments are not run, but "sleep N" ends after N seconds.
//
// Annotations on the pod steer them; durations are Go durations:
//
//	elbridge.local/start-delay: 2s       before containers start, as an image pull takes
//	elbridge.local/ready-after: 3s       readiness paths answer 503 that long
//	elbridge.local/term-delay: 5s        goes on serving that long after SIGTERM
//	elbridge.local/ignore-sigterm: "true"  serves until it is killed
//	elbridge.local/exit-after: 1s        ends by itself
//	elbridge.local/exit-code: "1"        with this code (default 0)
//
// # Processes
//
// Arguments and variables are expanded as Kubernetes does. Then mount paths in
// them become the folders of the pod, and published addresses of the pod the
// loopback addresses behind them, since a process has neither a file system nor a
// network of its own here. Each process also gets POD_IP (unless the pod declares
// it), LISTEN_HOST and ELBRIDGE_LOCAL_LISTEN (the loopback address to listen on),
// ELBRIDGE_LOCAL_PUBLISHED (the address it is known by), ELBRIDGE_LOCAL_MOUNTS (a
// JSON object from mount path to folder) and KUBERNETES_SERVICE_HOST and _PORT.
//
// # What is not here
//
// Probes by exec always pass, by gRPC they connect only. Resources are not
// enforced. No logs, exec or port-forward through the API server: the output of a
// process is in the state folder, where the list of pods says.
package node
