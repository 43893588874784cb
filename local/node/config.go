package node

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"github.com/elbridge/elbridge/local/vpc"
)

// Config is all that Run needs. The zero value of an optional field is its
// default. It can be written as JSON but for REST, Started and Log.
type Config struct {
	// Kubeconfig is a file; it is not read if REST is set. It serves the Service
	// proxy, and every node that has none of its own.
	Kubeconfig string
	REST       *rest.Config `json:"-"`
	// Nodes defaults to DefaultNodes.
	Nodes []Spec
	// Images maps image names, with or without tag, to local binaries.
	Images map[string]Image
	// StateDir holds pod folders and logs; it is created.
	StateDir string
	// Listen is the control API's address, on loopback. Default 127.0.0.1:0.
	Listen string

	AddressCooldown time.Duration // a released address rests that long; default 30s as the VPC CNI, negative is none
	LeasePeriod     time.Duration // between renewals; default 10s
	StatusPeriod    time.Duration // between reports of an unchanged node; default 5m
	RestartBackoff  time.Duration // first wait of a crashing container; default 10s, doubled up to 5m
	MinGrace        time.Duration // every container has that long to end; default 2s as the kubelet
	VolumePeriod    time.Duration // between looks at volumes' sources; default 60s
	StatusWriters   int           // status writes under way at a time, over all nodes; default 32

	// Started is called once the nodes are registered and the control API listens.
	Started func(control string) `json:"-"`
	Log     *slog.Logger         `json:"-"`
}

// Spec is one node.
type Spec struct {
	Name       string
	Zone       string // eu-west-1a
	ZoneID     string // euw1-az1
	ProviderID string // aws:///eu-west-1a/i-0123456789abcdef0
	Address    netip.Addr
	PodRange   netip.Prefix // IPv4; the second family follows from it
	Pods       int64        // how many it takes; default 500

	// Kubeconfig or REST are the node's own, so that it writes as itself.
	Kubeconfig string
	REST       *rest.Config `json:"-"`
}

// Image is what an image name stands for on this machine.
type Image struct {
	Path string            // of the binary
	Env  map[string]string // beside what the pod declares, which wins
	Dir  string            // working directory; default the pod's folder
}

// DefaultNodes are three nodes in three zones.
func DefaultNodes() []Spec {
	var all []Spec
	for i, letter := range "abc" {
		zone := "eu-west-1" + string(letter)
		all = append(all, Spec{
			Name:       "node-" + string(letter),
			Zone:       zone,
			ZoneID:     fmt.Sprintf("euw1-az%d", i+1),
			ProviderID: fmt.Sprintf("aws:///%s/i-%016x%c", zone, 0, letter),
			Address:    netip.AddrFrom4([4]byte{10, 64, 0, byte(11 + i)}),
			PodRange:   netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 64, byte(1 + i), 0}), 24),
		})
	}
	return all
}

func (c Config) withDefaults() Config {
	if len(c.Nodes) == 0 {
		c.Nodes = DefaultNodes()
	}
	c.Nodes = append([]Spec(nil), c.Nodes...)
	for i := range c.Nodes {
		c.Nodes[i].Pods = cmp.Or(c.Nodes[i].Pods, 500)
	}
	c.Listen = cmp.Or(c.Listen, "127.0.0.1:0")
	c.AddressCooldown = cmp.Or(c.AddressCooldown, 30*time.Second)
	c.LeasePeriod = cmp.Or(c.LeasePeriod, 10*time.Second)
	c.StatusPeriod = cmp.Or(c.StatusPeriod, 5*time.Minute)
	c.RestartBackoff = cmp.Or(c.RestartBackoff, 10*time.Second)
	c.MinGrace = cmp.Or(c.MinGrace, 2*time.Second)
	c.VolumePeriod = cmp.Or(c.VolumePeriod, time.Minute)
	c.StatusWriters = cmp.Or(c.StatusWriters, 32)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// check returns every fault at once.
func (c Config) check() error {
	var errs []error
	if c.Kubeconfig == "" && c.REST == nil {
		errs = append(errs, errors.New("no API server: want Kubeconfig or REST"))
	}
	if c.StateDir == "" || !filepath.IsAbs(c.StateDir) {
		errs = append(errs, fmt.Errorf("state folder %q: want an absolute path", c.StateDir))
	}
	if host, _, err := net.SplitHostPort(c.Listen); err != nil || !isLoopback(host) {
		errs = append(errs, fmt.Errorf("control API %q: want a loopback address and port such as 127.0.0.1:0", c.Listen))
	}
	for name, image := range c.Images {
		if info, err := os.Stat(image.Path); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			errs = append(errs, fmt.Errorf("image %s: %q is not an executable file", name, image.Path))
		}
	}
	for _, n := range c.Nodes {
		if n.Name == "" || n.Zone == "" {
			errs = append(errs, fmt.Errorf("node %q: want a name and a zone", n.Name))
		}
		if !vpc.PodCIDR.Contains(n.Address) || !vpc.PodCIDR.Overlaps(n.PodRange) || n.PodRange.Contains(n.Address) {
			errs = append(errs, fmt.Errorf("node %q: address %s, pod range %s: want both in %s, the address outside the range", n.Name, n.Address, n.PodRange, vpc.PodCIDR))
		}
	}
	return errors.Join(errs...)
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
