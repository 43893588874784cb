package rulefile_test

import (
	"fmt"
	"github.com/elbridge/elbridge/pkg/binding"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/rulefile"
)

const (
	queue    = "arn:aws:sqs:eu-west-1:111122223333:elbridge-registrar"
	group    = "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/web/0123456789abcdef"
	pattern  = `{"source":["elbridge"],"detail-type":["Pod State Change"],"detail":{"cluster":["prod"],"namespace":["web"]}}`
	tail     = `,\"rule\":<aws.events.rule-arn>,\"event\":<aws.events.event.json>}`
	template = `{\"binding\":{\"targetGroup\":\"` + group + `\",\"port\":9999}` + tail
)

// said writes what lint says of a file as "kind: bindings; severity check rule, …".
func said(f *rulefile.File) string {
	r := lint.Run(lint.Input{Rules: f.Rules, Groups: f.Groups})
	var out []string
	for _, x := range r.Findings {
		out = append(out, fmt.Sprintf("%s %s %s", x.Severity, x.Check, x.Rule))
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %d; %s", f.Kind, r.Bindings, strings.Join(out, ", ")), "; ")
}

// cdk is a template as CDK writes it: tokens joined, logical ids with hashes, the
// whole event as a variable.
func cdk(properties, tags string) string {
	return `{"Resources":{
 "Bus1A2B":{"Type":"AWS::Events::EventBus","Properties":{"Name":"elbridge"}},
 "Queue3C4D":{"Type":"AWS::SQS::Queue","Properties":{}},
 "Group5E6F":{"Type":"AWS::ElasticLoadBalancingV2::TargetGroup","Properties":{"TargetType":"ip","Port":8080,"Protocol":"HTTP"` + properties + `,"Tags":[` + tags + `]}},
 "Web7A8B":{"Type":"AWS::Events::Rule","Properties":{
  "EventBusName":{"Ref":"Bus1A2B"},"State":"ENABLED","EventPattern":` + pattern + `,
  "Targets":[{"Arn":{"Fn::GetAtt":["Queue3C4D","Arn"]},"Id":"Target0","InputTransformer":{"InputPathsMap":{"f1":"$"},
   "InputTemplate":{"Fn::Join":["",["{\"binding\":{\"targetGroup\":\"",{"Ref":"Group5E6F"},"\",\"port\":8080},\"rule\":<aws.events.rule-arn>,\"event\":<f1>}"]]}}}]}}}}`
}

const ownedByBus = `{"Key":"elbridge:owner","Value":{"Fn::GetAtt":["Bus1A2B","Arn"]}}`

func TestParse(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"rules": {`{"Rules":[{"Name":"web","Arn":"arn:aws:events:eu-west-1:111122223333:rule/elbridge/web","EventBusName":"elbridge","State":"ENABLED","EventPattern":` +
			quoted(pattern) + `,"Targets":[{"Id":"a","Arn":"` + queue + `","InputTransformer":{"InputTemplate":"` + template + `"}}]}]}`, "rules: 1"},
		"rules without ARNs, pattern as an object": {`[{"Name":"web","EventBusName":"elbridge","EventPattern":` + pattern + `,"Targets":[{"Id":"a","Arn":"` + queue + `","InputTransformer":{"InputTemplate":"` + template + `"}}]}]`, "rules: 1"},
		"rules, escaped by a tool": {`[{"Name":"web","EventBusName":"elbridge","EventPattern":` + pattern + `,"Targets":[{"Id":"a","Arn":"` + queue + `","InputTransformer":{"InputTemplate":"` +
			strings.NewReplacer("<", `\u003c`, ">", `\u003e`).Replace(template) + `"}}]}]`, "rules: 1"},
		"CDK":                         {cdk("", ownedByBus), "CloudFormation template: 1"},
		"CDK, group without owner":    {cdk("", ""), "CloudFormation template: 1; warning no-owner Web7A8B"},
		"CDK, owner by name":          {cdk("", `{"Key":"elbridge:owner","Value":{"Ref":"Bus1A2B"}}`), "CloudFormation template: 1"},
		"CDK, owner by parameter":     {cdk("", `{"Key":"elbridge:owner","Value":{"Ref":"Owner"}}`), "CloudFormation template: 1"},
		"CDK, instance group":         {strings.Replace(cdk("", ownedByBus), `"TargetType":"ip",`, "", 1), "CloudFormation template: 1; error instance-group Web7A8B"},
		"CDK, group from elsewhere":   {strings.Replace(cdk("", ownedByBus), `{"Ref":"Group5E6F"}`, `{"Fn::ImportValue":"network:group"}`, 1), "CloudFormation template: 1; info group-unknown Web7A8B"},
		"CDK, queue from elsewhere":   {strings.Replace(cdk("", ownedByBus), `{"Fn::GetAtt":["Queue3C4D","Arn"]}`, `{"Fn::ImportValue":"queue"}`, 1), "CloudFormation template: 1"},
		"CDK, event quoted":           {strings.Replace(cdk("", ownedByBus), `<f1>`, `\"<f1>\"`, 1), "CloudFormation template: 0; error invalid Web7A8B"},
		"template without rules":      {`{"Resources":{"A":{"Type":"AWS::SNS::Topic"}}}`, "CloudFormation template: 0"},
		"template, parameter default": {strings.Replace(strings.Replace(cdk("", ownedByBus), `"namespace":["web"]`, `"namespace":[{"Ref":"Space"}]`, 1), `{"Resources"`, `{"Parameters":{"Space":{"Type":"String","Default":"shop"}},"Resources"`, 1), "CloudFormation template: 1"},
		"template in YAML": {`
Parameters:
  Group: {Type: String}
Resources:
  Web:
    Type: AWS::Events::Rule
    Properties:
      EventBusName: elbridge
      EventPattern:
        source: [elbridge]
        detail-type: [Pod State Change]
        detail: {cluster: [prod], namespace: [!Ref Space]}
      Targets:
        - Id: registrar
          Arn: !Sub arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:elbridge-registrar
          InputTransformer:
            InputTemplate: !Sub |
              {"binding":{"targetGroup":"${Group}","port":9999},
               "rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}
`, "CloudFormation template: 1; info group-unknown Web"},
		"Terraform": {`{"resource":{"aws_lb_target_group":{"web":{"target_type":"ip","port":80,"protocol":"TCP","tags":{"elbridge:owner":"${aws_cloudwatch_event_bus.b.arn}"}}},
 "aws_cloudwatch_event_rule":{"web":{"name":"web","event_bus_name":"elbridge","event_pattern":` + quoted(pattern) + `}},
 "aws_cloudwatch_event_target":{"web":{"rule":"${aws_cloudwatch_event_rule.web.name}","event_bus_name":"elbridge","arn":"${aws_sqs_queue.registrar.arn}",
  "input_transformer":{"input_template":"{\"binding\":{\"targetGroup\":\"${aws_lb_target_group.web.arn}\"}` + tail + `"}}}}}`, "Terraform JSON: 1"},
		"Terraform, template escaped twice": {`{"resource":{"aws_cloudwatch_event_rule":{"web":{"name":"web","event_bus_name":"elbridge","event_pattern":` + quoted(pattern) + `}},
 "aws_cloudwatch_event_target":{"web":{"rule":"web","arn":"` + queue + `","input_transformer":[{"input_template":"` + strings.NewReplacer("<", `\\u003c`, ">", `\\u003e`).Replace(template) + `"}]}}}}`, "Terraform JSON: 0; error invalid web"},
		"bindings.yaml": {"version: 1\nqueue: " + queue + "\nbindings:\n- name: web\n  pods: {cluster: prod, namespace: web}\n  targetGroup: {name: web}\n", "bindings.yaml: 1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := rulefile.Parse("file", []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := said(f); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
				for _, x := range lint.Run(lint.Input{Rules: f.Rules, Groups: f.Groups}).Findings {
					t.Logf("%+v", x)
				}
			}
		})
	}
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }

func TestParse_Faults(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "file: empty",
		"{":                             "line 1: not valid JSON",
		"{}\n{}":                        "line 2: text after the JSON value",
		`{"a":1}`:                       "neither rules",
		`"a"`:                           "neither rules",
		"a: [":                          "neither JSON nor YAML",
		`{"Rules":[1]}`:                 "Rules[0]: want an object",
		`{"Resources":[]}`:              "Resources: want an object",
		`{"resource":1}`:                "resource: want an object",
		"version: 1\nbindings: []":      "queue: missing",
		"a: &a [1]\n" + laughs("a", 40): "more than",
	} {
		if _, err := rulefile.Parse("file", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want %q in it", text, err, want)
		}
	}
}

// laughs is YAML whose aliases unfold without end.
func laughs(first string, levels int) string {
	var b strings.Builder
	before := first
	for i := range levels {
		name := fmt.Sprintf("l%d", i)
		fmt.Fprintf(&b, "%s: &%s [*%s, *%s, *%s]\n", name, name, before, before, before)
		before = name
	}
	return b.String()
}

func TestParse_GroupFacts(t *testing.T) {
	f, err := rulefile.Parse("file", []byte(cdk(`,"Name":"web","IpAddressType":"ipv6","TargetGroupAttributes":[{"Key":"deregistration_delay.timeout_seconds","Value":"30"}]`, ownedByBus)))
	if err != nil {
		t.Fatal(err)
	}
	g, ok := f.Groups["name:web"]
	if !ok || g.Type != "ip" || g.Family != "ipv6" || g.Port != 8080 || g.Protocol != "HTTP" || g.DeregistrationDelay != 30*time.Second {
		t.Errorf("group %+v", g)
	}
	if g.Tags[binding.OwnerTag] != "arn:aws:events:eu-west-1:000000000000:event-bus/elbridge" {
		t.Errorf("owner %q", g.Tags[binding.OwnerTag])
	}
}

// A template that is deployed anew keeps its groups' stand-ins, so that two builds
// can be compared.
func TestParse_TwoBuilds(t *testing.T) {
	read := func(text string) lint.Input {
		f, err := rulefile.Parse("file", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return lint.Input{Rules: f.Rules, Groups: f.Groups}
	}
	old := cdk("", ownedByBus)
	if r := lint.Compare(read(old), read(old)); len(r.Findings) > 0 {
		t.Errorf("equal builds: %+v", r.Findings)
	}
	gone := old[:strings.Index(old, ` "Web7A8B"`)]
	gone = strings.TrimSuffix(strings.TrimSpace(gone), ",") + "}}"
	r := lint.Compare(read(old), read(gone))
	if !slices.ContainsFunc(r.Findings, func(f lint.Finding) bool { return f.Check == lint.VanishedGroup }) {
		t.Errorf("rule gone: %+v", r.Findings)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(cdk("", ownedByBus)))
	f.Add([]byte(`{"resource":{"aws_cloudwatch_event_rule":{"a":{}},"aws_cloudwatch_event_target":{"b":{"rule":"a","arn":"${x}","input_transformer":[{}]}}}}`))
	f.Add([]byte("Resources: {A: {Type: 'AWS::Events::Rule', Properties: {Targets: [{Arn: !GetAtt a.b, Id: !Sub '${x}'}]}}}"))
	f.Add([]byte(`{"Rules":[{"Targets":[{}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if file, err := rulefile.Parse("file", data); err == nil {
			lint.Run(lint.Input{Rules: file.Rules, Groups: file.Groups})
		}
	})
}
