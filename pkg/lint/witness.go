package lint

import (
	"encoding/json"
	"net/netip"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/eventpattern"
	"github.com/elbridge/elbridge/pkg/eventpattern/podmatch"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// maxTrials bounds the combinations of branches that are tried for one pair.
const maxTrials = 64

// witness looks for a pod whose event matches both patterns. One that is found
// is proof; that none is found proves nothing.
func witness(a, b *bound) (podevent.Event, bool) {
	trials := 0
	for _, x := range a.branches {
		for _, y := range b.branches {
			if trials++; trials > maxTrials {
				return podevent.Event{}, false
			}
			e, ok := invent(append(append(branch{}, x...), y...))
			if ok && matches(a, e) && matches(b, e) {
				return e, true
			}
		}
	}
	return podevent.Event{}, false
}

func matches(b *bound, e podevent.Event) bool {
	event, err := parsed(e)
	return err == nil && b.Pattern.Matches(event)
}

// parsed is the event as rules match it.
func parsed(e podevent.Event) (*eventpattern.Event, error) {
	return podmatch.Event(&e, podmatch.Envelope{ID: "00000000-0000-4000-8000-000000000000", Account: "111122223333", Region: "eu-west-1"})
}

// invent makes an event of a pod that each of the leaves lets pass, where it can.
func invent(leaves branch) (podevent.Event, bool) {
	e := podevent.Event{Schema: podevent.Schema, Cluster: "any", Namespace: "any", Name: "any", UID: "any", ServiceAccount: "default",
		PodIP: "10.64.1.2", PodIPs: []string{"10.64.1.2"}, Phase: "Running", Labels: map[string]string{}, Annotations: map[string]string{},
		Reason: podevent.IPAssigned, ObservedAt: time.Unix(0, 0).UTC(), Owner: &podevent.Owner{Kind: "ReplicaSet", Name: "any"}}
	done := map[string]bool{}
	for _, l := range leaves {
		if done[l.path] {
			continue
		}
		done[l.path] = true
		if value, ok := choose(leaves.at(l.path)); !ok || !set(&e, l.path, value) {
			return e, false
		}
	}
	return e, true
}

// absent stands for a field that must not be there.
const absent = "\x00absent"

// choose returns a string that passes all of the leaves, which are of one path.
func choose(leaves []leaf) (string, bool) {
	for _, l := range leaves {
		for _, raw := range l.values {
			for _, c := range candidates(raw) {
				if allPass(leaves, c) {
					return c, true
				}
			}
		}
	}
	return "", false
}

// allPass asks the pattern language itself.
func allPass(leaves []leaf, value string) bool {
	event := map[string]any{"v": value}
	if value == absent {
		event = map[string]any{"other": ""}
	}
	text, err := json.Marshal(event)
	if err != nil {
		return false
	}
	for _, l := range leaves {
		alternatives, err := json.Marshal(map[string]any{"v": l.values})
		if err != nil {
			return false
		}
		p, err := eventpattern.Parse(alternatives)
		if err != nil {
			return false
		}
		if ok, err := p.Match(text); err != nil || !ok {
			return false
		}
	}
	return true
}

// candidates are strings that an alternative may let pass.
func candidates(raw json.RawMessage) []string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []string{text}
	}
	var operators map[string]json.RawMessage
	if json.Unmarshal(raw, &operators) != nil {
		return nil
	}
	for name, operand := range operators {
		_ = json.Unmarshal(operand, &text) // other operands have candidates of their own
		switch name {
		case "exists":
			if string(operand) == "false" {
				return []string{absent}
			}
			return []string{"any"}
		case "prefix", "suffix", "equals-ignore-case", "exactly":
			return []string{text}
		case "wildcard":
			return []string{strings.ReplaceAll(text, "*", ""), strings.ReplaceAll(text, "*", "a")}
		case "anything-but":
			return []string{"any-other", "zz"}
		case "cidr":
			if p, err := netip.ParsePrefix(text); err == nil {
				return []string{p.Addr().Next().String()}
			}
		}
	}
	return nil
}

// set puts a value at a path of the event; false where the path is none that an
// invented pod can have.
func set(e *podevent.Event, path, value string) bool {
	gone := value == absent
	if key, ok := strings.CutPrefix(path, "detail.labels."); ok {
		return gone || put(e.Labels, key, value)
	}
	if key, ok := strings.CutPrefix(path, "detail.annotations."); ok {
		return gone || put(e.Annotations, key, value)
	}
	into := map[string]*string{"detail.cluster": &e.Cluster, "detail.namespace": &e.Namespace, "detail.name": &e.Name, "detail.uid": &e.UID,
		"detail.serviceAccount": &e.ServiceAccount, "detail.nodeName": &e.NodeName, "detail.hostIP": &e.HostIP,
		"detail.owner.kind": &e.Owner.Kind, "detail.owner.name": &e.Owner.Name}[path]
	switch {
	case into != nil:
		*into = value
		return !gone
	case path == "source":
		return value == podevent.Source
	case path == "detail-type":
		return value == podEventType
	default:
		return false
	}
}

func put(m map[string]string, key, value string) bool {
	m[key] = value
	return true
}
