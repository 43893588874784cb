package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

const planHead = `version: 1
bus: elbridge
queue: ` + docQueue + `
bindings:
`

// entryOf is an entry of a bindings.yaml for the pods of namespace ingress.
func entryOf(name, group, more string) string {
	return "  - name: " + name + "\n    pods: {cluster: prod, namespace: ingress}\n    targetGroup: " + group + "\n" + more
}

const cfn = `{"Resources":{
  "Group":{"Type":"AWS::ElasticLoadBalancingV2::TargetGroup","Properties":{"TargetType":"ip","Port":80,NAME"Protocol":"HTTP"}},
  "Rule":{"Type":"AWS::Events::Rule","Properties":{"Name":"web","EventBusName":"elbridge","EventPattern":PATTERN,
    "Targets":[{"Id":"registrar","Arn":"` + docQueue + `","InputTransformer":{"InputTemplate":{"Fn::Sub":
    "{\"binding\":{\"targetGroup\":\"${Group}\"},\"rule\":<aws.events.rule-arn>,\"event\":<aws.events.event.json>}"}}}]}}}}`

func template(name string) string {
	return strings.NewReplacer("NAME", name, "PATTERN", strings.Replace(docPattern, `["ingress"]`, `["shop"]`, 1)).Replace(cfn)
}

func TestPlan(t *testing.T) {
	web := entryOf("web", groupARN, "")
	tests := map[string]struct {
		old, new string
		live     bool
		same     map[string]string
		exit     int
		want     []string
	}{
		"texts alone":             {old: planHead + web, new: planHead + entryOf("web", groupARN, "    port: 81\n"), exit: 0, want: []string{"rule web: constants", "port the group's → 81", "only texts were compared"}},
		"nothing changes":         {old: planHead + web, new: planHead + web, live: true, exit: 0, want: []string{"no rule changes"}},
		"additions alone":         {old: "bus", new: planHead + web + entryOf("more", groupARN, ""), live: true, exit: 0, want: []string{"rule more: added", "group web: stays as it is", "2 differences already"}},
		"an empty binding":        {old: "bus", new: planHead + entryOf("web", groupARN, "    empty: true\n"), live: true, exit: 2, want: []string{"rule web: constants", "empty false → true", "- deregister 10.64.1.1:80 pod ingress/a (witness binding-empty): binding is emptied"}},
		"I8 the last rule goes":   {old: "bus", new: planHead + entryOf("other", "{name: other}", ""), live: true, exit: 2, want: []string{"rule web: removed", "no rule names it any more: its 2 targets stay", "rule other of NEW covers nothing now: target group other not found"}},
		"held":                    {old: "bus", new: planHead + strings.Replace(web, "ingress", "shop", 1), live: true, exit: 2, want: []string{"+ register 10.64.1.3:80 pod shop/c", "= hold 10.64.1.1:80 pod ingress/a: no rule selects the pod any more; web did", "elbridge resync --group " + groupARN + " --approve "}},
		"a group by its name":     {old: "bus", new: planHead + entryOf("web", "{name: web}", ""), live: true, exit: 0, want: []string{"no rule changes"}},
		"a template's name":       {old: "bus", new: template(`"Name":"web",`), live: true, exit: 2, want: []string{"rule web: pattern", "+ register 10.64.1.3:80"}},
		"a template's rule":       {old: "bus", new: template(""), live: true, exit: 2, want: []string{"note: group Group of NEW is taken to be web, which rule web names in bus", "+ register 10.64.1.3:80"}},
		"I8 nobody knows":         {old: template(""), new: planHead + entryOf("other", groupARN, ""), live: true, exit: 1, want: []string{"rule other: added", "not known: rule web of OLD names group Group, which only its deployment knows: say --group Group=ARN"}},
		"the operator does":       {old: template(""), new: planHead + entryOf("other", groupARN, ""), live: true, same: map[string]string{"Group": groupARN}, exit: 0, want: []string{"rule web: removed", "rule other: added"}},
		"I19 observed":            {old: "bus", new: planHead + entryOf("web", groupARN, "    mode: observe\n"), live: true, exit: 0, want: []string{"mode manage → observe", "? would register 10.64.1.2:80"}},
		"I8 of another cluster":   {old: "bus", new: planHead + web + strings.Replace(entryOf("dev", groupARN, ""), "prod", "dev", 1), live: true, exit: 1, want: []string{"the pods of cluster dev were not read", "of its targets 1 are claimed by no pod that was read"}},
		"a rule that breaks now":  {old: "bus", new: `{"Rules":[{"Name":"web","EventBusName":"elbridge","EventPattern":"{\"detail\":[]}","Targets":[{"Id":"registrar","Arn":"` + docQueue + `"}]}]}`, live: true, exit: 1, want: []string{"covers nothing: rule web"}},
		"a file that is not read": {old: "bus", new: "bindings: {", exit: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := somewhere().ruled("web | " + webGroup)
			o := &planOptions{livingOptions: *livingFlags("table"), live: tt.live, same: tt.same}
			o.cluster.name = "prod"
			o.rulesOf = func(context.Context, string) (ruleReader, error) { return p, nil }
			args := [2]string{tt.old, tt.new}
			dir := t.TempDir()
			for i, name := range []string{"OLD", "NEW"} {
				if args[i] == "bus" {
					continue
				}
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte(args[i]), 0o600); err != nil {
					t.Fatal(err)
				}
				args[i] = path
			}
			r, unread, err := o.plan(context.Background(), nil, args[0], args[1], func(context.Context) (*living, error) { return p.living(), nil })
			if err == nil {
				err = r.exit(unread)
			}
			if got := exitOf(err); got != tt.exit {
				t.Errorf("exit %d (%v), want %d", got, err, tt.exit)
			}
			var out bytes.Buffer
			if err := write(&out, "table", r, r.table); err != nil {
				t.Fatal(err)
			}
			said := strings.ReplaceAll(out.String(), dir+"/", "")
			for _, want := range tt.want {
				if !strings.Contains(said, want) {
					t.Errorf("said\n%swant %q in it", said, want)
				}
			}
		})
	}
}

func TestPlan_Operands(t *testing.T) {
	o := &planOptions{livingOptions: *livingFlags("table")}
	if _, _, err := o.plan(context.Background(), nil, "-", "-", nil); err == nil {
		t.Error("both are stdin")
	}
	var asked string
	p := somewhere()
	o.rulesOf = func(_ context.Context, name string) (ruleReader, error) { asked = name; return p, nil }
	for operand, want := range map[string]string{"bus": "elbridge", "bus:other": "other"} {
		o.shared = &shared{bus: "elbridge"}
		if _, err := o.side(context.Background(), nil, operand); err != nil || asked != want || o.shared.bus != want {
			t.Errorf("%s: bus %q, %v", operand, asked, err)
		}
	}
}

func TestPlan_Denied_I8(t *testing.T) {
	p := somewhere().ruled("web | " + webGroup)
	p.denied = targetgroup.ErrDenied
	o := &planOptions{livingOptions: *livingFlags("table"), live: true}
	o.rulesOf = func(context.Context, string) (ruleReader, error) { return p, nil }
	for group, known := range map[string]bool{groupARN: true, "{name: new}": false} {
		r, unread, err := o.plan(context.Background(), strings.NewReader(planHead+entryOf("other", group, "")), "bus", "-", func(context.Context) (*living, error) { return p.living(), nil })
		if err != nil || errors.Is(unread, targetgroup.ErrDenied) == known || exitOf(r.exit(unread)) != 1 {
			t.Errorf("%s: error %v, unread %v", group, err, unread)
		}
		if len(r.Groups) != 1 || r.Groups[0].Known() || r.Groups[0].Removes() {
			t.Errorf("%s: %+v", group, r.Groups)
		}
	}
}

// A group that can't be read and that no changed rule names keeps nobody from a plan.
func TestPlan_UnreadElsewhere(t *testing.T) {
	const away = "arn:aws:elasticloadbalancing:eu-west-1:444455556666:targetgroup/away/0123456789abcdef"
	role := `"targetGroup":"` + away + `","roleArn":"arn:aws:iam::444455556666:role/elbridge"`
	p := somewhere().ruled("web | "+webGroup, "away | "+role)
	l := p.living()
	l.survey.from = func(b *binding.Binding) groupReader {
		if b.RoleARN != "" {
			return &place{denied: targetgroup.ErrDenied}
		}
		return p
	}
	o := &planOptions{livingOptions: *livingFlags("table"), live: true}
	o.rulesOf = func(context.Context, string) (ruleReader, error) { return p, nil }
	text := planHead + entryOf("away", away, "    roleArn: arn:aws:iam::444455556666:role/elbridge\n") + entryOf("more", groupARN, "") + entryOf("web", groupARN, "")
	r, unread, err := o.plan(context.Background(), strings.NewReader(text), "bus", "-", func(context.Context) (*living, error) { return l, nil })
	if err != nil || exitOf(r.exit(unread)) != 0 || len(r.Rules) != 1 {
		t.Errorf("error %v, unread %v, said %+v", err, unread, r)
	}
}
