package docs_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/eventpattern"
)

var jsonBlock = regexp.MustCompile("(?s)```json\n(.*?)```")

// TestBindings: the rule that the contract shows is one, and its target is a
// binding with the defaults that the table names.
func TestBindings(t *testing.T) {
	blocks := jsonBlock.FindAllStringSubmatch(read(t, "design.md"), -1)
	if len(blocks) != 2 {
		t.Fatalf("design.md has %d JSON blocks, want a pattern and a template", len(blocks))
	}
	pattern, template := strings.TrimSpace(blocks[0][1]), strings.TrimSpace(blocks[1][1])
	if _, err := eventpattern.Parse([]byte(pattern)); err != nil {
		t.Error(err)
	}
	const queue = "arn:aws:sqs:eu-west-1:111122223333:elbridge-registrar"
	rule := binding.Rule{ARN: "arn:aws:events:eu-west-1:111122223333:rule/elbridge/ingress", Name: "ingress", Bus: "elbridge", State: "ENABLED", Pattern: pattern}
	bs, err := binding.FromRule(rule, []binding.Target{{ID: "registrar", ARN: queue, Transformer: &binding.Transformer{Template: template}}}, queue)
	if err != nil || len(bs) != 1 {
		t.Fatalf("FromRule = %v, %v", bs, err)
	}
	b := bs[0]
	if b.RegisterWhen != binding.HasIP || b.MinTargets != 1 || b.MaxRemovalPercent != 20 || b.Mode != binding.Manage || b.AvailabilityZone != binding.ZoneAuto || b.Port.Number != 9999 {
		t.Errorf("defaults differ from the table: %+v", b)
	}
}
