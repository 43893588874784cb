package resync_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/targetevent"
)

// all is every event that was told of, one line for each key, rule or finding:
//
//	changed web +10.0.0.1 drift=missing pod=shop/a uid=a rule=web run=run-1 round=1
//	held web 10.0.0.1 …
//	invalid rule=web …
//	rule web [pattern] web gain=1 lose=0 hold=2
//	round 1 schedule found=1 …
//	finding web extra held 10.0.0.1 …
func (w *world) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, e := range w.events {
		for _, l := range linesOf(w, e) {
			out = append(out, fmt.Sprintf("%s @%s", l, e.at.Sub(w.began()).Round(time.Second)))
		}
	}
	return out
}

func linesOf(w *world, e told) []string {
	switch e.DetailType {
	case targetevent.DetailTypeTargetsChanged:
		return changedLines(decode[targetevent.TargetsChanged](w, e.Detail))
	case targetevent.DetailTypeRemovalHeld:
		ev := decode[targetevent.RemovalHeld](w, e.Detail)
		var out []string
		for _, k := range ev.Held {
			out = append(out, fmt.Sprintf("held %s %s overdue=%t hash=%s kind=%s run=%s mode=%s", nameOf(ev.TargetGroup), keyText(k), ev.Overdue, ev.Hash, ev.Cause.Kind, ev.Cause.RunID, ev.Mode))
		}
		return out
	case targetevent.DetailTypeBindingInvalid:
		ev := decode[targetevent.BindingInvalid](w, e.Detail)
		return []string{fmt.Sprintf("invalid rule=%s %s", ruleName(ev.Rule), ev.Problem)}
	case targetevent.DetailTypeBindingChanged:
		return ruleLines(decode[targetevent.BindingChanged](w, e.Detail))
	case targetevent.DetailTypeResyncCompleted:
		return roundLines(decode[targetevent.ResyncCompleted](w, e.Detail))
	}
	w.t.Errorf("unknown event %s", e.DetailType)
	return nil
}

func decode[T targetevent.TargetsChanged | targetevent.RemovalHeld | targetevent.BindingInvalid | targetevent.BindingChanged | targetevent.ResyncCompleted](w *world, detail []byte) T {
	ev, err := targetevent.Decode[T](detail)
	if err != nil {
		w.t.Error(err)
	}
	return ev
}

func changedLines(ev targetevent.TargetsChanged) []string {
	word := "changed"
	if ev.WouldDo {
		word = "would"
	}
	cause := fmt.Sprintf("kind=%s drift=%s run=%s round=%d request=%s", ev.Cause.Kind, ev.Cause.Drift, ev.Cause.RunID, ev.Cause.Round, ev.Cause.Request)
	var out []string
	for _, k := range ev.Registered {
		out = append(out, fmt.Sprintf("%s %s +%s %s", word, nameOf(ev.TargetGroup), keyText(k), cause))
	}
	for _, k := range ev.Deregistered {
		out = append(out, fmt.Sprintf("%s %s -%s %s", word, nameOf(ev.TargetGroup), keyText(k), cause))
	}
	for _, f := range ev.Failed {
		out = append(out, fmt.Sprintf("failed %s %s %s %s", nameOf(ev.TargetGroup), f.Operation, f.ID, f.Error))
	}
	return out
}

func ruleLines(ev targetevent.BindingChanged) []string {
	line := fmt.Sprintf("rule %s %v", ruleName(ev.Rule), ev.Changes)
	for _, e := range ev.Effects {
		line += fmt.Sprintf(" %s gain=%d lose=%d hold=%d", nameOf(e.TargetGroup), e.Gain, e.Lose, e.Hold)
	}
	return []string{line}
}

func roundLines(ev targetevent.ResyncCompleted) []string {
	line := fmt.Sprintf("round %d %s run=%s groups=%d unread=%d found=%d repaired=%d held=%d failed=%d dryRun=%t", ev.Round, ev.Trigger, ev.RunID,
		ev.Groups, ev.Unread, ev.Found, ev.Repaired, ev.Held, ev.Failed, ev.DryRun)
	if q := ev.Request; q != nil {
		line += fmt.Sprintf(" request=%s by=%s sender=%s approve=%s reason=%q", q.ID, q.By, q.Sender, q.Approve, q.Reason)
	}
	out := []string{line}
	for _, p := range ev.Problems {
		out = append(out, "problem "+p)
	}
	for _, f := range ev.Findings {
		out = append(out, fmt.Sprintf("finding %s %s %s %s", nameOf(f.TargetGroup), f.Drift, f.Action, keyText(f.Key)))
	}
	return out
}

func keyText(k targetevent.Key) string {
	text := fmt.Sprintf("%s:%d", k.ID, k.Port)
	return fmt.Sprintf("%s pod=%s uid=%s cluster=%s rule=%s witness=%s why=%q", strings.TrimSuffix(text, ":8080"), k.Pod, k.PodUID, k.Cluster, ruleName(k.Rule), k.Witness, k.Reason)
}

func ruleName(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }

// tells returns the lines that have words that begin so, in their order.
func (w *world) tells(words ...string) (out []string) {
	for _, l := range w.all() {
		rest, ok := " "+l, true
		for _, word := range strings.Fields(strings.Join(words, " ")) {
			var found bool
			if _, rest, found = strings.Cut(rest, " "+word); !found {
				ok = false
				break
			}
		}
		if ok {
			out = append(out, l)
		}
	}
	return out
}

// wantTold checks how often something was told.
func (w *world) wantTold(n int, words string) {
	w.t.Helper()
	if got := w.tells(words); len(got) != n {
		w.t.Errorf("%q was told %d times, want %d: %q", words, len(got), n, got)
	}
}

// wantSome checks that something was told.
func (w *world) wantSome(words string) {
	w.t.Helper()
	if len(w.tells(words)) == 0 {
		w.t.Errorf("%q was not told", words)
	}
}

// hash is the hash of the plan that was held last.
func (w *world) hash() string {
	held := w.tells("held web")
	if len(held) == 0 {
		w.t.Fatal("nothing was held")
	}
	_, rest, _ := strings.Cut(held[len(held)-1], "hash=")
	return strings.Fields(rest)[0]
}

// metric is the sum of a metric so far, of the lines with all the dimensions
// (name, value, …).
func (w *world) metric(name string, dims ...string) float64 {
	var sum float64
	for _, line := range strings.Split(w.metrics.text(), "\n") {
		doc := map[string]any{}
		if json.Unmarshal([]byte(line), &doc) != nil {
			continue
		}
		matches := true
		for i := 0; i+1 < len(dims); i += 2 {
			matches = matches && doc[dims[i]] == dims[i+1]
		}
		if v, ok := doc[name].(float64); ok && matches {
			sum += v
		}
	}
	return sum
}
