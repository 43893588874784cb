// Package eks is the local cloud's EKS: the clusters of the local stack, as
// DescribeCluster shows them, and the access entries that say which Kubernetes
// user a principal is.
package eks

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
)

// Cluster is a cluster as its creator describes it.
type Cluster struct {
	Name     string `json:"name"`
	Account  string `json:"account"`
	Region   string `json:"region"`
	Endpoint string `json:"endpoint"` // https URL
	CA       []byte `json:"ca"`       // PEM
	Version  string `json:"version"`  // as "1.37"
	Status   string `json:"status"`   // default ACTIVE
	IPFamily string `json:"ipFamily"` // default ipv4

	PublicAccess bool   `json:"publicAccess"`
	VPC          string `json:"vpc"`
	// Access maps a principal ARN (of a role or user) to who it is in the cluster.
	Access map[string]AccessEntry `json:"access"`
}

// AccessEntry is a Kubernetes identity. {{SessionName}} in the user name is
// the session of an assumed role.
type AccessEntry struct {
	Username string   `json:"username"`
	Groups   []string `json:"groups"`
}

// Service holds the clusters of all accounts and regions.
type Service struct {
	clock    core.Clock
	mu       sync.RWMutex
	clusters map[key]stored
}

type key struct {
	core.Scope
	name string
}

type stored struct {
	Cluster
	created time.Time
}

// New returns a service without clusters.
func New(clock core.Clock) *Service { return &Service{clock: clock, clusters: map[key]stored{}} }

var nameForm = regexp.MustCompile(`^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$`)

// Put makes a cluster known, or replaces what is known of it.
func (s *Service) Put(c Cluster) error {
	if !nameForm.MatchString(c.Name) || c.Account == "" || c.Region == "" {
		return fmt.Errorf("cluster %q in account %q, region %q: want a name of letters, digits, - and _, an account and a region", c.Name, c.Account, c.Region)
	}
	if u, err := url.Parse(c.Endpoint); err != nil || u.Scheme != "https" {
		return fmt.Errorf("cluster %s: endpoint %q: want an https URL", c.Name, c.Endpoint)
	}
	if c.Status == "" {
		c.Status = "ACTIVE"
	}
	if c.IPFamily == "" {
		c.IPFamily = "ipv4"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{core.Scope{Account: c.Account, Region: c.Region}, c.Name}
	old, ok := s.clusters[k]
	if !ok {
		old.created = s.clock.Now()
	}
	c.Access = maps.Clone(c.Access)
	s.clusters[k] = stored{c, old.created}
	return nil
}

// Remove forgets a cluster.
func (s *Service) Remove(scope core.Scope, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clusters, key{scope, name})
}

// Find returns the cluster of a name, whichever account and region it is in;
// false if there is none or more than one.
func (s *Service) Find(name string) (Cluster, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found []Cluster
	for k, c := range s.clusters {
		if k.name == name {
			found = append(found, c.Cluster)
		}
	}
	if len(found) != 1 {
		return Cluster{}, false
	}
	return found[0], true
}

// Identity returns who a caller of STS is in the cluster; arn is what
// GetCallerIdentity said. The entry of the role stands for its sessions. A
// role's path is not part of a session's ARN, so an entry with a path is found
// by the name alone.
func (c Cluster) Identity(arn string) (AccessEntry, bool) {
	role, session := canonical(arn)
	for principal, entry := range c.Access {
		if principal == arn || withoutPath(principal) == role {
			entry.Username = strings.ReplaceAll(entry.Username, "{{SessionName}}", session)
			entry.Groups = slices.Clone(entry.Groups)
			if entry.Username == "" {
				entry.Username = arn
			}
			return entry, true
		}
	}
	return AccessEntry{}, false
}

// canonical turns arn:aws:sts::A:assumed-role/R/S into arn:aws:iam::A:role/R.
func canonical(arn string) (role, session string) {
	p := strings.SplitN(arn, ":", 6)
	if len(p) != 6 || p[2] != "sts" {
		return withoutPath(arn), ""
	}
	part := strings.Split(p[5], "/")
	if len(part) != 3 || part[0] != "assumed-role" {
		return arn, ""
	}
	return strings.Join([]string{p[0], p[1], "iam", "", p[4], "role/" + part[1]}, ":"), part[2]
}

// withoutPath turns role/some/path/name into role/name.
func withoutPath(arn string) string {
	first, last := strings.Index(arn, "/"), strings.LastIndex(arn, "/")
	if first < 0 {
		return arn
	}
	return arn[:first] + arn[last:]
}

// Operation implements core.RESTOperations.
func (s *Service) Operation(method, path string) string {
	switch {
	case method != http.MethodGet:
		return ""
	case path == "/clusters":
		return "ListClusters"
	case strings.HasPrefix(path, "/clusters/") && strings.Count(path, "/") == 2:
		return "DescribeCluster"
	}
	return ""
}

// ServeAWS implements core.Service.
func (s *Service) ServeAWS(_ context.Context, call *core.Call) (any, error) {
	switch call.Operation {
	case "DescribeCluster":
		return s.describe(call, strings.TrimPrefix(call.HTTP.URL.Path, "/clusters/"))
	case "ListClusters":
		return s.list(call)
	}
	return nil, call.UnknownOperation()
}

func (s *Service) list(call *core.Call) (any, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	names := []string{}
	for k := range s.clusters {
		if k.Scope == call.Scope {
			names = append(names, k.name)
		}
	}
	slices.Sort(names)
	page, next, err := core.Page(names, call.HTTP.URL.Query().Get("maxResults"), 100, call.HTTP.URL.Query().Get("nextToken"))
	if err != nil {
		return nil, core.Errorf("InvalidParameterException", "%v", err)
	}
	return struct {
		Clusters  []string `json:"clusters"`
		NextToken string   `json:"nextToken,omitempty"`
	}{page, next}, nil
}

func (s *Service) describe(call *core.Call, name string) (any, error) {
	s.mu.RLock()
	c, ok := s.clusters[key{call.Scope, name}]
	s.mu.RUnlock()
	if !ok {
		return nil, &core.Error{Code: "ResourceNotFoundException", Status: http.StatusNotFound, Message: "No cluster found for name: " + name + "."}
	}
	network := map[string]any{"ipFamily": c.IPFamily, "serviceIpv4Cidr": "127.96.0.0/16"}
	vpc := map[string]any{"vpcId": c.VPC, "endpointPublicAccess": c.PublicAccess, "endpointPrivateAccess": !c.PublicAccess,
		"subnetIds": []string{}, "securityGroupIds": []string{}, "publicAccessCidrs": []string{"0.0.0.0/0"}}
	return map[string]any{"cluster": map[string]any{
		"name": c.Name, "arn": call.ARN("eks", "cluster/"+c.Name), "status": c.Status, "version": c.Version, "endpoint": c.Endpoint,
		"createdAt":               float64(c.created.UnixMilli()) / 1000,
		"certificateAuthority":    map[string]string{"data": base64.StdEncoding.EncodeToString(c.CA)},
		"accessConfig":            map[string]any{"authenticationMode": "API"},
		"kubernetesNetworkConfig": network, "resourcesVpcConfig": vpc,
		"platformVersion": "eks.1", "roleArn": "arn:aws:iam::" + c.Account + ":role/eks-cluster", "tags": map[string]string{},
	}}, nil
}
