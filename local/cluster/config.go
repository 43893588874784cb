package cluster

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/elbridge/elbridge/local/vpc"
)

// Config says how a cluster is to be. Name and Dir are required.
type Config struct {
	// Name is the cluster's name in kubeconfigs and messages: a DNS label.
	Name string
	// Dir holds its data, keys and kubeconfig. A cluster started again in the
	// same folder has the same objects and the same authorities.
	Dir string
	// LogDir holds one log file a part; Dir/logs if empty.
	LogDir string
	// Binaries are the programs; EnsureBinaries finds or builds them if nil.
	Binaries Binaries
	// Progress is told how a build advances; nothing if nil.
	Progress io.Writer
	// APIServerPort is the API server's port on 127.0.0.1; 0 chooses a free one.
	APIServerPort int
	// ServiceCIDR holds the cluster IPs, a part of 127.0.0.0/8; vpc.ServiceCIDR
	// if zero. Two clusters whose Services are served on one machine need two.
	ServiceCIDR netip.Prefix
	// TokenWebhook checks the bearer tokens that are not ServiceAccounts'.
	TokenWebhook *TokenWebhook
	// Nodes sets how the node controller judges nodes.
	Nodes NodeMonitor
	// Audit writes LogDir/audit.log: who changed what and when, bodies left out.
	Audit bool
	// ExtraArgs are appended to a part's arguments, so they win over ours.
	ExtraArgs map[Part][]string
}

// TokenWebhook is a service that answers TokenReviews (authentication.k8s.io/v1).
type TokenWebhook struct {
	URL      string        // http or https, on loopback
	CA       []byte        // PEM, for https
	CacheTTL time.Duration // how long an answer is kept; 10 s if zero
}

// NodeMonitor holds the node controller's times; zero means Kubernetes' own
// default (grace 50 s, period 5 s, start-up grace 60 s).
type NodeMonitor struct {
	GracePeriod  time.Duration // without a renewed lease until a node is declared unreachable
	Period       time.Duration // between looks
	StartupGrace time.Duration // the grace period of a node that is new
}

var nameForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// complete checks the configuration, all faults in one error, and fills in
// defaults.
func (c Config) complete() (Config, error) {
	var faults []error
	if !nameForm.MatchString(c.Name) {
		faults = append(faults, fmt.Errorf("name %q: want a DNS label", c.Name))
	}
	if c.Dir == "" {
		faults = append(faults, errors.New("no folder: want one for data and keys"))
	}
	if c.APIServerPort < 0 || c.APIServerPort > 65535 {
		faults = append(faults, fmt.Errorf("API server port %d: want 1 to 65535, or 0 for a free one", c.APIServerPort))
	}
	if !c.ServiceCIDR.IsValid() {
		c.ServiceCIDR = vpc.ServiceCIDR
	}
	if !c.ServiceCIDR.Addr().IsLoopback() || c.ServiceCIDR.Bits() < 12 || c.ServiceCIDR.Bits() > 28 {
		faults = append(faults, fmt.Errorf("service range %s: want a /12 to /28 of 127.0.0.0/8", c.ServiceCIDR))
	}
	if w := c.TokenWebhook; w != nil {
		completed, err := w.complete()
		if err != nil {
			faults = append(faults, err)
		}
		c.TokenWebhook = completed
	}
	if len(faults) > 0 {
		return c, fmt.Errorf("cluster: %w", errors.Join(faults...))
	}
	var err error
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return c, err
	}
	if c.LogDir == "" {
		c.LogDir = filepath.Join(c.Dir, "logs")
	}
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	for _, dir := range []string{c.Dir, c.LogDir, filepath.Join(c.Dir, "pki")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return c, fmt.Errorf("folder of cluster %s: %w", c.Name, err)
		}
	}
	return c, nil
}
