package stack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/eventpattern"
)

// What the stack's own rules of the bus hand on: to the record all but the pods'
// events, to resync what the webhook says that asks for a round.
func TestOwnRulesOfTheBus(t *testing.T) {
	type event struct{ source, detailType string }
	audit, triggers := mustParse(t, auditPattern), mustParse(t, triggersPattern)
	for e, want := range map[event]struct{ audit, triggers bool }{
		{"elbridge", "Pod State Change"}:                      {false, false},
		{"elbridge", "Webhook Started"}:                       {true, true},
		{"elbridge", "Events Dropped"}:                        {true, true},
		{"elbridge", "Webhook Heartbeat"}:                     {true, false},
		{"elbridge.targets", "Targets Changed"}:               {true, false},
		{"elbridge.targets", "Resync Completed"}:              {true, false},
		{"elbridge.prober", "API Server Reachability"}:        {true, false},
		{"elbridge.targets", "Webhook Started"}:               {true, false},
		{"elbridged", "Targets Changed"}:                      {false, false},
		{"aws.ec2", "EC2 Instance State-change Notification"}: {false, false},
	} {
		parsed, err := eventpattern.ParseEvent(fmt.Appendf(nil, `{"source":%q,"detail-type":%q,"detail":{}}`, e.source, e.detailType))
		if err != nil {
			t.Fatal(err)
		}
		if got := audit.Matches(parsed); got != want.audit {
			t.Errorf("record of %+v: %t, want %t", e, got, want.audit)
		}
		if got := triggers.Matches(parsed); got != want.triggers {
			t.Errorf("trigger by %+v: %t, want %t", e, got, want.triggers)
		}
	}
}

func mustParse(t *testing.T, pattern string) *eventpattern.Pattern {
	t.Helper()
	p, err := eventpattern.Parse([]byte(pattern))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// They are no bindings, and no faults either.
func TestOwnRulesAreNoBindings(t *testing.T) {
	for name, c := range map[string]struct{ pattern, target string }{
		AuditRule: {auditPattern, auditARN}, TriggersRule: {triggersPattern, ResyncQueueARN},
	} {
		rule := binding.Rule{ARN: "arn:aws:events:" + Region + ":" + Account + ":rule/" + Bus + "/" + name, Name: name, Bus: Bus, State: "ENABLED", Pattern: c.pattern}
		bindings, err := binding.FromRule(rule, []binding.Target{{ID: "own", ARN: c.target}}, QueueARN)
		if len(bindings) > 0 || err != nil {
			t.Errorf("rule %s: bindings %v, %v, want neither bindings nor an error", name, bindings, err)
		}
	}
}

func TestWayThatCanNotBe(t *testing.T) {
	with, without := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(with, Resync), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(with, Resync, "bootstrap"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		way      Way
		binaries string
		ok       bool
	}{
		"events without resync": {WayEvents, without, true},
		"resync without resync": {WayResync, without, false},
		"resync":                {WayResync, with, true},
		"both":                  {WayBoth, with, true},
		"no way":                {"hints", with, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&Config{Way: c.way, Binaries: c.binaries}).checkWay()
			if (err == nil) != c.ok || (c.binaries == without && !c.ok && !errors.Is(err, ErrNoResync)) {
				t.Errorf("checkWay = %v, want it to be fine: %t", err, c.ok)
			}
		})
	}
}
