package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/audit"
	kinds "github.com/elbridge/elbridge/pkg/drift" // drift is a column of bindings
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// entry is what an event of the audit log says of one target.
type entry struct {
	Time        time.Time         `json:"time"`
	What        string            `json:"what"` // registered, deregistered, held, would register, failed to register, reported, …
	TargetGroup string            `json:"targetGroup"`
	Target      string            `json:"target"` // ip:port; empty where the group itself is meant
	Why         string            `json:"why"`    // the cause in words
	Cause       targetevent.Cause `json:"cause"`
	Rule        string            `json:"rule,omitempty"` // ARN
	Pod         string            `json:"pod,omitempty"`
	UID         string            `json:"uid,omitempty"`
	Cluster     string            `json:"cluster,omitempty"`
	Node        string            `json:"node,omitempty"`
	Witness     string            `json:"witness,omitempty"`
	Error       string            `json:"error,omitempty"` // of a change that failed
	Hash        string            `json:"hash,omitempty"`  // of the held plan
	Event       string            `json:"event"`           // id of the event that says so
	id          string
	port        int32
}

// entries reads what events say of targets, oldest first. An event that can't be
// read is named among the faults: the others are shown all the same.
func entries(events []audit.Event) (out []entry, faults []error) {
	for _, e := range events {
		of, err := entriesOf(e)
		if err != nil {
			faults = append(faults, fmt.Errorf("event %s at %s: %w", e.ID, e.Time.UTC().Format(time.RFC3339), err))
		}
		out = append(out, of...)
	}
	slices.SortStableFunc(out, func(a, b entry) int { return a.Time.Compare(b.Time) })
	return out, faults
}

func entriesOf(e audit.Event) ([]entry, error) {
	switch e.DetailType {
	case targetevent.DetailTypeTargetsChanged:
		d, err := targetevent.Decode[targetevent.TargetsChanged](e.Detail)
		return changedEntries(e.ID, d), err
	case targetevent.DetailTypeRemovalHeld:
		d, err := targetevent.Decode[targetevent.RemovalHeld](e.Detail)
		return heldEntries(e.ID, d), err
	case targetevent.DetailTypeBindingChanged:
		d, err := targetevent.Decode[targetevent.BindingChanged](e.Detail)
		return boundEntries(e.ID, d), err
	case targetevent.DetailTypeResyncCompleted:
		d, err := targetevent.Decode[targetevent.ResyncCompleted](e.Detail)
		return roundEntries(e.ID, d), err
	}
	return nil, nil
}

func changedEntries(id string, d targetevent.TargetsChanged) []entry {
	base := entry{Time: d.At, TargetGroup: d.TargetGroup, Cause: d.Cause, Rule: d.Rule, Event: id}
	verbs := []string{"registered", "deregistered"}
	if d.WouldDo {
		verbs = []string{"would register", "would deregister"}
	}
	var out []entry
	for i, keys := range [][]targetevent.Key{d.Registered, d.Deregistered} {
		for _, k := range keys {
			out = append(out, base.ofKind(k).of(verbs[i], k))
		}
	}
	for _, f := range d.Failed {
		e := base.of("failed to "+f.Operation, f.Key)
		e.Error = f.Error
		e.Why += ": " + f.Error
		out = append(out, e)
	}
	return out
}

func heldEntries(id string, d targetevent.RemovalHeld) []entry {
	base := entry{Time: d.At, TargetGroup: d.TargetGroup, Cause: d.Cause, Rule: d.Rule, Hash: d.Hash, Event: id}
	verb := "held"
	if d.WouldDo {
		verb = "would hold"
	}
	var out []entry
	for _, k := range d.Held {
		e := base.of(verb, k)
		if k.Reason != "" { // the hold's, not the cause's
			e.Why = fmt.Sprintf("%s (%s)", k.Reason, inWords(d.Cause, targetevent.Key{EventID: k.EventID}))
			if d.Hash != "" {
				e.Why = strings.TrimSuffix(e.Why, ")") + "; plan " + d.Hash + ")"
			}
		}
		out = append(out, e)
	}
	return out
}

// boundEntries is what a change of a rule does to targets: nothing is done yet, the round
// that does it tells of that itself.
func boundEntries(id string, d targetevent.BindingChanged) []entry {
	var kinds []string
	for _, c := range d.Changes {
		kinds = append(kinds, string(c))
	}
	var out []entry
	for _, f := range d.Effects {
		base := entry{Time: d.At, TargetGroup: f.TargetGroup, Cause: d.Cause, Rule: d.Rule, Hash: f.Hash, Event: id}
		for verb, keys := range map[string][]targetevent.Key{"rule changed: comes in": f.Gained, "rule changed: goes": f.Lost, "rule changed: held": f.Held} {
			for _, k := range keys {
				e := base.of(verb, k)
				e.Why = fmt.Sprintf("rule %s: %s", ruleName(d.Rule), strings.Join(kinds, ", "))
				out = append(out, e)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b entry) int { return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.What, b.What)) })
	return out
}

// roundEntries are the findings of a round that no other event tells of, and all that
// a dry round sees.
func roundEntries(id string, d targetevent.ResyncCompleted) []entry {
	var out []entry
	for _, f := range d.Findings {
		if !d.DryRun && toldElsewhere(f) {
			continue
		}
		c := targetevent.Cause{Kind: targetevent.Drift, Drift: f.Drift, RunID: d.RunID, Round: d.Round}
		if d.Request != nil {
			c.Request = d.Request.ID
		}
		what := strings.ReplaceAll(f.Action, "would-", "would ")
		if d.DryRun && f.Action == "held" {
			what = "would hold"
		}
		out = append(out, entry{Time: d.At, TargetGroup: f.TargetGroup, Cause: c, Event: id}.of(what, f.Key))
	}
	return out
}

// ofKind gives the cause the key's own kind of drift: one call repairs several kinds.
func (e entry) ofKind(k targetevent.Key) entry {
	if e.Cause.Kind != targetevent.Hint && k.Reason != "" {
		e.Cause.Drift = k.Reason
	}
	return e
}

// toldElsewhere reports whether a finding has an event of its own: what was changed
// or failed is a Targets Changed, what is held a Removal Held, but for repairs that
// are held since somebody else undoes them.
func toldElsewhere(f targetevent.Finding) bool {
	switch f.Action {
	case "reported", "waiting":
		return false
	case "held":
		return f.Drift != string(kinds.Flapping)
	default:
		return true
	}
}

// of is the entry of one key.
func (e entry) of(what string, k targetevent.Key) entry {
	e.What, e.Target, e.id, e.port = what, target(k), k.ID, k.Port
	e.Pod, e.UID, e.Cluster, e.Node, e.Witness = k.Pod, k.PodUID, k.Cluster, k.Node, k.Witness
	e.Rule = cmp.Or(k.Rule, e.Rule)
	e.Why = inWords(e.Cause, k)
	return e
}

// inWords is a cause as people say it, with the ids under which logs tell more.
func inWords(c targetevent.Cause, k targetevent.Key) string {
	var out string
	switch c.Kind {
	case targetevent.Hint:
		out = strings.Join(nonEmpty("pod event", k.Reason, cmp.Or(k.EventID, c.EventID)), " ")
	default:
		out = strings.Join(nonEmpty(string(c.Kind), c.Drift), " ")
	}
	if c.RunID != "" {
		out += ", run " + c.RunID
		if c.Round > 0 {
			out += fmt.Sprintf(" round %d", c.Round)
		}
	}
	if c.Request != "" {
		out += ", asked for by " + c.Request
	}
	if k.Witness != "" {
		out += "; witness " + k.Witness
	}
	return out
}

func nonEmpty(parts ...string) []string {
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
}

// why is what a finding says beside its kind.
func why(k targetevent.Key) string {
	if k.Witness == "" {
		return k.Reason
	}
	return strings.Join(nonEmpty(k.Reason, "witness "+k.Witness), "; ")
}

// target is a key as people write it; empty for the group itself.
func target(k targetevent.Key) string {
	switch {
	case k.ID == "":
		return ""
	case strings.Contains(k.ID, ":"):
		return fmt.Sprintf("[%s]:%d", k.ID, k.Port)
	default:
		return fmt.Sprintf("%s:%d", k.ID, k.Port)
	}
}

// parseTarget reads IP, IP:PORT, [IPV6]:PORT, an instance id, or INSTANCE:PORT; port
// 0 is any.
func parseTarget(s string) (id string, port int32, err error) {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return a.Unmap().String(), 0, nil
	}
	if a, err := netip.ParseAddrPort(s); err == nil && a.Port() != 0 {
		return a.Addr().Unmap().String(), int32(a.Port()), nil
	}
	if strings.HasPrefix(s, "i-") {
		id, digits, hasPort := strings.Cut(s, ":")
		if !hasPort {
			return id, 0, nil
		}
		var n uint16
		if _, err := fmt.Sscanf(digits, "%d", &n); err == nil && n > 0 && fmt.Sprint(n) == digits {
			return id, int32(n), nil
		}
	}
	return "", 0, fmt.Errorf("target %q: want IP or IP:PORT, as in 10.64.1.6:9999 or [fd00::6]:9999", s)
}

// inGroup reports whether an ARN is that of the group, which is named by name or
// ARN; "" is any.
func inGroup(arn, group string) bool {
	return group == "" || arn == group || groupName(arn) == group
}

// ruleName is the name of a rule by its ARN.
func ruleName(arn string) string {
	return arn[strings.LastIndex(arn, "/")+1:]
}
