// Package preview says what rules would do to living target groups, and what
// other rules would do instead, before anybody deploys them. It asks what a
// comparison of claims and targets asks (pkg/claim, pkg/plan) of what was read
// once, so it knows no hints: it shows no removal that only a hint would witness.
// What was not read is not known, and nothing is said to be lost on doubt (I8).
// The package is pure: it has no clock, and reads and changes nothing.
package preview

import (
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/eventpattern/podmatch"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// Group is what was read of a target group.
type Group struct {
	claim.Group
	Name    string
	Targets map[claim.Key]plan.Target // all of them; nil if they were not read
	Owned   bool                      // its owner tag names the bus of the rules (I18)
	Frozen  bool                      // removals are frozen, on the group or on the bus
	Problem string                    // why it is not known, for people; then nothing else counts
}

// World is what was read of pods and groups.
type World struct {
	Pods []claim.Seen
	// Read are the clusters whose pods are all in Pods.
	Read []string
	// Clusters are all that there are, for rules that name none; nil if nobody
	// knows: such rules then cover clusters that were not read.
	Clusters []string
	// Ready reports whether a node is Ready, which makes the end of a pod on it a
	// witness (I9). If it is nil, no node is known to be.
	Ready  func(cluster, node string) bool
	Groups []Group

	Annotations podevent.AllowList // the webhook's
	Account     string             // of the bus: patterns may name it
	Region      string
	At          time.Time // of the reading
}

// Side are the bindings of a bus as they are, or as they would be. Their groups
// must be resolved: one without an ARN may be of any group.
type Side struct {
	Bindings []binding.Binding
	// Unclear says of rules why it is not known what they cover. Nothing is
	// removed where one of them might speak for it.
	Unclear []string
	// Maybe says of groups, by ARN, which rules that cover nothing may mean them:
	// faulty ones, and those whose tags several groups carry. Nothing is removed
	// there either, and once such a rule is mended it may be.
	Maybe map[string][]string
}

// envelopeID stands for the id of events that nobody sent.
const envelopeID = "00000000-0000-4000-8000-000000000000"

// everyOther stands for clusters whose names no rule says.
const everyOther = "every other cluster"

func (w *World) envelope() podmatch.Envelope {
	return podmatch.Envelope{ID: envelopeID, Account: w.Account, Region: w.Region}
}

// group returns what was read of a group; one that was not has a Problem.
func (w *World) group(arn string) *Group {
	for i := range w.Groups {
		if w.Groups[i].ARN == arn {
			return &w.Groups[i]
		}
	}
	return &Group{Group: claim.Group{ARN: arn}, Problem: "not read"}
}
