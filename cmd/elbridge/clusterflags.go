package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// clusterFlags name the cluster whose pods are read.
type clusterFlags struct {
	kubeconfig, eks, name string
	annotations           []string
}

func (c *clusterFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig file of the cluster; its current context is used")
	f.StringVar(&c.eks, "eks-cluster", "", "name of an EKS cluster, reached as the AWS identity in use")
	f.StringVar(&c.name, "cluster-name", "", "the cluster's name in events (default: the EKS cluster's, or the one that the rules name)")
	f.StringSliceVar(&c.annotations, "annotations", nil, "the webhook's allow-list of annotations, where rules select on them")
	cmd.MarkFlagsMutuallyExclusive("kubeconfig", "eks-cluster")
}

// given reports whether a cluster was asked for.
func (c *clusterFlags) given() bool { return c.kubeconfig != "" || c.eks != "" }

// orDefault takes the cluster that kubectl would talk to, where none was asked for.
func (c *clusterFlags) orDefault(lookup func(string) string) {
	if c.given() {
		return
	}
	if path := lookup("KUBECONFIG"); path != "" {
		c.kubeconfig = path
		return
	}
	if home := lookup("HOME"); home != "" {
		if path := filepath.Join(home, ".kube", "config"); exists(path) {
			c.kubeconfig = path
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (c *clusterFlags) allowList() podevent.AllowList { return podevent.AllowList(c.annotations) }

// clusterName is the cluster's name in events: what was said, else the EKS
// cluster's, else the only one that rules pin.
func (c *clusterFlags) clusterName(bs []binding.Binding) (string, error) {
	switch {
	case c.name != "":
		return c.name, nil
	case c.eks != "":
		return c.eks, nil
	}
	names := map[string]bool{}
	for i := range bs {
		for _, n := range bs[i].Pattern.Selection().Clusters {
			names[n] = true
		}
	}
	if len(names) == 1 {
		for n := range names {
			return n, nil
		}
	}
	var known []string
	for n := range names {
		known = append(known, n)
	}
	if len(known) == 0 {
		return "", errors.New("--cluster-name: say the cluster's name in events; the rules name none")
	}
	return "", fmt.Errorf("--cluster-name: say which of the clusters it is that the rules name: %s", strings.Join(sortedStrings(known), ", "))
}

// client reads the cluster.
func (c *clusterFlags) client(sdk aws.Config, name string) (*cluster.Client, error) {
	if !c.given() {
		return nil, errors.New("no cluster: give --kubeconfig or --eks-cluster, or set KUBECONFIG")
	}
	cfg := cluster.Config{Name: name, Kubeconfig: c.kubeconfig}
	if c.eks != "" {
		cfg.EKS = &cluster.EKS{Name: c.eks}
	}
	d := &cluster.Dialer{AWS: sdk, EKS: eks.NewFromConfig(sdk), UserAgent: "elbridge/" + version, Now: time.Now}
	return d.Client(cfg), nil
}
