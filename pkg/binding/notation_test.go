package binding_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/elbridge/elbridge/pkg/binding"
)

const (
	queue   = "arn:aws:sqs:eu-west-1:111122223333:elbridge-bindings"
	ruleARN = "arn:aws:events:eu-west-1:111122223333:rule/elbridge/web"
	group   = "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/web/0123456789abcdef"

	pattern  = `{"source":["elbridge"],"detail":{"namespace":["ingress"]}}`
	template = `{"binding":{"targetGroup":"` + group + `","port":9999},"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`
)

var web = binding.Rule{ARN: ruleARN, Name: "web", Bus: "elbridge", State: "ENABLED", Pattern: pattern}

// target is a target at the queue with a template; further arguments are
// variables as "name=path".
func target(template string, paths ...string) binding.Target {
	t := &binding.Transformer{Template: template, PathsMap: map[string]string{}}
	for _, p := range paths {
		name, path, _ := strings.Cut(p, "=")
		t.PathsMap[name] = path
	}
	return binding.Target{ID: "registrar", ARN: queue, Transformer: t}
}

// show writes what differs from the defaults: "arn port=9999 Ready min=2".
func show(b binding.Binding) string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	switch {
	case b.Group.ARN != "":
		add("arn")
	case b.Group.Name != "":
		add("name:%s", b.Group.Name)
	default:
		for _, k := range slices.Sorted(maps.Keys(b.Group.Tags)) {
			add("tag:%s=%s", k, b.Group.Tags[k])
		}
	}
	if b.Port.Number != 0 {
		add("port=%d", b.Port.Number)
	}
	if b.Port.Name != "" {
		add("port=%s", b.Port.Name)
	}
	if b.RegisterWhen != binding.HasIP {
		add("%s", b.RegisterWhen)
	}
	if b.MinTargets != binding.DefaultMinTargets {
		add("min=%d", b.MinTargets)
	}
	if b.MaxRemovalPercent != binding.DefaultMaxRemovalPercent {
		add("max=%d%%", b.MaxRemovalPercent)
	}
	for _, p := range b.PodCIDRs {
		add("%s", p)
	}
	if b.Mode != binding.Manage {
		add("%s", b.Mode)
	}
	if b.KeepForeign {
		add("keep")
	}
	if b.Empty {
		add("empty")
	}
	if b.AvailabilityZone != binding.ZoneAuto {
		add("zone=%s", b.AvailabilityZone)
	}
	if b.RoleARN != "" {
		add("role")
	}
	if b.ExternalID != "" {
		add("external=%s", b.ExternalID)
	}
	if b.ReadinessGate != "" {
		add("gate=%s", b.ReadinessGate)
	}
	return strings.Join(out, " ")
}
