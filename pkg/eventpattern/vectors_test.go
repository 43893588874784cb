package eventpattern_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/eventpattern"
)

// A vector is a pattern, an event and the verdict of the service's open-source
// matcher.
type vector struct {
	ID          string
	Group       string
	Pattern     json.RawMessage
	PatternText *string // in place of Pattern, where its exact text matters
	Event       json.RawMessage
	Valid       bool
	Match       bool
	Note        string
}

func (v *vector) pattern() []byte {
	if v.PatternText != nil {
		return []byte(*v.PatternText)
	}
	return v.Pattern
}

// artefact begins the note of a vector whose verdict looks like a defect of the
// library. We may differ on those, and on no others.
const artefact = "Library artefact"

// differing are the artefacts on which this package differs, by what the note
// says, with the reason.
var differing = map[string]string{
	"addresses are compared as strings of hex digits without regard to family": "" +
		"families are kept apart: an IPv4 block that took in IPv6 pods, or the other way round, would register foreign addresses",
	"an unquoted number of eight digits is taken for the hex form of an IPv4 address": "" +
		"a number is no address",
	"an empty key under another key is not tracked, so it never matches": "" +
		"only the joined path counts, and an empty key is a key",
}

func TestVectors(t *testing.T) {
	const ours = "testdata/vectors.jsonl.gz"
	files := append([]string{ours}, filepath.SplitList(os.Getenv("ELBRIDGE_PATTERN_VECTORS"))...)
	for _, file := range files {
		if file == "" {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			seen, differs := 0, 0
			for _, v := range readVectors(t, file) {
				seen++
				got := v.check(t)
				if got == v.verdict() {
					continue
				}
				differs++
				switch isArtefact := strings.HasPrefix(v.Note, artefact); {
				case isArtefact && v.reason() != "":
				case isArtefact && file != ours:
					t.Logf("%s: differs, for a reason that is not listed: %s", v.ID, v.Note)
				default:
					t.Errorf("%s: pattern %s, event %s: %s, want %s (%s)", v.ID, v.pattern(), v.Event, got, v.verdict(), v.Note)
				}
			}
			t.Logf("%d vectors, %d artefacts on which we differ", seen, differs)
		})
	}
}

// verdict is the library's.
func (v *vector) verdict() string {
	switch {
	case !v.Valid:
		return "invalid"
	case v.Match:
		return "match"
	}
	return "no match"
}

// check returns our verdict, and whatever way it is come by, it is the same.
func (v *vector) check(t *testing.T) string {
	t.Helper()
	p, err := eventpattern.Parse(v.pattern())
	if err != nil {
		v.checkError(t, err)
		return "invalid"
	}
	e, err := eventpattern.ParseEvent(v.Event)
	if err != nil {
		return "invalid event: " + err.Error()
	}
	got := p.Matches(e)
	if set, err := eventpattern.NewSet([]*eventpattern.Pattern{p}).Match(v.Event); (len(set) == 1) != got || err != nil {
		t.Errorf("%s: the set says %v, %v, the pattern %v", v.ID, set, err, got)
	}
	if x := p.Explain(e); x.Match != got {
		t.Errorf("%s: Explain says %s, Matches %v", v.ID, x, got)
	}
	if got {
		return "match"
	}
	return "no match"
}

// checkError: the error says where, and something to act on.
func (v *vector) checkError(t *testing.T, err error) {
	t.Helper()
	var syntax *eventpattern.SyntaxError
	if !errors.As(err, &syntax) {
		t.Errorf("%s: error %v is no SyntaxError", v.ID, err)
		return
	}
	if syntax.Reason == "" || syntax.Offset < 0 || syntax.Offset > len(v.pattern()) {
		t.Errorf("%s: error %#v has no reason or no place", v.ID, syntax)
	}
	if begins := bytes.HasPrefix(v.pattern(), []byte("{")); begins && syntax.Offset == 0 && syntax.Path == "" {
		t.Errorf("%s: Parse(%s): %v: neither path nor place", v.ID, v.pattern(), err)
	}
	if !strings.HasSuffix(err.Error(), fmt.Sprintf(" (at byte %d)", syntax.Offset)) {
		t.Errorf("%s: error %q does not say where", v.ID, err)
	}
}

func (v *vector) reason() string {
	note, ok := strings.CutPrefix(v.Note, artefact)
	if !ok {
		return ""
	}
	for says, reason := range differing {
		if strings.Contains(note, says) {
			return reason
		}
	}
	return ""
}

func readVectors(t testing.TB, file string) []vector {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.HasPrefix(raw, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	var vectors []vector
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, 32<<20)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		v.Pattern, v.Event = bytes.Clone(v.Pattern), bytes.Clone(v.Event)
		vectors = append(vectors, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return vectors
}
