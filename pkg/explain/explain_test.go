package explain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/explain"
	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
)

const (
	queue = "arn:aws:sqs:eu-west-1:111122223333:elbridge-registrar"
	bus   = "arn:aws:events:eu-west-1:111122223333:event-bus/elbridge"
)

func groupARN(name string) string {
	return "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/" + name + "/0123456789abcdef"
}

// bindingsOf reads rules written as "name | fields of detail | group constants":
// a name that ends in "-off" is of a disabled rule.
func bindingsOf(t *testing.T, lines ...string) []binding.Binding {
	t.Helper()
	var out []binding.Binding
	for _, line := range lines {
		p := strings.SplitN(line, "|", 3)
		name := strings.TrimSpace(p[0])
		group, more, _ := strings.Cut(strings.TrimSpace(p[2]), " ")
		if more != "" {
			more = "," + more
		}
		r := binding.Rule{ARN: "arn:aws:events:eu-west-1:111122223333:rule/elbridge/" + name, Name: name, State: "ENABLED",
			Pattern: `{"source":["elbridge"],"detail-type":["Pod State Change"],"detail":{` + strings.TrimSpace(p[1]) + `}}`}
		if strings.HasSuffix(name, "-off") {
			r.State = "DISABLED"
		}
		bs, err := binding.FromRule(r, []binding.Target{{ID: "registrar", ARN: queue, Transformer: &binding.Transformer{
			Template: `{"binding":{"targetGroup":"` + groupARN(group) + `"` + more + `},"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`}}}, queue)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, bs...)
	}
	return out
}

// world reads groups written as "name ip:port=health … !owned".
func world(t *testing.T, rules []string, groups ...string) *explain.World {
	t.Helper()
	w := &explain.World{Cluster: "prod", Bindings: bindingsOf(t, rules...), Groups: map[string]explain.Group{}, At: time.Unix(0, 0)}
	for _, line := range groups {
		f := strings.Fields(line)
		g := explain.Group{Group: lint.Group{Group: claim.Group{ARN: groupARN(f[0]), Type: claim.IP, Family: claim.IPv4, Port: 80}, Name: f[0],
			Tags: map[string]string{binding.OwnerTag: bus}}, Targets: map[claim.Key]plan.Target{}}
		for _, s := range f[1:] {
			switch key, health, ok := strings.Cut(s, "="); {
			case s == "unowned":
				g.Tags = map[string]string{}
			case s == "frozen":
				g.Tags[binding.FreezeTag] = "by kim"
			case s == "unread":
				g.Problem = lint.Unread
			case s == "gone":
				g.Problem = lint.NotFound
			case ok:
				k, err := explain.ParseKey(key)
				if err != nil {
					t.Fatal(err)
				}
				g.Targets[k] = plan.Target{Health: plan.Health(health)}
			}
		}
		w.Groups[g.ARN] = g
	}
	return w
}

// pod writes a pod as "name ip label=value +ready".
func pod(line string) *podevent.Pod {
	f := strings.Fields(line)
	p := &podevent.Pod{Namespace: "web", Name: f[0], UID: f[0], Labels: map[string]string{}, Phase: "Running"}
	for _, s := range f[1:] {
		switch k, v, isLabel := strings.Cut(s, "="); {
		case isLabel:
			p.Labels[k] = v
		case s == "+ready":
			p.Ready, p.ContainersReady = true, true
		case s == "+terminating":
			p.Terminating = true
		default:
			p.PodIPs = append(p.PodIPs, s)
		}
	}
	return p
}

const selector = `"cluster":["prod"],"namespace":["web"],"labels":{"app":["a"]}`

func TestPod(t *testing.T) {
	tests := map[string]struct {
		rule, group, pod string
		want             []string // parts of "selected reason | claim refusal | state | stale | note"
	}{
		"registered":            {selector + " | g", "g 10.0.0.1:80=healthy", "p 10.0.0.1 app=a", []string{"yes match", "| 10.0.0.1:80 | healthy"}},
		"not yet registered":    {selector + " | g", "g", "p 10.0.0.1 app=a", []string{"| 10.0.0.1:80 | not registered"}},
		"port of the binding":   {selector + ` | g "port":9999`, "g 10.0.0.1:80=healthy", "p 10.0.0.1 app=a", []string{"10.0.0.1:9999 | not registered | 10.0.0.1:80 healthy"}},
		"other label":           {selector + " | g", "g", "p 10.0.0.1 app=b", []string{`no no match: detail.labels.app is "b", want ["a"]`}},
		"no label":              {selector + " | g", "g", "p 10.0.0.1", []string{"detail.labels.app is absent"}},
		"other cluster":         {strings.Replace(selector, "prod", "dev", 1) + " | g", "g", "p 10.0.0.1 app=a", []string{`detail.cluster is "prod", want ["dev"]`}},
		"terminating I4":        {selector + " | g", "g 10.0.0.1:80=draining", "p 10.0.0.1 app=a +terminating", []string{"pod is terminating", "10.0.0.1:80 draining"}},
		"not ready":             {selector + ` | g "registerWhen":"Ready"`, "g", "p 10.0.0.1 app=a", []string{"pod is not ready"}},
		"no address":            {selector + " | g", "g", "p app=a", []string{"no address of the group's family yet"}},
		"group is gone P053":    {selector + " | g", "g gone", "p 10.0.0.1 app=a", []string{"target group not found"}},
		"group was not read":    {selector + " | g", "other", "p 10.0.0.1 app=a", []string{"not read"}},
		"group can't be read":   {selector + " | g", "g unread", "p 10.0.0.1 app=a", []string{"| not read"}},
		"mode observe I19":      {selector + ` | g "mode":"observe"`, "g", "p 10.0.0.1 app=a", []string{"mode observe"}},
		"state in the pattern":  {selector + `,"ready":[true] | g`, "g", "p 10.0.0.1 app=a", []string{"detail.ready is false, want [true]"}},
		"state that holds now":  {selector + `,"ready":[true] | g`, "g", "p 10.0.0.1 app=a +ready", []string{"yes match"}},
		"outside the podCIDRs":  {selector + ` | g "podCIDRs":["10.1.0.0/16"]`, "g", "p 10.0.0.1 app=a", []string{"outside podCIDRs"}},
		"account of the bus":    {selector + " | g", "g", "p 10.0.0.1 app=a", []string{"yes"}},
		"emptied":               {selector + ` | g "empty":true`, "g 10.0.0.1:80=healthy", "p 10.0.0.1 app=a", []string{"binding is emptied", "10.0.0.1:80 healthy"}},
		"second family of pods": {selector + " | g", "g", "p fd00::1 10.0.0.1 app=a", []string{"10.0.0.1:80"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := world(t, []string{"r | " + tt.rule}, tt.group)
			a, err := w.Pod(pod(tt.pod))
			if err != nil {
				t.Fatal(err)
			}
			v := a.Bindings[0]
			got := fmt.Sprintf("%s %s | %s%s | %s | %s | %s", map[bool]string{true: "yes", false: "no"}[v.Selected], v.Reason, v.Claim, v.Refusal, v.State, strings.Join(v.Stale, ","), v.Note)
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("got %q, want %q in it", got, want)
				}
			}
			if !strings.Contains(a.LastCause, "not known") {
				t.Errorf("claims to know the last cause: %q", a.LastCause)
			}
		})
	}
}

func TestPod_SelectingBindingsFirst(t *testing.T) {
	w := world(t, []string{"a | " + strings.Replace(selector, `"a"`, `"b"`, 1) + " | g", "b-off | " + selector + " | g", "c | " + selector + " | h"}, "g", "h")
	w.Faults = []*binding.Fault{{Rule: "d", TargetID: "t", Path: "$.binding.port", Reason: "0"}}
	a, err := w.Pod(pod("p 10.0.0.1 app=a"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range a.Bindings {
		got = append(got, fmt.Sprint(v.Rule, v.Selected))
	}
	if s := strings.Join(got, " "); s != "b-offtrue ctrue afalse" {
		t.Errorf("order %s", s)
	}
	if !strings.Contains(a.Bindings[0].Note, "disabled") || len(a.Invalid) != 1 || !strings.Contains(a.Invalid[0], "rule d: target t") {
		t.Errorf("answer %+v", a)
	}
}

func TestTarget(t *testing.T) {
	const other = `other | "cluster":["prod","dev"],"namespace":["x"] | g`
	tests := map[string]struct {
		rules []string
		group string
		key   string
		pods  []string
		want  string
	}{
		"claimed and registered": {[]string{"r | " + selector + " | g"}, "g 10.0.0.1:80=healthy", "10.0.0.1:80", []string{"p 10.0.0.1 app=a"}, "as it should be"},
		"claimed, not there":     {[]string{"r | " + selector + " | g"}, "g", "10.0.0.1:80", []string{"p 10.0.0.1 app=a"}, "it is not registered: it is with the next look"},
		"claimed, drains I5":     {[]string{"r | " + selector + " | g"}, "g 10.0.0.1:80=draining", "10.0.0.1:80", []string{"p 10.0.0.1 app=a"}, "registered again"},
		"unclaimed":              {[]string{"r | " + selector + " | g"}, "g 10.0.0.1:80=healthy", "10.0.0.1:80", nil, "drift; it is removed within the group's rails"},
		"pod of other labels":    {[]string{"r | " + selector + " | g"}, "g 10.0.0.1:80=healthy", "10.0.0.1:80", []string{"p 10.0.0.1"}, "drift"},
		"other port":             {[]string{"r | " + selector + " | g"}, "g 10.0.0.1:81=healthy", "10.0.0.1:81", []string{"p 10.0.0.1 app=a"}, "drift"},
		"unowned I18":            {[]string{"r | " + selector + " | g"}, "g 10.0.0.1:80=healthy unowned", "10.0.0.1:80", nil, "not elbridge's to remove"},
		"frozen I9":              {[]string{"r | " + selector + " | g"}, "g 10.0.0.1:80=healthy frozen", "10.0.0.1:80", nil, "as long as the group is frozen (elbridge:freeze: by kim)"},
		"kept I18":               {[]string{"r | " + selector + ` | g "foreignTargets":"keep"`}, "g 10.0.0.1:80=healthy", "10.0.0.1:80", nil, "not elbridge's to remove"},
		"another cluster":        {[]string{other}, "g 10.0.0.1:80=healthy", "10.0.0.1:80", nil, "not asked: pods of dev"},
		"any cluster":            {[]string{`r | "namespace":["x"] | g`}, "g 10.0.0.1:80=healthy", "10.0.0.1:80", nil, "not asked: pods of every other cluster"},
		"drains":                 {[]string{"r | " + selector + " | g"}, "g 10.0.0.1:80=draining", "10.0.0.1:80", nil, "it drains"},
		"nothing":                {[]string{"r | " + selector + " | g"}, "g", "10.0.0.1:80", nil, "no pod claims it, and it is not registered"},
		"no binding I8":          {[]string{"r | " + selector + " | h"}, "g 10.0.0.1:80=healthy", "10.0.0.1:80", nil, "no binding names this group"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := world(t, tt.rules, tt.group)
			k, err := explain.ParseKey(tt.key)
			if err != nil {
				t.Fatal(err)
			}
			var pods []*podevent.Pod
			for _, p := range tt.pods {
				pods = append(pods, pod(p))
			}
			a, err := w.Target(w.Groups[groupARN("g")], k, pods)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(a.Conclude, tt.want) {
				t.Errorf("concludes %q, want %q in it", a.Conclude, tt.want)
			}
		})
	}
}

func TestParseKey(t *testing.T) {
	for in, want := range map[string]string{
		"10.0.0.1:80": "10.0.0.1:80", "[fd00::1]:80": "[fd00::1]:80", "[::ffff:10.0.0.1]:80": "10.0.0.1:80", "i-0123456789abcdef0:30080": "i-0123456789abcdef0:30080",
		"10.0.0.1": "", "10.0.0.1:0": "", "10.0.0.1:65536": "", "fd00::1:80": "", "": "", "i-1:x": "",
	} {
		k, err := explain.ParseKey(in)
		if got := k.String(); err == nil && got != want || (err != nil) != (want == "") {
			t.Errorf("ParseKey(%q) = %s, %v; want %q", in, got, err, want)
		}
	}
}

func num(n *int) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

func TestOverview(t *testing.T) {
	rules := []string{"a | " + selector + " | g", "b-off | " + strings.Replace(selector, `"a"`, `"b"`, 1) + " | g", `c | "namespace":["web"],"labels":{"app":["c"]} | h "mode":"observe"`}
	groups := []string{"g 10.0.0.1:80=healthy 10.0.0.2:80=draining 10.0.0.3:80=healthy 10.0.0.9:80=unhealthy", "h 10.0.0.8:80=healthy"}
	pods := []*podevent.Pod{pod("p1 10.0.0.1 app=a"), pod("p2 10.0.0.2 app=a"), pod("p3 10.0.0.3 app=b"), pod("p4 10.0.0.4 app=a"), pod("p5 10.0.0.5 app=a +terminating"), pod("p6 10.0.0.6 app=c")}
	tests := map[string]struct {
		pods []*podevent.Pod
		want []string // rule state pods/claims targets/healthy/draining +missing -extra partial
	}{
		"with pods": {pods, []string{
			"a enabled 4/3 3/2/1 +10.0.0.2:80,10.0.0.4:80 -10.0.0.9:80 false",
			"b-off disabled 1/1 3/2/1 +10.0.0.2:80,10.0.0.4:80 -10.0.0.9:80 false",
			"bad invalid -/- -/-/- + - false",
			"c observe 1/1 1/1/0 +10.0.0.6:80 -10.0.0.8:80 true",
		}},
		"without": {nil, []string{
			"a enabled -/- 3/2/1 + - false", "b-off disabled -/- 3/2/1 + - false", "bad invalid -/- -/-/- + - false", "c observe -/- 1/1/0 + - false",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := world(t, rules, groups...)
			w.Faults = []*binding.Fault{{Rule: "bad", Reason: "why"}}
			rows, err := w.Overview(tt.pods)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range rows {
				got := fmt.Sprintf("%s %s %s/%s %s/%s/%s +%s -%s %v", r.Rule, r.State, num(r.Pods), num(r.Claims), num(r.Targets), num(r.Healthy), num(r.Draining),
					strings.Join(r.Missing, ","), strings.Join(r.Extra, ","), r.Partial)
				if i >= len(tt.want) || got != tt.want[i] {
					t.Errorf("row %d: %s", i, got)
				}
			}
			if len(rows) != len(tt.want) {
				t.Errorf("%d rows, want %d", len(rows), len(tt.want))
			}
		})
	}
}
