package main

import (
	"fmt"
	"testing"

	"github.com/elbridge/elbridge/local/smoke"
	"github.com/elbridge/elbridge/local/stack"
)

func TestWays(t *testing.T) {
	for flag, want := range map[string]string{
		"all": "[events resync both]", "resync": "[resync]", "both": "[both]", "events": "[events]",
		"": "[] --way : want one of [events resync both], or all", "hints": "[] --way hints: want one of [events resync both], or all",
	} {
		ways, err := waysOf(flag)
		got := fmt.Sprint(ways)
		if err != nil {
			got += " " + err.Error()
		}
		if got != want {
			t.Errorf("waysOf(%q) = %s, want %s", flag, got, want)
		}
	}
}

func TestSummaryCountsWhatDidNotRunAsNeither(t *testing.T) {
	results := []smoke.Result{{Name: "a"}, {Name: "b", Error: "bad"}, {Name: "c", NotRun: "no sense"}, {Name: "d"}}
	if got, want := summary(stack.WayResync, results), "way resync: 2 passed, 1 failed, 1 not run, as said above"; got != want {
		t.Errorf("summary = %q, want %q", got, want)
	}
	if got, want := summary(stack.WayBoth, results[:1]), "way both: 1 passed, 0 failed"; got != want {
		t.Errorf("summary = %q, want %q", got, want)
	}
}
