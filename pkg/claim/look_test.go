package claim_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
)

// TestLook writes bindings as "rule constants [observe|disabled]" and pods as
// "uid rules pod", where rules are those that select the pod.
func TestLook(t *testing.T) {
	tests := map[string]struct {
		bindings, pods []string
		want           string
	}{
		"a pod and a rule":                      {[]string{"a"}, []string{"p a 10.0.0.1"}, "10.0.0.1:80=a/p p<a"},
		"selected by nobody":                    {[]string{"a"}, []string{"p - 10.0.0.1"}, ""},
		"I2 two rules, one key":                 {[]string{"b", "a"}, []string{"p ab 10.0.0.1"}, "10.0.0.1:80=a/p 10.0.0.1:80=b/p p<b"},
		"I2 two pods, one key":                  {[]string{"a"}, []string{"q a 10.0.0.1", "p a 10.0.0.1"}, "10.0.0.1:80=a/p 10.0.0.1:80=a/q p<a q<a"},
		"I8 a disabled rule protects":           {[]string{"a disabled"}, []string{"p a 10.0.0.1"}, "10.0.0.1:80=protected p<a"},
		"I4 a pod at its end":                   {[]string{"a"}, []string{"p a 10.0.0.1 Failed"}, "p!pod is finished p<a"},
		"I19 a rule that manages comes first":   {[]string{"a observe", "b"}, []string{"p ab 10.0.0.1"}, "10.0.0.1:80=b/p 10.0.0.1:80=a/p p<b"},
		"I19 a rule half observed is observed":  {[]string{"a", "a observe", "b"}, []string{"p ab 10.0.0.1"}, "10.0.0.1:80=b/p 10.0.0.1:80=a/p 10.0.0.1:80=a/p p<b"},
		"within podCIDRs":                       {[]string{"a in=10.0.0.0/16"}, []string{"p a 10.0.0.1", "q a 10.9.0.1"}, "10.0.0.1:80=a/p p<a p~ q!address is outside podCIDRs q<a"},
		"emptied":                               {[]string{"a empty"}, []string{"p a 10.0.0.1"}, "p!binding is emptied p0 p<a"},
		"emptied under both":                    {[]string{"a empty", "b empty"}, []string{"p ab 10.0.0.1"}, "p!binding is emptied p0 p<a"},
		"claimed under one of two":              {[]string{"a empty", "b"}, []string{"p ab 10.0.0.1"}, "10.0.0.1:80=b/p p!binding is emptied p<a"},
		"claimed under the first of two":        {[]string{"b", "a empty"}, []string{"p ab 10.0.0.1"}, "10.0.0.1:80=b/p p!binding is emptied p<b"},
		"waits under one of two":                {[]string{"a empty", "b Ready"}, []string{"p ab 10.0.0.1"}, "p!pod is not ready p<a"},
		"I8 a disabled rule empties nothing":    {[]string{"a empty disabled"}, []string{"p a 10.0.0.1"}, "p!binding is emptied p<a"},
		"emptied, whatever a disabled one says": {[]string{"a empty", "b Ready disabled"}, []string{"p ab 10.0.0.1"}, "p!pod is not ready p0 p<a"},
		"a port that it does not declare":       {[]string{"a", "b http"}, []string{"q b 10.0.0.2", "p b 10.0.0.1"}, "1#p 1#q p!pod declares no container port of that name p<b q!pod declares no container port of that name q<b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bs, pods, selects := scene(tt.bindings, tt.pods)
			if got := written(claim.Look(bs, claim.Group{Type: claim.IP, Family: claim.IPv4, Port: 80}, pods, selects), pods); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func scene(bindings, pods []string) ([]binding.Binding, []claim.Seen, func(pod, bind int) bool) {
	var bs []binding.Binding
	for _, text := range bindings {
		rule, constants, _ := strings.Cut(text, " ")
		constants, disabled := strings.CutSuffix(constants, "disabled")
		constants, observed := strings.CutSuffix(constants, "observe")
		b := bind(constants)
		b.Rule, b.Enabled, b.Mode = rule, !disabled, binding.Manage
		if observed {
			b.Mode = binding.Observe
		}
		bs = append(bs, *b)
	}
	var seen []claim.Seen
	var rules []string
	for _, text := range pods {
		f := strings.SplitN(text, " ", 3)
		p := pod(f[2])
		p.UID, p.Name = f[0], f[0]
		seen, rules = append(seen, claim.Seen{Cluster: "prod", Pod: p}), append(rules, f[1])
	}
	return bs, seen, func(pod, bind int) bool { return strings.Contains(rules[pod], bs[bind].Rule) }
}

// written is a view: claims as key=rule/uid in their order, then the rest.
func written(v claim.View, pods []claim.Seen) string {
	var out []string
	for _, c := range v.Claims {
		out = append(out, fmt.Sprintf("%s=%s/%s", c.Key, c.Rule, c.UID))
	}
	for _, p := range v.Portless {
		out = append(out, fmt.Sprintf("%d#%s", p.Binding, p.Pod.UID))
	}
	var rest []string
	for k := range v.Protected {
		rest = append(rest, k.String()+"=protected")
	}
	for id, r := range v.Refusals {
		rest = append(rest, id.UID+"!"+string(r))
	}
	for id, r := range v.Rules {
		rest = append(rest, id.UID+"<"+r)
	}
	for id, is := range v.Emptied {
		if is {
			rest = append(rest, id.UID+"0")
		}
	}
	for _, p := range pods {
		if v.Shows(p, claim.Key{ID: p.PodIP()}) {
			rest = append(rest, p.UID+"~")
		}
	}
	slices.Sort(rest)
	return strings.Join(append(out, rest...), " ")
}

// Whatever pods there are, in whatever order they come: the view is the same, and
// its keys are those of its claims and what disabled rules protect.
func TestLook_I3(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := anyGroup.Draw(t, "group")
		bs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) binding.Binding {
			b := *anyBinding.Draw(t, "binding")
			b.Rule, b.Enabled = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "rule"), !seldom.Draw(t, "disabled")
			b.Mode = rapid.SampledFrom([]binding.Mode{binding.Manage, binding.Observe}).Draw(t, "mode")
			return b
		}), 1, 4).Draw(t, "bindings")
		pods := rapid.SliceOfN(anyPod, 0, 5).Draw(t, "pods")
		selected := map[string]bool{} // uid and index of the binding
		var seen []claim.Seen
		for i, p := range pods {
			p.UID = fmt.Sprint("uid-", i)
			seen = append(seen, claim.Seen{Cluster: "prod", Pod: p})
			for j := range bs {
				selected[fmt.Sprint(p.UID, " ", j)] = rapid.Bool().Draw(t, "selected")
			}
		}
		look := func(ps []claim.Seen) claim.View {
			return claim.Look(bs, g, ps, func(pod, bind int) bool { return selected[fmt.Sprint(ps[pod].UID, " ", bind)] })
		}
		v := look(seen)
		if again := look(rapid.Permutation(seen).Draw(t, "order")); !reflect.DeepEqual(v, again) {
			t.Fatalf("in another order: %+v, then %+v", v, again)
		}
		keys := maps.Clone(v.Protected)
		for _, c := range v.Claims {
			keys[c.Key] = true
		}
		if !maps.Equal(keys, v.Keys()) {
			t.Fatalf("keys %v, want %v", v.Keys(), keys)
		}
	})
}
