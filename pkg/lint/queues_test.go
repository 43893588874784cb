package lint_test

import (
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/lint"
)

// A bus without a binding has rules of other kinds, which are no faulty ones.
func TestQueues(t *testing.T) {
	rule := func(pattern, queue, template string) lint.Rule {
		target := binding.Target{ARN: "arn:aws:sqs:eu-west-1:111122223333:" + queue}
		if template != "" {
			target.Transformer = &binding.Transformer{Template: template}
		}
		return lint.Rule{Rule: binding.Rule{Pattern: pattern}, Targets: []binding.Target{target}}
	}
	pods := rule(`{"detail-type":["Pod State Change"]}`, "pods", "")
	anything := rule(`{"source":["elbridge"]}`, "anything", "")
	requests := rule(`{"detail-type":["Webhook Started","Events Dropped"]}`, "requests", "")
	prefixed := rule(`{"detail-type":[{"prefix":"Pod"}]}`, "prefixed", "")
	bound := rule(`{"detail-type":["Pod State Change"]}`, "bound", `{"binding":{}}`)
	tests := map[string]struct {
		rules []lint.Rule
		want  string
	}{
		"the one that a binding names":      {[]lint.Rule{pods, anything, bound, requests}, "bound"},
		"no binding: what may mean pods":    {[]lint.Rule{pods, anything, requests, prefixed}, "anything pods prefixed"},
		"no binding: nothing that may mean": {[]lint.Rule{requests}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := strings.ReplaceAll(strings.Join(lint.Queues(tt.rules), " "), "arn:aws:sqs:eu-west-1:111122223333:", "")
			if got != tt.want {
				t.Errorf("queues %q, want %q", got, tt.want)
			}
		})
	}
}
