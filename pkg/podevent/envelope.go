package podevent

import (
	"encoding/json"
	"fmt"
	"time"
)

// Envelope is what EventBridge wraps around a detail.
type Envelope struct {
	ID         string
	Account    string
	Region     string
	Source     string
	DetailType string
	Time       time.Time // EventBridge keeps whole seconds
	Resources  []string
	Detail     json.RawMessage
}

// Envelope is the event as it stands on the bus of an account and region.
func (e Event) Envelope(id, account, region string) (Envelope, error) {
	detail, err := e.Encode()
	if err != nil {
		return Envelope{}, err
	}
	return Envelope{
		ID: id, Account: account, Region: region,
		Source: Source, DetailType: DetailTypePodStateChange,
		Time: e.ObservedAt, Resources: e.Resources(), Detail: detail,
	}, nil
}

// Resources are the ids in the event's "resources": the pod's and its node's.
func (e Event) Resources() []string {
	ids := []string{"pod/" + e.UID}
	if e.NodeName != "" {
		ids = append(ids, "node/"+e.Cluster+"/"+e.NodeName)
	}
	return ids
}

// JSON is the whole event, as rules match it and targets get it.
func (e Envelope) JSON() ([]byte, error) {
	resources := e.Resources
	if resources == nil {
		resources = []string{}
	}
	b, err := marshal(struct {
		Version    string          `json:"version"`
		ID         string          `json:"id"`
		DetailType string          `json:"detail-type"`
		Source     string          `json:"source"`
		Account    string          `json:"account"`
		Time       string          `json:"time"`
		Region     string          `json:"region"`
		Resources  []string        `json:"resources"`
		Detail     json.RawMessage `json:"detail"`
	}{"0", e.ID, e.DetailType, e.Source, e.Account, e.Time.UTC().Format("2006-01-02T15:04:05Z"), e.Region, resources, e.Detail})
	if err != nil {
		return nil, fmt.Errorf("envelope of a %q: %w", e.DetailType, err)
	}
	return b, nil
}
