package lint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/podevent"
)

const (
	queue = "arn:aws:sqs:eu-west-1:111122223333:elbridge-registrar"
	bus   = "arn:aws:events:eu-west-1:111122223333:event-bus/elbridge"
	good  = `"cluster":["prod"],"namespace":["ingress"]`
)

func groupARN(name string) string {
	return "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/" + name + "/0123456789abcdef"
}

// rule writes a rule as "name | fields of detail | group and constants": a group
// is a name, of which an ARN is made; constants are the JSON that follows it. A
// pattern that begins with a brace stands as it is.
func rule(t *testing.T, line string) lint.Rule {
	t.Helper()
	parts := strings.SplitN(line, "|", 3)
	if len(parts) != 3 {
		t.Fatalf("%q: want name | pattern | constants", line)
	}
	name, pattern := strings.TrimSpace(parts[0]), strings.TrimSpace(parts[1])
	if !strings.HasPrefix(pattern, "{") {
		pattern = `{"source":["elbridge"],"detail-type":["Pod State Change"],"detail":{` + pattern + `}}`
	}
	group, more, _ := strings.Cut(strings.TrimSpace(parts[2]), " ")
	if more != "" {
		more = "," + more
	}
	ref := `"` + groupARN(group) + `"`
	if name, ok := strings.CutPrefix(group, "name:"); ok {
		ref = `{"name":"` + name + `"}`
	}
	r := lint.Rule{Rule: binding.Rule{ARN: "arn:aws:events:eu-west-1:111122223333:rule/elbridge/" + name, Name: name, Bus: "elbridge", State: "ENABLED", Pattern: pattern}}
	r.Targets = []binding.Target{{ID: "registrar", ARN: queue, Transformer: &binding.Transformer{
		Template: `{"binding":{"targetGroup":` + ref + more + `},"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`}}}
	return r
}

func rules(t *testing.T, lines ...string) []lint.Rule {
	t.Helper()
	var out []lint.Rule
	for _, l := range lines {
		out = append(out, rule(t, l))
	}
	return out
}

// said writes the findings as "severity check rule path", in order.
func said(r lint.Report) string {
	var out []string
	for _, f := range r.Findings {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", f.Severity, f.Check, f.Rule, f.Path)))
	}
	return strings.Join(out, "; ")
}

func TestRun_Patterns(t *testing.T) {
	tests := map[string]struct {
		detail string
		want   string // "severity check path" of the findings, with the rule's name and "EventPattern." left out
	}{
		"sound":                            {good, ""},
		"state":                            {good + `,"ready":[true]`, "warning state-field detail.ready"},
		"state under $or":                  {good + `,"$or":[{"phase":["Running"]},{"labels":{"a":["b"]}}]`, "warning state-field detail.phase"},
		"several states":                   {good + `,"podIP":[{"exists":true}],"reason":["Ready"]`, "warning state-field detail.podIP; warning state-field detail.reason"},
		"what it was before":               {good + `,"previous":{"labels":{"a":["b"]}}`, "warning state-field detail.previous.labels.a"},
		"label that sounds like state":     {good + `,"labels":{"ready":["yes"]}`, ""},
		"label with dots and slash":        {good + `,"labels":{"app.kubernetes.io/name":["web"]}`, ""},
		"annotation":                       {good + `,"annotations":{"a.b/c":["web"]}`, ""},
		"all other fields of what it is":   {good + `,"name":["a"],"owner":{"kind":["StatefulSet"],"name":["a"]},"hostNetwork":[false],"ports":{"name":["http"]}`, ""},
		"where it runs":                    {good + `,"nodeName":[{"prefix":"ip-"}],"schema":[1]`, ""},
		"typing error":                     {good + `,"lables":{"a":["b"]}`, "warning unknown-field detail.lables.a"},
		"no namespace":                     {`"cluster":["prod"],"labels":{"a":["b"]}`, "warning unpinned-tenant detail"},
		"namespace excluded":               {`"cluster":["prod"],"namespace":[{"anything-but":"kube-system"}]`, "warning unpinned-tenant detail"},
		"any namespace":                    {`"cluster":["prod"],"namespace":[{"wildcard":"*"}]`, "warning unpinned-tenant detail"},
		"any namespace by exists":          {`"cluster":["prod"],"namespace":[{"exists":true}]`, "warning unpinned-tenant detail"},
		"namespaces by prefix":             {`"cluster":["prod"],"namespace":[{"prefix":"team-a-"}]`, ""},
		"empty prefix":                     {`"cluster":["prod"],"namespace":[{"prefix":""}]`, "warning unpinned-tenant detail"},
		"service account":                  {`"cluster":["prod"],"serviceAccount":["skipper"]`, "info unpinned-namespace detail"},
		"one branch without namespace":     {`"cluster":["prod"],"$or":[{"namespace":["a"]},{"labels":{"a":["b"]}}]`, "warning unpinned-tenant detail"},
		"namespace or account by branch":   {`"cluster":["prod"],"$or":[{"namespace":["a"]},{"serviceAccount":["b"]}]`, "info unpinned-namespace detail"},
		"all clusters":                     {`"namespace":["ingress"]`, "info unpinned-cluster detail"},
		"other source":                     {`{"source":["aws.ec2"],"detail-type":["Pod State Change"],"detail":{` + good + `}}`, "error never-matches source"},
		"other type":                       {`{"source":["elbridge"],"detail-type":["Node Leases"],"detail":{` + good + `}}`, "error never-matches detail-type"},
		"no type":                          {`{"source":["elbridge"],"detail":{` + good + `}}`, "warning other-events detail-type"},
		"two types":                        {`{"source":["elbridge"],"detail-type":["Pod State Change","Webhook Started"],"detail":{` + good + `}}`, "warning other-events detail-type"},
		"no source":                        {`{"detail-type":["Pod State Change"],"detail":{` + good + `}}`, "info other-events source"},
		"invalid":                          {`{"detail":{"ready":true}}`, "error invalid EventPattern"},
		"a key of the event itself, wrong": {`{"source":["elbridge"],"detail-type":["Pod State Change"],"namespace":["a"],"detail":{` + good + `}}`, "warning unknown-field namespace"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := lint.Run(lint.Input{Rules: rules(t, "web | "+tt.detail+" | web"), Queue: queue})
			var got []string
			for _, f := range r.Findings {
				path := strings.TrimPrefix(strings.TrimPrefix(f.Path, "EventPattern."), "EventPattern")
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Severity, f.Check, path)))
				if f.Rule != "web" || f.Message == "" {
					t.Errorf("finding %+v does not say what of which rule", f)
				}
			}
			if s := strings.Join(got, "; "); s != strings.TrimSuffix(tt.want, " EventPattern") {
				t.Errorf("found %q, want %q", s, tt.want)
			}
		})
	}
}

func TestRun_Constants(t *testing.T) {
	b := good + `,"labels":{"app":["b"]}`
	a := good + `,"labels":{"app":["a"]}`
	tests := map[string]struct {
		rules []string
		want  string
	}{
		"readiness gate waits for itself": {[]string{"web | " + good + ` | web "registerWhen":"Ready","readinessGate":"a/b"`}, "error invalid web $.binding.readinessGate"},
		"unknown constant":                {[]string{"web | " + good + ` | web "prot":1`}, "error invalid web $.binding.prot"},
		"two rules, two groups":           {[]string{"a | " + good + " | x", "b | " + good + ` | y "mode":"observe"`}, ""},
		"one group, same constants":       {[]string{"a | " + a + " | x", "b | " + b + " | x"}, ""},
		"modes differ":                    {[]string{"a | " + a + " | x", "b | " + b + ` | x "mode":"observe"`}, "error conflicting-constants b $.binding.mode"},
		"limits differ":                   {[]string{"a | " + a + ` | x "minTargets":2`, "b | " + b + ` | x "maxRemovalPercent":5`}, "error conflicting-constants b $.binding.maxRemovalPercent; error conflicting-constants b $.binding.minTargets"},
		"ports differ":                    {[]string{"a | " + a + ` | x "port":1`, "b | " + b + ` | x "port":"http"`}, "warning differing-constants b $.binding.port"},
		"one emptied":                     {[]string{"a | " + a + ` | x "empty":true`, "b | " + b + ` | x`}, "warning differing-constants b $.binding.empty"},
		"by ARN and by name":              {[]string{"a | " + a + " | x", "b | " + b + ` | name:x "mode":"observe"`}, "error conflicting-constants b $.binding.mode"},
		"other account":                   {[]string{"a | " + strings.ReplaceAll(a, "x", "x") + ` | x "roleArn":"arn:aws:iam::999988887777:role/r"`}, ""},
		"same pods":                       {[]string{"a | " + a + " | x", "b | " + a + " | x"}, "warning overlapping-rules b EventPattern"},
		"may be the same pods":            {[]string{"a | " + good + " | x", "b | " + a + " | x"}, "warning overlapping-rules b EventPattern"},
		"same pods by operators": {[]string{"a | " + good + `,"labels":{"app":[{"prefix":"sk"}]} | x`, "b | " + good + `,"labels":{"app":[{"suffix":"per"},"skip"]} | x`},
			"warning overlapping-rules b EventPattern"},
		"one without the label": {[]string{"a | " + good + `,"labels":{"app":[{"exists":false}]} | x`, "b | " + a + " | x"}, ""},
		"both without it":       {[]string{"a | " + good + `,"labels":{"app":[{"exists":false}]} | x`, "b | " + good + `,"labels":{"tier":[{"anything-but":"db"}]} | x`}, "warning overlapping-rules b EventPattern"},
		"other branch of $or":   {[]string{"a | " + good + `,"$or":[{"labels":{"a":["1"]}},{"labels":{"app":["a"]}}] | x`, "b | " + a + " | x"}, "warning overlapping-rules b EventPattern"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := said(lint.Run(lint.Input{Rules: rules(t, tt.rules...), Queue: queue})); got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRun_Rules(t *testing.T) {
	web := rule(t, "web | "+good+" | web")
	change := func(f func(*lint.Rule)) []lint.Rule {
		r := web
		r.Targets = slices.Clone(web.Targets)
		f(&r)
		return []lint.Rule{r}
	}
	tests := map[string]struct {
		rules []lint.Rule
		want  string
	}{
		"six targets": {change(func(r *lint.Rule) {
			for i := range 5 {
				r.Targets = append(r.Targets, binding.Target{ID: fmt.Sprint(i), ARN: "arn:aws:lambda:eu-west-1:111122223333:function:x"})
			}
		}), "error too-many-targets web"},
		"one id twice":   {change(func(r *lint.Rule) { r.Targets = append(r.Targets, r.Targets[0]) }), "error duplicate-target-id web; warning overlapping-rules web EventPattern"},
		"id with spaces": {change(func(r *lint.Rule) { r.Targets[0].ID = "a b" }), "error bad-name web"},
		"disabled":       {change(func(r *lint.Rule) { r.State = "DISABLED" }), "info disabled web"},
		"no target":      {change(func(r *lint.Rule) { r.Targets = nil }), "info no-binding web"},
		"verdict rule": {change(func(r *lint.Rule) {
			r.Targets, r.Pattern = nil, `{"source":["elbridge.prober"]}`
		}), ""},
		"schedule":     {change(func(r *lint.Rule) { r.Pattern, r.ScheduleExpression = "", "rate(1 minute)" }), "error invalid web EventPattern"},
		"static input": {change(func(r *lint.Rule) { r.Targets[0].Transformer, r.Targets[0].Input = nil, "{}" }), "error invalid web Input"},
		"long pattern": {change(func(r *lint.Rule) {
			r.Pattern = strings.Replace(r.Pattern, `["ingress"]`, `["ingress","`+strings.Repeat("x", 2000)+`"]`, 1)
		}), "warning long-pattern web EventPattern"},
		"one name twice": {[]lint.Rule{web, web}, "error duplicate-rule web; warning overlapping-rules web EventPattern"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := said(lint.Run(lint.Input{Rules: tt.rules, Queue: queue})); got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
	many := make([]lint.Rule, 0, 301)
	for i := range 301 {
		many = append(many, rule(t, fmt.Sprintf("r%d | %s | g%d", i, good, i)))
	}
	if got := said(lint.Run(lint.Input{Rules: many})); got != "warning too-many-rules" {
		t.Errorf("301 rules: found %q", got)
	}
}

// group is an owned ip group, changed by f.
func group(name string, f func(*lint.Group)) map[string]lint.Group {
	g := lint.Group{Group: claim.Group{ARN: groupARN(name), Type: claim.IP, Family: claim.IPv4, Port: 80}, Name: name, Protocol: "HTTP",
		Tags: map[string]string{binding.OwnerTag: bus}, DeregistrationDelay: -1}
	if f != nil {
		f(&g)
	}
	return map[string]lint.Group{groupARN(name): g, "name:" + name: g}
}

func TestRun_Groups(t *testing.T) {
	tests := map[string]struct {
		constants string
		group     func(*lint.Group)
		want      string
	}{
		"sound":                       {"", nil, ""},
		"missing P053":                {"", func(g *lint.Group) { g.Problem = lint.NotFound }, "error group-not-found web $.binding.targetGroup"},
		"ambiguous":                   {"", func(g *lint.Group) { g.Problem = lint.Ambiguous }, "error group-ambiguous web $.binding.targetGroup"},
		"unread":                      {"", func(g *lint.Group) { g.Problem = lint.Unread }, "warning group-unread web $.binding.targetGroup"},
		"instances":                   {"", func(g *lint.Group) { g.Type = claim.Instance }, "error instance-group web $.binding.targetGroup"},
		"lambda":                      {"", func(g *lint.Group) { g.Type = "lambda" }, "error group-type web $.binding.targetGroup"},
		"family":                      {`"podCIDRs":["10.0.0.0/8"]`, func(g *lint.Group) { g.Family = claim.IPv6 }, "error group-family web $.binding.podCIDRs"},
		"one block of the family":     {`"podCIDRs":["10.0.0.0/8","fd00::/8"]`, func(g *lint.Group) { g.Family = claim.IPv6 }, ""},
		"no port":                     {"", func(g *lint.Group) { g.Port = 0 }, "error group-port web $.binding.port"},
		"port of the binding":         {`"port":"http"`, func(g *lint.Group) { g.Port = 0 }, ""},
		"no owner P044":               {"", func(g *lint.Group) { g.Tags = map[string]string{} }, "warning no-owner web"},
		"tags not known":              {"", func(g *lint.Group) { g.Tags = nil }, ""},
		"kept by somebody else":       {`"foreignTargets":"keep"`, func(g *lint.Group) { g.Tags = map[string]string{} }, ""},
		"owner by name":               {"", func(g *lint.Group) { g.Tags = map[string]string{binding.OwnerTag: "elbridge"} }, ""},
		"another owner P044":          {"", func(g *lint.Group) { g.Tags = map[string]string{binding.OwnerTag: bus + "2"} }, "warning other-owner web"},
		"the family of podCIDRs only": {`"podCIDRs":["fd00::/8"]`, nil, "error group-family web $.binding.podCIDRs"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := lint.Input{Rules: rules(t, "web | "+good+" | web "+tt.constants), Queue: queue, Groups: group("web", tt.group)}
			if got := said(lint.Run(in)); got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
	t.Run("another account", func(t *testing.T) {
		r := rule(t, "web | "+good+" | web")
		r.ARN = strings.Replace(r.ARN, "111122223333", "999988887777", 1)
		if got := said(lint.Run(lint.Input{Rules: []lint.Rule{r}})); got != "error group-account web $.binding.targetGroup" {
			t.Errorf("found %q", got)
		}
	})
}

// pod writes a pod as "name label=value ip port-name grace=seconds".
func pod(line string) lint.Pod {
	f := strings.Fields(line)
	p := &podevent.Pod{Namespace: "ingress", Name: f[0], UID: f[0], Labels: map[string]string{}, Phase: "Running"}
	out := lint.Pod{Cluster: "prod", Pod: p, TerminationGracePeriod: -1}
	for _, s := range f[1:] {
		switch k, v, isLabel := strings.Cut(s, "="); {
		case k == "grace":
			d, err := time.ParseDuration(v)
			if err != nil {
				panic(err)
			}
			out.TerminationGracePeriod = d
		case isLabel:
			p.Labels[k] = v
		case strings.ContainsAny(s, ".:"):
			p.PodIPs = append(p.PodIPs, s)
		default:
			p.Ports = append(p.Ports, podevent.Port{Name: s, ContainerPort: 8080, Protocol: "TCP"})
		}
	}
	return out
}

func TestRun_Pods(t *testing.T) {
	const web = "web | " + good + `,"labels":{"app":["web"]} | web `
	tests := map[string]struct {
		rules []string
		pods  []string
		group func(*lint.Group)
		want  string
	}{
		"one":                       {[]string{web}, []string{"a app=web 10.0.0.1"}, nil, ""},
		"none":                      {[]string{web}, []string{"a app=other 10.0.0.1"}, nil, "warning matches-no-pod web EventPattern"},
		"none, emptied":             {[]string{web + `"empty":true`}, nil, nil, "info matches-no-pod web EventPattern"},
		"none of another cluster":   {[]string{strings.Replace(web, "prod", "other", 1)}, nil, nil, ""},
		"no such port":              {[]string{web + `"port":"http"`}, []string{"a app=web 10.0.0.1 admin"}, nil, "warning claims-nothing web $.binding.port"},
		"one has the port":          {[]string{web + `"port":"http"`}, []string{"a app=web 10.0.0.1 admin", "b app=web 10.0.0.2 http"}, nil, ""},
		"outside":                   {[]string{web + `"podCIDRs":["10.1.0.0/16"]`}, []string{"a app=web 10.0.0.1"}, nil, "warning claims-nothing web $.binding.podCIDRs"},
		"no address of the family":  {[]string{web}, []string{"a app=web 10.0.0.1"}, func(g *lint.Group) { g.Family = claim.IPv6 }, "warning claims-nothing web $.binding.targetGroup"},
		"no address yet":            {[]string{web}, []string{"a app=web"}, nil, ""},
		"both rules":                {[]string{web, "b | " + good + ` | web`}, []string{"a app=web 10.0.0.1"}, nil, "warning overlapping-rules b EventPattern"},
		"grace P020":                {[]string{web}, []string{"a app=web 10.0.0.1 grace=60s", "b app=web 10.0.0.2 grace=5s"}, nil, "warning short-grace web"},
		"grace of an NLB P025":      {[]string{web}, []string{"a app=web 10.0.0.1 grace=60s"}, func(g *lint.Group) { g.Protocol = "TCP" }, "warning short-grace web"},
		"grace below the drain":     {[]string{web}, []string{"a app=web 10.0.0.1 grace=60s"}, func(g *lint.Group) { g.DeregistrationDelay = 300 * time.Second }, "info grace-below-drain web"},
		"grace is enough":           {[]string{web}, []string{"a app=web 10.0.0.1 grace=300s"}, func(g *lint.Group) { g.DeregistrationDelay = 300 * time.Second }, ""},
		"grace, protocol not known": {[]string{web}, []string{"a app=web 10.0.0.1 grace=1s"}, func(g *lint.Group) { g.Protocol = "" }, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := lint.Input{Rules: rules(t, tt.rules...), Queue: queue, Groups: group("web", tt.group), Clusters: []string{"prod"}}
			for _, p := range tt.pods {
				in.Pods = append(in.Pods, pod(p))
			}
			if got := said(lint.Run(in)); got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	const a, b = "a | " + good + `,"labels":{"app":["a"]} | x`, "b | " + good + `,"labels":{"app":["b"]} | x`
	tests := map[string]struct {
		old, new []string
		group    func(*lint.Group)
		want     string
	}{
		"same":                            {[]string{a, b}, []string{b, a}, nil, ""},
		"rule gone":                       {[]string{a}, nil, nil, "error vanished-undrained a"},
		"rule gone, group holds nothing":  {[]string{a}, nil, func(g *lint.Group) { g.Drained = true }, ""},
		"rule gone, group is gone":        {[]string{a}, nil, func(g *lint.Group) { g.Problem = lint.NotFound }, ""},
		"rule gone after empty":           {[]string{a + ` "empty":true`}, nil, nil, ""},
		"emptied, not gone":               {[]string{a}, []string{a + ` "empty":true`}, nil, ""},
		"one of two gone":                 {[]string{a, b}, []string{b}, nil, "warning vanished-rule a"},
		"renamed":                         {[]string{a}, []string{"new" + strings.TrimPrefix(a, "a")}, nil, ""},
		"renamed, other pods":             {[]string{a}, []string{"new" + strings.TrimPrefix(b, "b")}, nil, "warning vanished-rule a"},
		"other group":                     {[]string{a}, []string{strings.Replace(a, "| x", "| y", 1)}, nil, "error retargeted-rule a $.binding.targetGroup"},
		"other group, the old one filled": {[]string{a, b}, []string{strings.Replace(a, "| x", "| y", 1), b}, nil, ""},
		"by name now":                     {[]string{a}, []string{strings.Replace(a, "| x", "| name:x", 1)}, nil, "info unsure-comparison a $.binding.targetGroup"},
		"broken now":                      {[]string{a}, []string{a + ` "prot":1`}, nil, "error vanished-undrained a"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			old, now := lint.Input{Rules: rules(t, tt.old...)}, lint.Input{Rules: rules(t, tt.new...)}
			if tt.group != nil {
				now.Groups = group("x", tt.group)
			}
			if got := said(lint.Compare(old, now)); got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
}

func TestChecks(t *testing.T) {
	for _, m := range lint.Checks() {
		if m.Severity == "" || m.Meaning == "" {
			t.Errorf("check %+v is not described", m)
		}
	}
}

func TestRun_OrderDoesNotDependOnMaps(t *testing.T) {
	in := lint.Input{Rules: rules(t, "a | "+good+` | x "minTargets":2,"maxRemovalPercent":3,"mode":"observe"`, "b | "+good+`,"ready":[true],"phase":["Running"] | x`, "c | | x")}
	want := lint.Run(in)
	for range 20 {
		if got := lint.Run(in); !slices.Equal(got.Findings, want.Findings) {
			t.Fatalf("%+v, then %+v", want.Findings, got.Findings)
		}
	}
}
