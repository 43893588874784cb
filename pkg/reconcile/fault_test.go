package reconcile_test

import (
	"testing"

	"github.com/elbridge/elbridge/pkg/reconcile"
)

// TestMentions_I8: a faulty rule speaks of a group by its ARN or name, whole or not.
func TestMentions_I8(t *testing.T) {
	tests := map[string]struct {
		constants string
		want      bool
	}{
		"its ARN":            {`{"targetGroup":"` + webARN + `","prot":8080}`, true},
		"an ARN cut off":     {`{"targetGroup":"` + webARN[:len(webARN)-4] + `","port":8080}`, true},
		"its name":           {`{"targetGroup":{"name":"web","port":8080}}`, true},
		"slashes escaped":    {`{"targetGroup":"targetgroup\/web\/01"}`, true},
		"no JSON":            {`web`, true},
		"another's":          {`{"targetGroup":{"name":"web-2"},"prot":1}`, false},
		"a part of a word":   {`{"targetGroup":{"name":"website"},"prot":1}`, false},
		"nothing of a group": {`{}`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bus := &rules{constants: map[string]string{"r": tt.constants}}
			book := reconcile.NewRuleBook(bus, queueARN, newClock().now, nil)
			for range 2 { // as read, and as remembered
				s, err := book.Fresh(t.Context())
				if err != nil || len(s.Faults) != 1 {
					t.Fatalf("faults %v, error %v, want one fault", s.Faults, err)
				}
				if f, got := s.Faulty(webARN); got != tt.want || got && f.Rule.Name != "r" {
					t.Errorf("mentioned: %t by %q, want %t", got, f.Rule.Name, tt.want)
				}
			}
		})
	}
}
