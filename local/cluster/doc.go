// Package cluster runs real Kubernetes control planes on loopback: etcd,
// kube-apiserver, kube-controller-manager and kube-scheduler, each in a process
// of its own, without root, as many clusters side by side as there are names
// and folders.
//
// It builds the programs when they are missing (local/kube is their module),
// makes keys and certificates, starts and stops whole clusters or single parts,
// and hands out clients for any user name. It runs no pods: that is the node
// agent's work (local/node).
//
// Linux only: the kernel ends the programs when the process that started them
// dies (PR_SET_PDEATHSIG), so that nothing is left behind.
package cluster
