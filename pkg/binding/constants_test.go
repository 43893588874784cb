package binding_test

import (
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/binding"
)

func TestParseConstants(t *testing.T) {
	arn := `"targetGroup":"` + group + `"`
	tests := map[string]struct {
		constants string // members of the object; $ is a good targetGroup
		want      string // as show writes it
	}{
		"defaults":              {`$`, "arn"},
		"spaces":                {" $ , \"port\" : 80 ", "arn port=80"},
		"all of them":           {`$,"port":9999,"registerWhen":"ContainersReady","minTargets":2,"maxRemovalPercent":50,"podCIDRs":["10.64.0.0/16","fd00::/64"],"mode":"observe","foreignTargets":"keep","empty":true,"availabilityZone":"all","roleArn":"arn:aws:iam::111122223333:role/x/elb","externalId":"x-1","readinessGate":"elbridge.io/healthy"}`, "arn port=9999 ContainersReady min=2 max=50% 10.64.0.0/16 fd00::/64 observe keep empty zone=all role external=x-1 gate=elbridge.io/healthy"},
		"defaults said":         {`$,"registerWhen":"HasIP","minTargets":1,"maxRemovalPercent":20,"mode":"manage","foreignTargets":"remove","empty":false,"availabilityZone":"auto"`, "arn"},
		"bounds, low":           {`$,"port":1,"minTargets":0,"maxRemovalPercent":0`, "arn port=1 min=0 max=0%"},
		"bounds, high":          {`$,"port":65535,"maxRemovalPercent":100`, "arn port=65535 max=100%"},
		"port name":             {`$,"port":"http-admin"`, "arn port=http-admin"},
		"port name with digits": {`$,"port":"h2"`, "arn port=h2"},
		"group by name":         {`"targetGroup":{"name":"web-blue"}`, "name:web-blue"},
		"group by tags":         {`"targetGroup":{"tags":{"service":"web","stage":"a b"}}`, "tag:service=web tag:stage=a b"},
		"group in China":        {`"targetGroup":"arn:aws-cn:elasticloadbalancing:cn-north-1:111122223333:targetgroup/web/0123456789abcdef"`, "arn"},
		"group in GovCloud":     {`"targetGroup":"arn:aws-us-gov:elasticloadbalancing:us-gov-west-1:111122223333:targetgroup/web/0123456789abcdef"`, "arn"},
		"zone":                  {`$,"availabilityZone":"eu-west-1a"`, "arn zone=eu-west-1a"},
		"local zone":            {`$,"availabilityZone":"us-east-1-bos-1a"`, "arn zone=us-east-1-bos-1a"},
		"gate, Ready not asked": {`$,"readinessGate":"a/b","registerWhen":"ContainersReady"`, "arn ContainersReady gate=a/b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b, err := binding.ParseConstants([]byte("{" + strings.Replace(tt.constants, "$", arn, 1) + "}"))
			if err != nil {
				t.Fatal(err)
			}
			if got := show(b); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestParseConstants_Faults(t *testing.T) {
	tests := map[string]struct {
		constants string   // the whole object; $ is a good targetGroup
		want      []string // for each fault a part of it, path first
	}{
		"not an object":          {`[]`, []string{`$.binding: []: an object belongs here`}},
		"cut off":                {`{"port":`, []string{`$.binding: not valid JSON`}},
		"no group":               {`{}`, []string{`$.binding.targetGroup: missing`}},
		"unknown constant":       {`{$,"minTarget":1}`, []string{`$.binding.minTarget: unknown constant, did you mean minTargets`}},
		"unknown, nothing close": {`{$,"colour":1}`, []string{`$.binding.colour: unknown constant (known are availabilityZone, empty`}},
		"null":                   {`{$,"port":null}`, []string{`$.binding.port: null`}},
		"twice":                  {`{$,"port":1,"port":2}`, []string{`$.binding.port: given twice`}},
		"every fault at once": {`{"targetGroup":"x!","port":0,"registerWhen":"ready","minTargets":-1,"maxRemovalPercent":101,"podCIDRs":"10.0.0.0/8","mode":"watch","foreignTargets":"remain","empty":"yes","availabilityZone":"euw1-az1","roleArn":"admin","externalId":"","readinessGate":"no spaces"}`,
			[]string{
				`$.binding.targetGroup: "x!" is no ARN`, `$.binding.port: 0: want a number from 1 to 65535`,
				`$.binding.registerWhen: "ready", did you mean Ready: want one of HasIP, ContainersReady, Ready`,
				`$.binding.minTargets: -1: want a whole number, 0 or more`, `$.binding.maxRemovalPercent: 101`,
				`$.binding.podCIDRs: "10.0.0.0/8": want a list`, `$.binding.mode: "watch": want one of manage, observe`,
				`$.binding.foreignTargets: "remain"`, `$.binding.empty: "yes": want true or false`,
				`$.binding.availabilityZone: "euw1-az1"`, `$.binding.roleArn: "admin"`, `$.binding.externalId: ""`,
				`$.binding.readinessGate: "no spaces"`,
			}},
		"gate waits for itself":     {`{$,"readinessGate":"a/b","registerWhen":"Ready"}`, []string{`$.binding.readinessGate: with registerWhen Ready it would wait for itself`}},
		"external id, no role":      {`{$,"externalId":"abc"}`, []string{`$.binding.externalId: without roleArn`}},
		"group: a bare name":        {`{"targetGroup":"web"}`, []string{`write {"name":"web"}`}},
		"group: a load balancer":    {`{"targetGroup":"arn:aws:elasticloadbalancing:eu-west-1:111122223333:loadbalancer/app/web/0123456789abcdef"}`, []string{`the ARN of something else`}},
		"group: both":               {`{"targetGroup":{"name":"a","tags":{"a":"b"}}}`, []string{`exactly one of name and tags`}},
		"group: neither":            {`{"targetGroup":{}}`, []string{`exactly one of name and tags`}},
		"group: key":                {`{"targetGroup":{"tag":{}}}`, []string{`$.binding.targetGroup.tag: unknown key, did you mean tags`}},
		"group: long name":          {`{"targetGroup":{"name":"` + strings.Repeat("a", 33) + `"}}`, []string{`$.binding.targetGroup.name:`}},
		"group: no tags":            {`{"targetGroup":{"tags":{}}}`, []string{`they would name every group`}},
		"group: tag not a string":   {`{"targetGroup":{"tags":{"a":1}}}`, []string{`$.binding.targetGroup.tags.a: 1: want a string`}},
		"group: tags not an object": {`{"targetGroup":{"tags":["a"]}}`, []string{`$.binding.targetGroup.tags: ["a"]: want an object of tags`}},
		"group: a number":           {`{"targetGroup":7}`, []string{`$.binding.targetGroup: 7: want the group's ARN`}},
		"port: quoted number":       {`{$,"port":"80"}`, []string{`$.binding.port: "80": want a number from 1 to 65535, without quotes`}},
		"port: too high":            {`{$,"port":70000}`, []string{`$.binding.port: 70000`}},
		"port: not whole":           {`{$,"port":80.5}`, []string{`$.binding.port: 80.5`}},
		"port: long name":           {`{$,"port":"abcdefghijklmnop"}`, []string{`$.binding.port:`}},
		"port: two hyphens":         {`{$,"port":"a--b"}`, []string{`$.binding.port:`}},
		"cidr: no prefix":           {`{$,"podCIDRs":["10.64.0.1"]}`, []string{`$.binding.podCIDRs[0]: "10.64.0.1" is no address block`}},
		"cidr: host bits":           {`{$,"podCIDRs":["fd00::/64","10.64.0.1/16"]}`, []string{`$.binding.podCIDRs[1]: "10.64.0.1/16" has bits set behind its prefix: want 10.64.0.0/16`}},
		"cidr: none":                {`{$,"podCIDRs":[]}`, []string{`$.binding.podCIDRs: []`}},
		"cidr: a number":            {`{$,"podCIDRs":[10]}`, []string{`$.binding.podCIDRs[0]: 10: want a string`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			raw := strings.ReplaceAll(tt.constants, "{$", `{"targetGroup":"`+group+`"`)
			_, err := binding.ParseConstants([]byte(raw))
			checkFaults(t, err, tt.want)
		})
	}
}

// checkFaults compares faults with a part of each that is wanted.
func checkFaults(t *testing.T, err error, want []string) {
	t.Helper()
	got := binding.Faults(err)
	if len(got) != len(want) {
		t.Errorf("%d faults, want %d:\n%v", len(got), len(want), err)
		return
	}
	for i, f := range got {
		if !strings.Contains(f.Error(), want[i]) {
			t.Errorf("fault %d is %q, want %q in it", i, f, want[i])
		}
	}
}
