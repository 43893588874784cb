package picture_test

import (
	"os"
	"runtime"
	"testing"
)

// TestMain keeps the race detector from crashing in bubbles of testing/synctest
// (golang/go#78156): on several processors it dies now and then of a check of its
// own. Races are found on one as well: it compares what happened before what.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}
