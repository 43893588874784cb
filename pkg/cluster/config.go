// Package cluster is the edge to the Kubernetes API, seen from outside the
// cluster: it dials an EKS cluster by an STS token or another one by kubeconfig,
// and reads pods and nodes as elbridge's own values. Reads that decide are quorum
// reads, and a watch goes on from the revision of one; nothing here is cached.
package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Config names one cluster and how to reach it: exactly one of EKS and
// Kubeconfig is set.
type Config struct {
	Name       string `json:"name"` // as in the events' detail.cluster
	EKS        *EKS   `json:"eks,omitempty"`
	Kubeconfig string `json:"kubeconfig,omitempty"` // path of a kubeconfig file
	Observe    bool   `json:"observe,omitempty"`    // I19 for the whole cluster
}

// EKS names an EKS cluster.
type EKS struct {
	Name   string `json:"name"`             // default: the cluster's name
	Region string `json:"region,omitempty"` // default: the function's own
}

// ParseConfigs reads the list of clusters, a JSON array. Every fault is named.
func ParseConfigs(text string) ([]Config, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	var cs []Config
	if err := dec.Decode(&cs); err != nil {
		return nil, fmt.Errorf(`want a JSON array such as [{"name":"prod","eks":{"name":"prod"}}]: %w`, err)
	}
	if dec.More() {
		return nil, errors.New("text after the JSON array: want the array alone")
	}
	if len(cs) == 0 {
		return nil, errors.New(`names no cluster: want at least one, such as [{"name":"prod","eks":{"name":"prod"}}]`)
	}
	var errs []error
	seen := map[string]bool{}
	for i := range cs {
		c := &cs[i]
		switch {
		case c.Name == "":
			errs = append(errs, fmt.Errorf("[%d].name: missing", i))
		case seen[c.Name]:
			errs = append(errs, fmt.Errorf("[%d].name: %q is named twice", i, c.Name))
		}
		seen[c.Name] = true
		if (c.EKS == nil) == (c.Kubeconfig == "") {
			errs = append(errs, fmt.Errorf("[%d] (%s): want exactly one of eks and kubeconfig", i, c.Name))
		}
		if c.EKS != nil && c.EKS.Name == "" {
			c.EKS.Name = c.Name
		}
	}
	return cs, errors.Join(errs...)
}
