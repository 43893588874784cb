package cluster

import (
	"fmt"
	"time"
)

// The arguments of each part: what makes it run on loopback without root, what
// tells one cluster from another, and what is needed to be like a cluster in the
// field. The rest is left at Kubernetes' defaults.

func (c *Cluster) args(part Part) []string {
	args := map[Part]func() []string{
		Etcd:              c.etcdArgs,
		APIServer:         c.apiServerArgs,
		ControllerManager: c.controllerManagerArgs,
		Scheduler:         c.schedulerArgs,
	}[part]()
	return append(args, c.config.ExtraArgs[part]...)
}

func (c *Cluster) etcdArgs() []string {
	client, peer := c.url(Etcd), fmt.Sprintf("https://127.0.0.1:%d", c.peerPort.number)
	return []string{
		"--name=" + c.Name,
		"--data-dir=" + c.path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + c.Name + "=" + peer,
		"--socket-reuse-port",
		"--cert-file=" + c.pki("etcd-server.crt"),
		"--key-file=" + c.pki("etcd-server.key"),
		"--client-cert-auth",
		"--trusted-ca-file=" + c.pki("etcd-ca.crt"),
		"--peer-cert-file=" + c.pki("etcd-server.crt"),
		"--peer-key-file=" + c.pki("etcd-server.key"),
		"--peer-client-cert-auth",
		"--peer-trusted-ca-file=" + c.pki("etcd-ca.crt"),
		"--unsafe-no-fsync", // the data need not survive the machine
		"--log-level=warn",
	}
}

func (c *Cluster) apiServerArgs() []string {
	args := []string{
		"--etcd-servers=" + c.url(Etcd),
		"--etcd-cafile=" + c.pki("etcd-ca.crt"),
		"--etcd-certfile=" + c.pki("etcd-client.crt"),
		"--etcd-keyfile=" + c.pki("etcd-client.key"),
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",               // endpoints must not be loopback addresses
		"--kubelet-preferred-address-types=ExternalDNS", // no kubelet listens: logs and exec are refused, no name is looked up
		"--client-ca-file=" + c.pki("ca.crt"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + c.pki("sa.key"),
		"--service-account-signing-key-file=" + c.pki("sa.key"),
		"--service-cluster-ip-range=" + c.config.ServiceCIDR.String(),
		"--allow-privileged",
		"--shutdown-watch-termination-grace-period=1s", // else it waits for watches until it is killed
	}
	if w := c.config.TokenWebhook; w != nil {
		args = append(args,
			"--authentication-token-webhook-config-file="+c.path("token-webhook.kubeconfig"),
			"--authentication-token-webhook-version=v1",
			"--authentication-token-webhook-cache-ttl="+w.CacheTTL.String())
	}
	if c.config.Audit {
		args = append(args,
			"--audit-policy-file="+c.path("audit-policy.yaml"),
			"--audit-log-path="+c.logPath("audit"),
			"--audit-log-maxsize=100", "--audit-log-maxbackup=1") // megabytes, files
	}
	return append(args, c.servingArgs(APIServer)...)
}

func (c *Cluster) controllerManagerArgs() []string {
	args := []string{
		"--service-account-private-key-file=" + c.pki("sa.key"),
		"--root-ca-file=" + c.pki("ca.crt"),
		"--use-service-account-credentials", // so that user names in admission and audit are as in the field
		"--flex-volume-plugin-dir=" + c.path("flex"),
	}
	monitor := c.config.Nodes
	for flag, value := range map[string]time.Duration{
		"--node-monitor-grace-period": monitor.GracePeriod,
		"--node-monitor-period":       monitor.Period,
		"--node-startup-grace-period": monitor.StartupGrace,
	} {
		if value != 0 {
			args = append(args, flag+"="+value.String())
		}
	}
	return append(append(args, c.clientArgs(ControllerManager)...), c.servingArgs(ControllerManager)...)
}

func (c *Cluster) schedulerArgs() []string {
	return append(c.clientArgs(Scheduler), c.servingArgs(Scheduler)...)
}

// clientArgs are those of a part that is a client of the API server.
func (c *Cluster) clientArgs(part Part) []string {
	kubeconfig := c.path(string(part) + ".kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false",
		// 20 and 30 by default, 50 and 100 for the scheduler: a Deployment of 200
		// pods would take ten seconds
		"--kube-api-qps=200", "--kube-api-burst=400",
	}
}

// servingArgs are those of a part that serves HTTPS on its reserved port.
func (c *Cluster) servingArgs(part Part) []string {
	return []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.ports[part].number),
		"--permit-port-sharing",
		"--tls-cert-file=" + c.pki("server.crt"),
		"--tls-private-key-file=" + c.pki("server.key"),
		"--profiling=false",
	}
}
