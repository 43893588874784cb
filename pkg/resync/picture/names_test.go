package picture

import (
	"fmt"
	"testing"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/eventpattern"
)

// However often rules change, the patterns of old ones are forgotten.
func TestOldPatternsAreForgotten(t *testing.T) {
	p := New(Config{Cluster: "prod"})
	for i := range 100 {
		pattern, err := eventpattern.Parse(fmt.Appendf(nil, `{"detail":{"name":["web-%d"]}}`, i))
		if err != nil {
			t.Fatal(err)
		}
		p.Follow([]binding.Binding{{Pattern: pattern}})
	}
	if len(p.names.ids) != 1 || len(p.names.texts) != 1 {
		t.Errorf("%d patterns by text and %d by number are known, want the one that is followed", len(p.names.ids), len(p.names.texts))
	}
}
