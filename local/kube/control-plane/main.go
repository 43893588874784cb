// Command control-plane is etcd, kube-apiserver, kube-controller-manager and
// kube-scheduler in one binary: the name it is called by chooses the part, as
// busybox does. One link instead of four keeps the first build short.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	part := filepath.Base(os.Args[0])
	commands := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	}
	if part == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	newCommand, known := commands[part]
	if !known {
		fmt.Fprintf(os.Stderr, "control-plane: called as %q: want etcd, kube-apiserver, kube-controller-manager or kube-scheduler\n", part)
		os.Exit(2)
	}
	os.Exit(cli.Run(newCommand()))
}
