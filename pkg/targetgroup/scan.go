package targetgroup

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
)

// scanHealth reads an answer of DescribeTargetHealth in one pass: of each target
// what Health asks for, as the SDK would read it. It knows plain elements and plain
// text alone, and says no to whatever else there may be in XML, to what is not
// closed, and to what is there twice. After a no nothing that was read counts.
func scanHealth(body []byte) (all []types.TargetHealthDescription, ok bool) {
	for _, prolog := range prologs {
		body = bytes.TrimPrefix(body, prolog)
	}
	s := scanner{rest: body, known: map[string]string{}}
	root := s.root()
	if !is(root, "DescribeTargetHealthResponse") {
		return nil, false
	}
	result, more := s.child(root) // first, so that no other is
	if !more || !is(result, "DescribeTargetHealthResult") {
		return nil, false
	}
	listed := false
	for e, more := s.child(result); more; e, more = s.child(result) {
		if is(e, "TargetHealthDescriptions") && !listed {
			listed, all = true, s.targets(e)
		} else {
			s.bad = true
		}
	}
	for e, more := s.child(root); more; e, more = s.child(root) {
		s.skip(e) // the response's metadata
	}
	s.space()
	return all, listed && !s.bad && len(s.rest) == 0
}

// prologs are what may stand before the answer; another names another version or
// encoding, or is longer than it need be.
var prologs = [][]byte{[]byte(`<?xml version="1.0"?>`), []byte(`<?xml version="1.0" encoding="UTF-8"?>`)}

// target is what a description points to, in one piece.
type target struct {
	target types.TargetDescription
	health types.TargetHealth
	id     string
	port   int32
	zone   string
}

func (s *scanner) targets(list []byte) []types.TargetHealthDescription {
	all := make([]types.TargetHealthDescription, 0, bytes.Count(s.rest, []byte("<Target>")))
	for e, more := s.child(list); more; e, more = s.child(list) {
		all = append(all, s.description(e))
	}
	return all
}

func (s *scanner) description(of []byte) (d types.TargetHealthDescription) {
	var t target
	for e, more := s.child(of); more; e, more = s.child(of) {
		switch {
		case is(e, "Target") && d.Target == nil:
			d.Target = &t.target
			s.target(e, &t)
		case is(e, "TargetHealth") && d.TargetHealth == nil:
			d.TargetHealth = &t.health
			s.health(e, &t.health)
		case is(e, "Target"), is(e, "TargetHealth"):
			s.bad = true
		case is(e, "HealthCheckPort"):
			s.text(e)
		default: // anomalies, overrides
			s.skip(e)
		}
	}
	return d
}

func (s *scanner) target(of []byte, t *target) {
	for e, more := s.child(of); more; e, more = s.child(of) {
		text := s.text(e)
		switch {
		case is(e, "Id"):
			s.once(t.target.Id == nil)
			t.id = string(text)
			t.target.Id = &t.id
		case is(e, "Port"):
			s.once(t.target.Port == nil)
			t.port = s.port(text)
			t.target.Port = &t.port
		case is(e, "AvailabilityZone"):
			s.once(t.target.AvailabilityZone == nil)
			t.zone = s.word(text)
			t.target.AvailabilityZone = &t.zone
		}
	}
}

func (s *scanner) health(of []byte, h *types.TargetHealth) {
	for e, more := s.child(of); more; e, more = s.child(of) {
		text := s.text(e)
		switch {
		case is(e, "State"):
			s.once(h.State == "")
			h.State = types.TargetHealthStateEnum(s.word(text))
		case is(e, "Reason"):
			s.once(h.Reason == "")
			h.Reason = types.TargetHealthReasonEnum(s.word(text))
		}
	}
}

// scanner goes through XML of the plainest kind. Once it met anything else it is
// bad, and every method is at its end.
type scanner struct {
	rest  []byte
	empty bool // the element entered last was <Name/>: it has ended
	bad   bool
	known map[string]string // words that many targets have in common
}

// is compares names as the SDK does.
func is(name []byte, want string) bool { return strings.EqualFold(string(name), want) }

func (s *scanner) once(first bool) { s.bad = s.bad || !first }

// port is a number without a sign; what is no port is the SDK's to judge.
func (s *scanner) port(text []byte) int32 {
	n, err := strconv.ParseUint(string(text), 10, 16)
	s.bad = s.bad || err != nil
	return int32(n)
}

// word returns a text that many targets have, kept once.
func (s *scanner) word(text []byte) string {
	if w, known := s.known[string(text)]; known {
		return w
	}
	w := string(text)
	s.known[w] = w
	return w
}

func (s *scanner) space() {
	n := 0
	for n < len(s.rest) && (s.rest[n] == ' ' || s.rest[n] == '\n' || s.rest[n] == '\r' || s.rest[n] == '\t') {
		n++
	}
	s.rest = s.rest[n:]
}

// took takes a prefix if it is next.
func (s *scanner) took(prefix string) bool {
	if len(s.rest) < len(prefix) || string(s.rest[:len(prefix)]) != prefix {
		return false
	}
	s.rest = s.rest[len(prefix):]
	return true
}

// root enters the outermost element, which may name its default namespace.
func (s *scanner) root() []byte {
	s.space()
	name := s.open()
	if s.took(` xmlns="`) {
		end := bytes.IndexByte(s.rest, '"')
		if end < 0 || !plain(s.rest[:end]) {
			s.bad = true
			return nil
		}
		s.rest = s.rest[end+1:]
	}
	s.bad = s.bad || !s.took(">")
	return name
}

// child enters the next element within parent, and leaves parent if there is none.
func (s *scanner) child(parent []byte) (name []byte, more bool) {
	if s.bad || s.ended() {
		return nil, false
	}
	s.space()
	if len(s.rest) > 1 && s.rest[1] == '/' {
		s.leave(parent)
		return nil, false
	}
	name = s.open()
	if s.took("/>") {
		s.empty = true
	} else if !s.took(">") {
		s.bad = true
	}
	return name, !s.bad
}

// text returns what is within an element that holds nothing else, and leaves it.
func (s *scanner) text(of []byte) []byte {
	if s.bad || s.ended() {
		return nil
	}
	end := bytes.IndexByte(s.rest, '<')
	if end < 0 || !plain(s.rest[:end]) {
		s.bad = true
		return nil
	}
	text := s.rest[:end]
	s.rest = s.rest[end:]
	s.leave(of)
	return text
}

// skip leaves an element that holds texts, or elements of texts.
func (s *scanner) skip(of []byte) {
	s.space()
	if s.empty || len(s.rest) == 0 || s.rest[0] != '<' {
		s.text(of)
		return
	}
	for e, more := s.child(of); more; e, more = s.child(of) {
		s.text(e)
	}
}

// ended reports whether the element entered last has ended already.
func (s *scanner) ended() bool {
	was := s.empty
	s.empty = false
	return was
}

// open takes "<Name".
func (s *scanner) open() []byte {
	if !s.took("<") {
		s.bad = true
		return nil
	}
	n := 0
	for n < len(s.rest) && isLetter(s.rest[n]) {
		n++
	}
	s.bad = s.bad || n == 0
	name := s.rest[:n]
	s.rest = s.rest[n:]
	return name
}

// leave takes "</Name>".
func (s *scanner) leave(name []byte) {
	tail, ok := bytes.CutPrefix(s.rest, []byte("</"))
	if ok {
		tail, ok = bytes.CutPrefix(tail, name)
	}
	if ok {
		tail, ok = bytes.CutPrefix(tail, []byte(">"))
	}
	s.rest, s.bad = tail, s.bad || !ok
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// plain reports whether a text means what it says: printable ASCII without
// references, and without what may end a CDATA section.
func plain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '&' || c == '<' || c == '>' {
			return false
		}
	}
	return true
}
