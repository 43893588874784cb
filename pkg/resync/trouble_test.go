package resync

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestTroubles(t *testing.T) {
	var ts troubles
	if err := ts.err(); err != nil {
		t.Errorf("none: %v", err)
	}
	first := errors.New("first")
	for range 3 { // passes
		ts.add(first)
		for i := range 1000 {
			ts.add(fmt.Errorf("pod p%d", i))
		}
	}
	err := ts.err()
	if want := "first\npod p0\npod p1\nand 998 more"; err.Error() != want || !errors.Is(err, first) {
		t.Errorf("err = %q, want %q", err, want)
	}
	for i := range 2 * maxTroubles {
		ts.add(fmt.Errorf("%d %s", i, strings.Repeat("x", 10)))
	}
	if len(ts.met) > maxTroubles {
		t.Errorf("%d are remembered", len(ts.met))
	}
}
