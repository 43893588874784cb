package preview_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/preview"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

const queue = "arn:aws:sqs:eu-west-1:111122223333:elbridge-registrar"

func groupARN(name string) string {
	return "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/" + name + "/0123456789abcdef"
}

// side reads rules written as "name app=a,b g constants…": labels of the pods, a
// group ("?" is one that is not known) and constants as JSON members. A name that
// ends in "-off" is of a disabled rule, "@dev" behind it pins another cluster
// than prod, "@" pins none.
func side(t *testing.T, lines ...string) preview.Side {
	t.Helper()
	var s preview.Side
	for _, line := range lines {
		f := strings.Fields(line)
		name, cluster, pins := strings.Cut(f[0], "@")
		if !pins {
			cluster = "prod"
		}
		apps := strings.Split(strings.TrimPrefix(f[1], "app="), ",")
		detail := fmt.Sprintf(`"labels":{"app":["%s"]}`, strings.Join(apps, `","`))
		if cluster != "" {
			detail = `"cluster":["` + cluster + `"],` + detail
		}
		constants := `"targetGroup":"` + groupARN(f[2]) + `"`
		if f[2] == "?" {
			constants = `"targetGroup":{"name":"unknown"}`
		}
		for _, c := range f[3:] {
			constants += "," + c
		}
		r := binding.Rule{ARN: "arn:aws:events:eu-west-1:111122223333:rule/elbridge/" + name, Name: name,
			Pattern: `{"source":["elbridge"],"detail-type":["Pod State Change"],"detail":{` + detail + `}}`}
		if strings.HasSuffix(name, "-off") {
			r.State = "DISABLED"
		}
		bs, err := binding.FromRule(r, []binding.Target{{ID: "registrar", ARN: queue, Transformer: &binding.Transformer{
			Template: `{"binding":{` + constants + `},"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`}}}, queue)
		if err != nil {
			t.Fatal(err)
		}
		s.Bindings = append(s.Bindings, bs...)
	}
	return s
}

// group reads "g foreign frozen 1=healthy 2=draining": the last part of addresses
// in 10.0.0.0/24, on port 80.
func group(t *testing.T, line string) preview.Group {
	t.Helper()
	f := strings.Fields(line)
	g := preview.Group{Group: claim.Group{ARN: groupARN(f[0]), Type: claim.IP, Family: claim.IPv4, Port: 80}, Name: f[0], Owned: true, Targets: map[claim.Key]plan.Target{}}
	for _, s := range f[1:] {
		n, health, is := strings.Cut(s, "=")
		switch {
		case s == "foreign":
			g.Owned = false
		case s == "frozen":
			g.Frozen = true
		case s == "unread":
			g.Problem = "not read: access denied"
		case is:
			g.Targets[claim.Key{ID: "10.0.0." + n, Port: 80}] = plan.Target{Health: plan.Health(health)}
		default:
			t.Fatalf("group word %q", s)
		}
	}
	return g
}

// pods reads "1:a 2:b! 3:a~ 4:a#": pods by address and app; ! terminates, ~ is not
// ready, # has finished.
func pods(text string) []claim.Seen {
	var out []claim.Seen
	for _, s := range strings.Fields(text) {
		n, app, _ := strings.Cut(s, ":")
		p := &podevent.Pod{Namespace: "shop", Name: "p" + n, UID: "u" + n, NodeName: "node", Phase: "Running", Ready: true, ContainersReady: true,
			PodIPs: []string{"10.0.0." + n}}
		app, p.Terminating = strings.CutSuffix(app, "!")
		app, unready := strings.CutSuffix(app, "~")
		if rest, finished := strings.CutSuffix(app, "#"); finished {
			app, unready, p.Phase = rest, true, "Failed"
		}
		p.Ready, p.ContainersReady = !unready, !unready
		p.Labels = map[string]string{"app": app}
		out = append(out, claim.Seen{Cluster: "prod", Pod: p})
	}
	return out
}

func world(t *testing.T, podText string, groups ...string) *preview.World {
	t.Helper()
	w := &preview.World{Pods: pods(podText), Read: []string{"prod"}, Account: "111122223333", Region: "eu-west-1", At: time.Unix(1e9, 0),
		Ready: func(cluster, node string) bool { return cluster == "prod" && node == "node" }}
	for _, g := range groups {
		w.Groups = append(w.Groups, group(t, g))
	}
	return w
}

func ids(ks []targetevent.Key) string {
	var out []string
	for _, k := range ks {
		out = append(out, strings.TrimPrefix(k.ID, "10.0.0."))
	}
	return strings.Join(out, ",")
}

// said writes an effect as "+gained -lost ~later =held ^kept ?+would ?-would orphans=n unknown/unjudged".
func said(e preview.Effect) string {
	var out []string
	for _, part := range []struct {
		mark string
		keys []targetevent.Key
	}{{"+", e.Gained}, {"-", e.Lost}, {"~", e.Later}, {"=", e.Held}, {"^", e.Kept}, {"?+", e.WouldGain}, {"?-", e.WouldLose}} {
		if len(part.keys) > 0 {
			out = append(out, part.mark+ids(part.keys))
		}
	}
	if e.Orphaned > 0 {
		out = append(out, fmt.Sprintf("orphans=%d", e.Orphaned))
	}
	if !e.Known() {
		out = append(out, fmt.Sprintf("unknown/%d", e.Unjudged))
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, " ")
}

const four = "g 1=healthy 2=healthy 3=healthy 4=healthy"

func TestCompare(t *testing.T) {
	tests := map[string]struct {
		old, new []string
		pods     string
		groups   []string
		want     string // by group: "g: …; h: …"
		clusters []string
	}{
		"nothing changed":              {old: []string{"r app=a g"}, new: []string{"r app=a g"}, pods: "1:a", groups: []string{"g"}, want: ""},
		"a new rule":                   {new: []string{"r app=a g"}, pods: "1:a 2:a 3:b", groups: []string{"g"}, want: "g: +1,2"},
		"more pods":                    {old: []string{"r app=a g"}, new: []string{"r app=a,b g"}, pods: "1:a 2:b", groups: []string{"g 1=healthy"}, want: "g: +2"},
		"one pod fewer":                {old: []string{"r app=a,b g"}, new: []string{"r app=a g"}, pods: "1:a 2:a 3:a 4:b", groups: []string{four}, want: "g: -4"},
		"I9 a changed rule: many held": {old: []string{"r app=a,b g"}, new: []string{"r app=a g"}, pods: "1:a 2:a 3:b 4:b", groups: []string{four}, want: "g: =3,4"},
		"I9 a limit that lets them go": {old: []string{"r app=a,b g"}, new: []string{`r app=a g "maxRemovalPercent":50`}, pods: "1:a 2:a 3:b 4:b", groups: []string{four}, want: "g: -3,4"},
		"I9 what ended goes":           {old: []string{"r app=a,b g"}, new: []string{"r app=a g"}, pods: "1:a 2:a 3:a! 4:b", groups: []string{four}, want: "g: -4"},
		"I8 the last rule goes":        {old: []string{"r app=a g"}, pods: "1:a 2:a 3:a 4:a", groups: []string{four}, want: "g: orphans=4"},
		"I8 a rule is disabled":        {old: []string{"r-off app=a g"}, new: []string{"r-off app=a,b g"}, pods: "1:a 2:b", groups: []string{"g 1=healthy"}, want: "g: nothing"},
		"I8 empty, in steps":           {old: []string{"r app=a g"}, new: []string{`r app=a g "empty":true`}, pods: "1:a 2:a 3:a 4:a", groups: []string{four}, want: "g: -1 ~2,3,4"},
		"I8 empty, to the last":        {old: []string{"r app=a g"}, new: []string{`r app=a g "empty":true,"maxRemovalPercent":100`}, pods: "1:a 2:a", groups: []string{four}, want: "g: -1,2,3,4"},
		"I8 empty, one rule of two":    {old: []string{"r app=a g", "s app=b g"}, new: []string{`r app=a g "empty":true,"maxRemovalPercent":100`, "s app=b g"}, pods: "1:a 2:b 3:a!", groups: []string{four}, want: "g: -1"},
		"I8 empty, to strangers not":   {old: []string{"r app=a g"}, new: []string{`r app=a g "empty":true,"maxRemovalPercent":100`}, pods: "1:a 2:a 3:c 4:c", groups: []string{four}, want: "g: -1,2"},
		"I8 empty, nobody's go too":    {old: []string{"r app=a g"}, new: []string{`r app=a g "empty":true,"maxRemovalPercent":100`}, pods: "1:a 2:a 3:c! 4:c#", groups: []string{four}, want: "g: -1,2,3,4"},
		"P046 a finished pod's object": {old: []string{"r app=a,b g"}, new: []string{`r app=a g "minTargets":4`}, pods: "1:a 2:a 3:a! 4:a#", groups: []string{four}, want: "g: =4"},
		"another port":                 {old: []string{"r app=a g"}, new: []string{`r app=a g "port":81`}, pods: "1:a 2:a 3:a 4:a", groups: []string{four}, want: "g: +1,2,3,4 =1,2,3,4"},
		"to another group":             {old: []string{"r app=a g"}, new: []string{"r app=a h"}, pods: "1:a", groups: []string{"g 1=healthy", "h"}, want: "g: orphans=1; h: +1"},
		"a stricter registerWhen":      {old: []string{"r app=a g"}, new: []string{`r app=a g "registerWhen":"Ready"`}, pods: "1:a 2:a 3:a 4:a~", groups: []string{four}, want: "g: -4"},
		"claimed again":                {old: []string{"r app=a g"}, new: []string{"r app=a,b g"}, pods: "1:a 2:b", groups: []string{"g 1=healthy 2=healthy"}, want: "g: ^2"},
		"what differs anyway":          {old: []string{"r app=a g"}, new: []string{`r app=a g "minTargets":2`}, pods: "1:a 2:a 3:a", groups: []string{four}, want: "g: nothing"},
		"I9 minTargets holds":          {old: []string{"r app=a g"}, new: []string{`r app=a g "minTargets":4`}, pods: "1:a 2:a 3:a", groups: []string{four}, want: "g: =4"},
		"I18 not the owner's":          {old: []string{"r app=a,b g"}, new: []string{"r app=a g"}, pods: "1:a 2:b", groups: []string{"g foreign 1=healthy 2=healthy"}, want: "g: =2"},
		"I18 foreign targets are kept": {old: []string{"r app=a g"}, new: []string{`r app=a g "foreignTargets":"keep"`}, pods: "1:a", groups: []string{"g 1=healthy 2=unhealthy"}, want: "g: =2"},
		"frozen":                       {old: []string{"r app=a,b g"}, new: []string{"r app=a g"}, pods: "1:a 2:b", groups: []string{"g frozen 1=healthy 2=healthy"}, want: "g: =2"},
		"I19 a new rule that observes": {new: []string{`r app=a g "mode":"observe"`}, pods: "1:a", groups: []string{"g 9=healthy"}, want: "g: ?+1 ?-9"},
		"I19 taking over":              {old: []string{`r app=a g "mode":"observe"`}, new: []string{"r app=a g"}, pods: "1:a 2:a", groups: []string{"g 1=healthy 8=unhealthy"}, want: "g: +2 -8"},
		"I19 giving back":              {old: []string{"r app=a g"}, new: []string{`r app=a g "mode":"observe"`}, pods: "1:a 2:a", groups: []string{"g 1=healthy 8=unhealthy"}, want: "g: ^8 ?+2 ?-8"},
		"I8 a cluster was not read":    {old: []string{"r@dev app=a,b g"}, new: []string{"r@dev app=a g"}, pods: "", groups: []string{"g 1=healthy 2=healthy"}, want: "g: unknown/2"},
		"I8 a cluster joins, unread":   {old: []string{"r app=a g"}, new: []string{"r app=a g", "s@dev app=a g"}, pods: "1:a", groups: []string{"g 1=healthy 2=healthy"}, want: "g: unknown/1"},
		"I8 a cluster leaves, unread":  {old: []string{"r app=a g", "s@dev app=a g"}, new: []string{"r app=a g"}, pods: "1:a", groups: []string{"g 1=healthy 2=healthy"}, want: "g: unknown/1"},
		"I8 every cluster":             {old: []string{"r@ app=a,b g"}, new: []string{"r@ app=a g"}, pods: "1:a 2:b", groups: []string{"g 1=healthy 2=healthy"}, want: "g: unknown/1"},
		"every cluster was read":       {old: []string{"r@ app=a,b g"}, new: []string{"r@ app=a g"}, pods: "1:a 2:b", groups: []string{"g 1=healthy 2=healthy"}, clusters: []string{"prod"}, want: "g: -2"},
		"I8 additions in spite of it":  {old: []string{"r@ app=a g"}, new: []string{"r@ app=a,b g"}, pods: "1:a 2:b", groups: []string{"g 1=healthy"}, want: "g: +2 unknown/0"},
		"I8 a group was not read":      {old: []string{"r app=a,b g"}, new: []string{"r app=a g"}, pods: "1:a 2:b", groups: []string{"g unread"}, want: "g: unknown/0"},
		"I8 a group nobody looked at":  {old: []string{"r app=a,b g"}, new: []string{"r app=a g"}, pods: "1:a 2:b", want: groupARN("g") + ": unknown/0"},
		"I8 a rule of some group":      {old: []string{"r app=a,b g"}, new: []string{"r app=a g", "s app=b ?"}, pods: "1:a 2:b", groups: []string{"g 1=healthy 2=healthy"}, want: "g: unknown/1"},
		"I8 orphaned, or of that rule": {old: []string{"r app=a g"}, new: []string{"r app=a ?"}, pods: "1:a", groups: []string{"g 1=healthy"}, want: "g: unknown/1"},
		"draining is absent I5":        {old: []string{"r app=a,b g"}, new: []string{"r app=a g"}, pods: "1:a 2:b", groups: []string{"g 1=draining 2=draining"}, want: "g: nothing"},
		"two rules, one still has it":  {old: []string{"r app=a g", "s app=a g"}, new: []string{"r app=a g"}, pods: "1:a", groups: []string{"g 1=healthy"}, want: "g: nothing"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := world(t, tt.pods, tt.groups...)
			w.Clusters = tt.clusters
			es, err := w.Compare(side(t, tt.old...), side(t, tt.new...))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range es {
				if e.Gain != len(e.Gained) || e.Lose != len(e.Lost) || e.Hold != len(e.Held) || (e.Hold > 0) != (e.Hash != "") {
					t.Errorf("counts of %+v", e.Effect)
				}
				if want := e.Lose+e.Hold+len(e.Later)+e.Orphaned > 0; e.Removes() != want {
					t.Errorf("Removes() = %t of %s", e.Removes(), said(e))
				}
				if e.Nothing() != (said(e) == "nothing") {
					t.Errorf("Nothing() = %t of %s", e.Nothing(), said(e))
				}
				got = append(got, e.Name+": "+said(e))
			}
			if s := strings.Join(got, "; "); s != tt.want {
				t.Errorf("got %q, want %q", s, tt.want)
			}
		})
	}
}

func TestCompare_Standing(t *testing.T) {
	w := world(t, "1:a 2:a 3:a 5:a", four)
	es, err := w.Compare(side(t, "r app=a g"), side(t, `r app=a g "minTargets":2`))
	if err != nil || len(es) != 1 {
		t.Fatal(es, err)
	}
	if es[0].Standing != 2 || !es[0].Nothing() {
		t.Errorf("%+v, want 5 missing and 4 extra, whatever the rules", es[0])
	}
}

// Every key says which pod, which rule, and why.
func TestCompare_Words(t *testing.T) {
	tests := map[string]struct{ old, new, pods, group, want string }{
		"gained":         {"r app=b g", "r app=a g", "1:a", "g", "shop/p1 r: rule r selects the pod"},
		"drains":         {"r app=b g", "r app=a g", "1:a", "g 1=draining", "and its target drains"},
		"deselected":     {"r app=a,b g", "r app=a g", "1:a 2:b", "g 1=healthy 2=healthy", "shop/p2 : no rule selects the pod any more; r did; within the limit"},
		"held":           {"r app=a,b g", "r app=a g", "1:b 2:b", "g 1=healthy 2=healthy", "r did: no second witness, and more than the limit would go"},
		"not ready":      {"r app=a g", `r app=a g "registerWhen":"Ready"`, "1:a 2:a~", "g 1=healthy 2=healthy", "shop/p2 r: pod is not ready"},
		"emptied":        {"r app=a g", `r app=a g "empty":true`, "1:a", "g 1=healthy", "shop/p1 r: binding is emptied"},
		"another port":   {"r app=a g", `r app=a g "port":81`, "1:a", "g 1=unused", "the pod claims another address or port"},
		"nobody's":       {`r app=a g "mode":"observe"`, "r app=a g", "1:a", "g 1=healthy 7=unhealthy", " : no pod has the address"},
		"never selected": {`r app=a g "mode":"observe"`, "r app=a g", "1:a 7:c", "g 1=healthy 7=unhealthy", "shop/p7 : no rule selects the pod"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			es, err := world(t, tt.pods, tt.group).Compare(side(t, tt.old), side(t, tt.new))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, k := range slices.Concat(es[0].Gained, es[0].Lost, es[0].Held, es[0].Later) {
				got = append(got, fmt.Sprintf("%s %s: %s", k.Pod, preview.RuleName(k.Rule), k.Reason))
			}
			if s := strings.Join(got, "\n"); !strings.Contains(s, tt.want) {
				t.Errorf("got %q, want %q in it", s, tt.want)
			}
		})
	}
}

// A group that is not elbridge's loses an ended pod's target only if its address is
// within podCIDRs of a binding that selects the pod.
func TestCompare_Shown_I18(t *testing.T) {
	tests := map[string]struct {
		rules []string
		more  string // another address of the pod
		held  int
	}{
		"its own address":          {rules: []string{`r app=a g "podCIDRs":["10.0.0.0/24"]`}},
		"another address":          {rules: []string{`r app=a g "podCIDRs":["fd00::/64"]`}, more: "fd00::2", held: 1},
		"another binding's blocks": {rules: []string{"r app=a g", `s app=b g "podCIDRs":["10.0.0.0/24"]`}, held: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := world(t, "1:a 2:a!", "g foreign 1=healthy 2=healthy")
			if tt.more != "" {
				w.Pods[1].PodIPs = append(w.Pods[1].PodIPs, tt.more)
				w.Pods[0].PodIPs = append(w.Pods[0].PodIPs, "fd00::1")
			}
			ps, err := w.Plans(side(t, tt.rules...))
			if err != nil {
				t.Fatal(err)
			}
			var of2 []plan.Change
			for _, c := range ps[0].Changes.Held {
				if c.ID == "10.0.0.2" {
					of2 = append(of2, c)
				}
			}
			if len(of2) != tt.held {
				t.Errorf("held %v, deregistered %v, want %d held", ps[0].Changes.Held, ps[0].Changes.Deregister, tt.held)
			}
		})
	}
}

// What a rule that covers nothing may mean loses nothing; where such a rule is
// mended, what was held for it is lost by the change.
func TestCompare_Maybe_I8(t *testing.T) {
	for name, tt := range map[string]struct {
		before, after bool
		want          string
	}{
		"faulty":           {true, true, "unknown/1"},
		"faulty since now": {false, true, "unknown/1"},
		"mended":           {true, false, "-2"},
		"never faulty":     {false, false, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			sides := []preview.Side{side(t, "r app=a g"), side(t, `r app=a g "minTargets":0`)}
			for i, faulty := range []bool{tt.before, tt.after} {
				if faulty {
					sides[i].Maybe = map[string][]string{groupARN("g"): {"rule s may name it"}, groupARN("h"): {"another's"}}
				}
			}
			es, err := world(t, "1:a 2:b", "g 1=healthy 2=healthy").Compare(sides[0], sides[1])
			if err != nil || len(es) != 1 {
				t.Fatal(es, err)
			}
			if got := said(es[0]); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	s := preview.Side{Maybe: map[string][]string{groupARN("g"): {"rule s may name it"}}}
	es, err := world(t, "1:a", "g 1=healthy").Compare(side(t, "r app=a g"), s)
	if err != nil || len(es) != 1 || said(es[0]) != "unknown/1" {
		t.Errorf("the last rule goes, but for one that is faulty: %v, %v", es, err)
	}
}

// The hash is the one under which the plan can be approved.
func TestCompare_HashIsThePlans_I9(t *testing.T) {
	w, after := world(t, "1:a 2:a 3:b 4:b", four), side(t, "r app=a g")
	es, err := w.Compare(side(t, "r app=a,b g"), after)
	if err != nil {
		t.Fatal(err)
	}
	ps, err := w.Plans(after)
	if err != nil {
		t.Fatal(err)
	}
	if got := ps[0].Changes.Approve(groupARN("g"), es[0].Hash); len(got.Held) != 0 || len(got.Deregister) != 2 {
		t.Errorf("approving %q leaves %v", es[0].Hash, got.Held)
	}
}

func TestCompare_NodeNotReady_I9(t *testing.T) {
	w := world(t, "1:a! 2:a!", "g 1=healthy 2=healthy")
	for ready, want := range map[bool]int{true: 0, false: 2} {
		w.Ready = func(string, string) bool { return ready }
		ps, err := w.Plans(side(t, "r app=a g"))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(ps[0].Changes.Held); got != want {
			t.Errorf("node ready %t: %d held, want %d", ready, got, want)
		}
	}
	w.Ready = nil
	if ps, err := w.Plans(side(t, "r app=a g")); err != nil || len(ps[0].Changes.Held) != 2 {
		t.Errorf("no node is known: %v, %v", ps, err)
	}
}

func TestRules(t *testing.T) {
	tests := map[string]struct{ old, new, want string }{
		"same":     {"r app=a g", "r app=a g", ""},
		"added":    {"", "r app=a g", "r added"},
		"removed":  {"r app=a g", "", "r removed"},
		"pattern":  {"r app=a g", "r app=b g", "r pattern"},
		"port":     {"r app=a g", `r app=a g "port":81`, "r constants port the group's → 81"},
		"named":    {`r app=a g "port":81`, `r app=a g "port":"http"`, "r constants port 81 → http"},
		"mode":     {"r app=a g", `r app=a g "mode":"observe"`, "r constants mode manage → observe"},
		"foreign":  {"r app=a g", `r app=a g "foreignTargets":"keep"`, "r constants foreignTargets remove → keep"},
		"blocks":   {"r app=a g", `r app=a g "podCIDRs":["10.0.0.0/8"]`, "r constants podCIDRs none → 10.0.0.0/8"},
		"group":    {"r app=a g", "r app=a ?", "r constants targetGroup " + groupARN("g") + " → unknown"},
		"several":  {"r app=a g", `r app=b g "empty":true`, "r pattern constants"},
		"reworked": {"r app=a g", "s app=a g", "r removed; s added"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			sides := [2]preview.Side{}
			for i, line := range []string{tt.old, tt.new} {
				if line != "" {
					sides[i] = side(t, line)
				}
			}
			var got []string
			for _, c := range preview.Rules(sides[0].Bindings, sides[1].Bindings) {
				s := c.Rule
				for _, k := range c.Changes {
					s += " " + string(k)
				}
				if len(c.Changes) == 1 && c.Changes[0] == targetevent.ConstantsChanged {
					s += " " + strings.Join(c.Details, ", ")
				}
				got = append(got, s)
			}
			if s := strings.Join(got, "; "); s != tt.want {
				t.Errorf("got %q, want %q", s, tt.want)
			}
		})
	}
}

// Account and region of a file's rules are made up; states count.
func TestRules_ByName(t *testing.T) {
	old, new := side(t, "r app=a g"), side(t, "r app=a g")
	new.Bindings[0].Rule = strings.ReplaceAll(new.Bindings[0].Rule, "111122223333", "000000000000")
	if got := preview.Rules(old.Bindings, new.Bindings); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	new.Bindings[0].Enabled = false
	if got := preview.Rules(old.Bindings, new.Bindings); len(got) != 1 || got[0].Changes[0] != targetevent.RuleDisabled {
		t.Errorf("got %v, want disabled", got)
	}
}

func TestReports_I19(t *testing.T) {
	const observe = ` "mode":"observe"`
	tests := map[string]struct {
		rules []string
		pods  string
		group string
		all   bool
		want  string
	}{
		"agrees":                      {rules: []string{"r app=a g" + observe}, pods: "1:a", group: "g 1=healthy", want: "r observe agrees"},
		"would register":              {rules: []string{"r app=a g" + observe}, pods: "1:a", group: "g", want: "r observe +1"},
		"would deregister":            {rules: []string{"r app=a g" + observe}, pods: "1:a", group: "g 1=healthy 7=unhealthy", want: "r observe -7"},
		"would hold":                  {rules: []string{"r app=a g" + observe}, pods: "1:a", group: "g 1=healthy 7=healthy 8=healthy", want: "r observe =7,8"},
		"would empty":                 {rules: []string{`r app=a g "empty":true,"mode":"observe"`}, pods: "1:a 2:a", group: "g 1=healthy 2=healthy", want: "r observe -1 ~2"},
		"managed ones are not asked":  {rules: []string{"r app=a g"}, pods: "1:a", group: "g", want: ""},
		"unless all are":              {rules: []string{"r app=a g"}, pods: "1:a", group: "g", all: true, want: "r manage +1"},
		"nobody's needs all to agree": {rules: []string{"r app=a g" + observe, "s app=b g" + observe}, pods: "1:a", group: "g 1=healthy 7=unhealthy", want: "r observe waits=1; s observe waits=1"},
		"the last one decides":        {rules: []string{"r app=a g" + observe, "s app=b g"}, pods: "1:a 2:b", group: "g 1=healthy 7=unhealthy", want: "r observe -7"},
		"each its own":                {rules: []string{"r app=a g" + observe, "s app=b g"}, pods: "1:a 2:b", group: "g", want: "r observe +1"},
		"I8 not read":                 {rules: []string{"r@dev app=a g" + observe}, pods: "1:a", group: "g 1=healthy", want: "r observe unknown/1"},
		"I8 the group was not read":   {rules: []string{"r app=a g" + observe}, pods: "1:a", group: "g unread", want: "r observe unknown/0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ps, err := world(t, tt.pods, tt.group).Plans(side(t, tt.rules...))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range preview.Reports(ps, tt.all) {
				s := r.Rule + " " + string(r.Mode)
				for mark, ks := range map[string][]targetevent.Key{"+": r.Register, "=": r.Held} {
					if len(ks) > 0 {
						s += " " + mark + ids(ks)
					}
				}
				if len(r.Deregister) > 0 {
					s += " -" + ids(r.Deregister)
				}
				if len(r.Later) > 0 {
					s += " ~" + ids(r.Later)
				}
				if r.Waits > 0 {
					s += fmt.Sprintf(" waits=%d", r.Waits)
				}
				if len(r.Unknown) > 0 {
					s += fmt.Sprintf(" unknown/%d", r.Unjudged)
				}
				if r.Agrees() {
					s += " agrees"
				}
				got = append(got, s)
			}
			if s := strings.Join(got, "; "); s != tt.want {
				t.Errorf("got %q, want %q", s, tt.want)
			}
		})
	}
}
