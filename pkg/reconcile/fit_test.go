package reconcile_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/reconcile"
)

func TestBrief(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("x", 500)} {
		if got := reconcile.Brief(text); got != text {
			t.Errorf("Brief(%q) = %q", text, got)
		}
	}
	for _, text := range []string{strings.Repeat("x", 501), strings.Repeat("ü", 2000), "a" + strings.Repeat("€", 2000)} {
		got := reconcile.Brief(text)
		if len(got) > 500 || len(got) < 490 || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
			t.Errorf("Brief of %d bytes has %d: %q", len(text), len(got), got)
		}
	}
}

func TestFits(t *testing.T) {
	if !reconcile.Fits("x") || reconcile.Fits(strings.Repeat("x", bus.MaxCallBytes)) {
		t.Error("a short text has to fit, and one of a whole call not")
	}
}
