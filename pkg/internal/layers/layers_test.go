// Package layers holds the test of what the pure core stands on.
package layers

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/elbridge/elbridge/"

// core is what is true without AWS and Kubernetes.
var core = []string{"pkg/podevent", "pkg/eventpattern", "pkg/binding", "pkg/claim", "pkg/plan", "pkg/drift", "pkg/targetevent", "pkg/preview", "pkg/eventpattern/podmatch"}

// world is what the core reads nothing of: settings, files, networks, programs,
// logs. Libraries of the standard library may use them, we may not.
var world = []string{"os", "os/exec", "os/signal", "log", "log/slog", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand", "syscall", "testing"}

// TestTheCoreIsPure looks at all that is linked in, not only at what the core's
// own files import.
func TestTheCoreIsPure(t *testing.T) {
	args := []string{"list", "-deps", "-json=ImportPath,Standard,Imports"}
	for _, p := range core {
		args = append(args, module+p)
	}
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Standard   bool
			Imports    []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Standard {
			continue
		}
		seen++
		name, ours := strings.CutPrefix(p.ImportPath, module)
		if !ours || !slices.Contains(core, name) && !strings.HasPrefix(name, "pkg/internal/") {
			t.Errorf("the core stands on %s", p.ImportPath)
		}
		for _, i := range p.Imports {
			if slices.Contains(world, i) {
				t.Errorf("%s imports %s", name, i)
			}
		}
	}
	if seen < len(core) {
		t.Errorf("%d packages were looked at, want at least %d", seen, len(core))
	}
}
