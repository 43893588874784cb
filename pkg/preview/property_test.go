package preview_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/preview"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// anyRules draws up to three rules in the notation of side.
func anyRules(t *rapid.T, label string, more ...string) []string {
	var out []string
	for i := range rapid.IntRange(0, 3).Draw(t, label) {
		name := fmt.Sprintf("r%d", i) + rapid.SampledFrom([]string{"", "", "", "-off", "@dev", "@"}).Draw(t, "of")
		if strings.HasPrefix(name, "r1-") {
			name = "r1" // one rule of a name
		}
		line := name + " app=" + rapid.SampledFrom([]string{"a", "b", "a,b", "c"}).Draw(t, "app") + " " + rapid.SampledFrom([]string{"g", "g", "h"}).Draw(t, "group")
		if c := rapid.SampledFrom([]string{"", "", `"empty":true`, `"mode":"observe"`, `"port":81`, `"minTargets":3`, `"maxRemovalPercent":100`, `"foreignTargets":"keep"`}).Draw(t, "constant"); c != "" && len(more) == 0 {
			line += " " + c
		}
		out = append(out, strings.Join(append([]string{line}, more...), " "))
	}
	return out
}

// Whatever rules, pods and groups there are: what goes is there and nobody claims
// it any more, nothing is lost on doubt, observing loses nothing, and what a
// change does is part of what a comparison would do.
func TestCompare_Properties_I8_I19(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var podWords []string
		for i := range rapid.IntRange(0, 8).Draw(rt, "pods") {
			podWords = append(podWords, fmt.Sprintf("%d:%s%s", i+1, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "app"), rapid.SampledFrom([]string{"", "", "!", "~", "#"}).Draw(rt, "state")))
		}
		groupLine := func(name string) string {
			words := []string{name}
			if word := rapid.SampledFrom([]string{"", "", "", "foreign", "frozen", "unread"}).Draw(rt, "group"); word != "" {
				words = append(words, word)
			}
			for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(1, 9), 0, 6, rapid.ID).Draw(rt, "targets") {
				words = append(words, fmt.Sprintf("%d=%s", n, rapid.SampledFrom([]string{"healthy", "healthy", "unhealthy", "draining", "unused", "initial"}).Draw(rt, "health")))
			}
			return strings.Join(words, " ")
		}
		w := world(t, strings.Join(podWords, " "), groupLine("g"), groupLine("h"))
		old := side(t, anyRules(rt, "old")...)
		observing := rapid.Bool().Draw(rt, "observing")
		var more []string
		if observing {
			more = []string{`"mode":"observe"`}
		}
		new := side(t, anyRules(rt, "new", more...)...)
		if rapid.Bool().Draw(rt, "faulty") {
			new.Maybe = map[string][]string{groupARN("g"): {"a rule may name it"}}
		}
		es, err := w.Compare(old, new)
		if err != nil {
			rt.Fatal(err)
		}
		again, err := w.Compare(old, new)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(es) {
			rt.Fatalf("once %v, then %v, %v", es, again, err)
		}
		ps, err := w.Plans(new)
		if err != nil {
			rt.Fatal(err)
		}
		for _, e := range es {
			var p preview.Plan
			if i := slices.IndexFunc(ps, func(p preview.Plan) bool { return p.Group.ARN == e.TargetGroup }); i >= 0 {
				p = ps[i]
			}
			if !e.Known() && e.Removes() {
				rt.Fatalf("lost on doubt: %s", said(e))
			}
			if observing && e.Gain+e.Lose+e.Hold+len(e.Later) > 0 {
				rt.Fatalf("observing changes %s", said(e))
			}
			if len(p.Bindings) == 0 && e.Gain+e.Lose+e.Hold+len(e.Later) > 0 {
				rt.Fatalf("a group that no rule names changes: %s", said(e))
			}
			planned := map[claim.Key]bool{}
			for _, c := range slices.Concat(p.Changes.Deregister, p.Changes.Held, p.Changes.Later) {
				planned[c.Key] = true
			}
			for _, k := range slices.Concat(e.Lost, e.Held, e.Later) {
				key := claim.Key{ID: k.ID, Port: k.Port}
				if target, held := p.Group.Targets[key]; !held || target.Health == plan.Draining || p.Claimed[key] || !planned[key] {
					rt.Fatalf("%v goes: %s", key, said(e))
				}
			}
			seen := map[targetevent.Key]bool{}
			for _, k := range slices.Concat(e.Gained, e.Lost, e.Held, e.Later, e.Kept) {
				k = targetevent.Key{ID: k.ID, Port: k.Port}
				if seen[k] {
					rt.Fatalf("%v is in two lists: %s", k, said(e))
				}
				seen[k] = true
			}
		}
	})
}
