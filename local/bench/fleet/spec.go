// Package fleet is what resync looks at, at the size of a large account: an API
// server of very many pods, with the lists and watches that resync uses, and an
// AWS with hundreds of rules and target groups. It is true on the wire and cheap
// inside: pods are encoded once, pages are put together from their bytes, health
// checks are few and pass. It runs in a process of its own, so that what is
// measured of its client is the client's alone.
package fleet

import (
	"fmt"

	"github.com/elbridge/elbridge/local/cloud/core"
)

const (
	// Groups, Rules and Bindings of an account: 300 rules are EventBridge's quota
	// for a bus.
	Groups   = 200
	Rules    = 300
	Bindings = 500
	// wide rules have maxTargets targets, EventBridge's quota for a rule.
	maxTargets = 5
	wideRules  = 50
	// trafficPort is what every binding registers.
	trafficPort = 8080
)

// Account and names of the fleet's AWS.
const (
	Account     = "000000000000"
	Region      = "eu-west-1"
	Bus         = "elbridge"
	Queue       = "elbridge-bindings"
	DeadLetters = "elbridge-bindings-dead"
	Requests    = "elbridge-resync"
	ClusterName = "fleet"
)

// ARNs of the fleet's AWS.
const (
	BusARN         = "arn:aws:events:" + Region + ":" + Account + ":event-bus/" + Bus
	QueueARN       = "arn:aws:sqs:" + Region + ":" + Account + ":" + Queue
	DeadLettersARN = "arn:aws:sqs:" + Region + ":" + Account + ":" + DeadLetters
	RequestsARN    = "arn:aws:sqs:" + Region + ":" + Account + ":" + Requests
)

// principal may do everything.
var principal = core.Principal{ //nolint:gosec // of the local cloud alone
	AccessKeyID: "AKIALOCALFLEET000000", SecretAccessKey: "local-fleet-secret-0000000000000000000000",
	Account: Account, ARN: "arn:aws:sts::" + Account + ":assumed-role/elbridge-resync/resync",
}

// Spec says how large a fleet is.
type Spec struct {
	Pods     int `json:"pods"`
	Selected int `json:"selected"` // pods that some binding selects, the first ones
}

func (s Spec) check() error {
	if s.Pods < 1 || s.Pods > 15_000_000 || s.Selected < 0 || s.Selected > s.Pods {
		return fmt.Errorf("fleet of %d pods, %d of them selected: want at least 1 pod, and at most as many selected", s.Pods, s.Selected)
	}
	own := (s.Selected + Groups - 1) / Groups
	if most := own + (maxTargets-1)*(own/canaries+1); most > 1000 {
		return fmt.Errorf("%d selected pods: %d targets in a group, whose quota is 1000", s.Selected, most)
	}
	return nil
}

// rule is one rule of the bus: the pods of one service, all or the canaries
// alone, and the groups they belong into.
type rule struct {
	name    string
	service int
	canary  bool
	groups  []int
}

// rules are 200 that bring each service's pods into its own group, and 100 that
// say so again for canaries, half of them for four more groups: 500 bindings.
func rules() []rule {
	var out []rule
	for g := range Groups {
		out = append(out, rule{name: fmt.Sprintf("service-%03d", g), service: g, groups: []int{g}})
	}
	for k := range Rules - Groups {
		r := rule{name: fmt.Sprintf("canary-%03d", k), service: 2 * k, canary: true, groups: []int{2 * k}}
		for more := 1; k < wideRules && more < maxTargets; more++ {
			r.groups = append(r.groups, (2*k+more)%Groups)
		}
		out = append(out, r)
	}
	return out
}

func (r rule) detail() string {
	tracks := `"stable","canary"`
	if r.canary {
		tracks = `"canary"`
	}
	return fmt.Sprintf(`{"cluster":[%q],"namespace":[%q],"labels":{"app":[%q],"track":[%s]}}`, ClusterName, teamName(r.service%namespaces), serviceName(r.service), tracks)
}

// claims are the indices of the pods that belong into each group.
func (s Spec) claims() [Groups]map[int]bool {
	var out [Groups]map[int]bool
	for g := range out {
		out[g] = map[int]bool{}
	}
	for _, r := range rules() {
		for i := r.service; i < s.Selected; i += Groups {
			if r.canary && !isCanary(i) {
				continue
			}
			for _, g := range r.groups {
				out[g][i] = true
			}
		}
	}
	return out
}
