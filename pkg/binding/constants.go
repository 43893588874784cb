package binding

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/elbridge/elbridge/pkg/internal/nearest"
)

// A reader takes one constant's value into a binding, or adds to the faults.
type reader func(b *Binding, v value)

// readers are the constants by name.
var readers = map[string]reader{
	"targetGroup":       readTargetGroup,
	"port":              readPort,
	"registerWhen":      readRegisterWhen,
	"minTargets":        readMinTargets,
	"maxRemovalPercent": readMaxRemovalPercent,
	"podCIDRs":          readPodCIDRs,
	"mode":              readMode,
	"foreignTargets":    readForeignTargets,
	"empty":             readEmpty,
	"availabilityZone":  readAvailabilityZone,
	"roleArn":           readRoleARN,
	"externalId":        readExternalID,
	"readinessGate":     readReadinessGate,
}

// ParseConstants reads the "binding" object alone, with the defaults of what it
// leaves out. The error joins a *Fault for everything that is wrong with it. The
// binding has no pattern, rule or state yet.
func ParseConstants(raw []byte) (Binding, error) {
	b := Binding{
		RegisterWhen:      HasIP,
		MinTargets:        DefaultMinTargets,
		MaxRemovalPercent: DefaultMaxRemovalPercent,
		Mode:              Manage,
		AvailabilityZone:  ZoneAuto,
	}
	var f faults
	v := value{raw: raw, path: "$.binding", faults: &f}
	members, ok := v.object(`an object belongs here, as in {"targetGroup":"arn:…","port":9999}`)
	if !ok {
		return Binding{}, f.err()
	}
	for _, m := range members {
		read, known := readers[m.key]
		if !known {
			m.fail("unknown constant%s (known are %s)", didYouMean(m.key, constantNames()), strings.Join(constantNames(), ", "))
			continue
		}
		if m.isNull() {
			m.fail("null: give a value or leave it out")
			continue
		}
		read(&b, m.value)
	}
	if !slices.ContainsFunc(members, func(m member) bool { return m.key == "targetGroup" }) {
		f.add("$.binding.targetGroup", "missing: name the group by its ARN, {\"name\":…} or {\"tags\":{…}}")
	}
	b.checkTogether(&f)
	if err := f.err(); err != nil {
		return Binding{}, err
	}
	return b, nil
}

// checkTogether finds constants that contradict each other.
func (b *Binding) checkTogether(f *faults) {
	if b.ReadinessGate != "" && b.RegisterWhen == Ready {
		f.add("$.binding.readinessGate", "with registerWhen Ready it would wait for itself: the gate opens when the target is healthy, "+
			"and the pod would be registered when the gate is open; use ContainersReady or HasIP")
	}
	if b.ExternalID != "" && b.RoleARN == "" {
		f.add("$.binding.externalId", "without roleArn it has no use: add the role or leave it out")
	}
}

func constantNames() []string { return slices.Sorted(maps.Keys(readers)) }

// didYouMean returns ", did you mean X" where a known word is close.
func didYouMean(word string, known []string) string {
	if w := nearest.Word(word, known); w != "" {
		return ", did you mean " + w
	}
	return ""
}

func readRegisterWhen(b *Binding, v value) {
	if s, ok := v.oneOf(string(HasIP), string(ContainersReady), string(Ready)); ok {
		b.RegisterWhen = RegisterWhen(s)
	}
}

func readMode(b *Binding, v value) {
	if s, ok := v.oneOf(string(Manage), string(Observe)); ok {
		b.Mode = Mode(s)
	}
}

// readForeignTargets: remove is the default, which applies to owned groups only (I18).
func readForeignTargets(b *Binding, v value) {
	if s, ok := v.oneOf("keep", "remove"); ok {
		b.KeepForeign = s == "keep"
	}
}

func readMinTargets(b *Binding, v value) {
	if n, ok := v.integer(0, 1<<20, "0 or more"); ok {
		b.MinTargets = n
	}
}

func readMaxRemovalPercent(b *Binding, v value) {
	if n, ok := v.integer(0, 100, "0 to 100"); ok {
		b.MaxRemovalPercent = n
	}
}

func readEmpty(b *Binding, v value) {
	if json.Unmarshal(v.raw, &b.Empty) != nil {
		v.fail("%s: want true or false, without quotes", v.show())
	}
}

func readPodCIDRs(b *Binding, v value) {
	var list []json.RawMessage
	if json.Unmarshal(v.raw, &list) != nil || len(list) == 0 {
		v.fail("%s: want a list of address blocks, as in [\"10.64.0.0/16\"], or leave it out", v.show())
		return
	}
	for i, raw := range list {
		item := value{raw: raw, path: fmt.Sprintf("%s[%d]", v.path, i), faults: v.faults}
		if p, ok := item.prefix(); ok {
			b.PodCIDRs = append(b.PodCIDRs, p)
		}
	}
}

func (v value) prefix() (netip.Prefix, bool) {
	s, ok := v.text()
	if !ok {
		return netip.Prefix{}, false
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		v.fail("%q is no address block: want one as in 10.64.0.0/16 or fd00::/64", clip(s))
		return netip.Prefix{}, false
	case p != p.Masked():
		v.fail("%q has bits set behind its prefix: want %s", clip(s), p.Masked())
		return netip.Prefix{}, false
	}
	return p, true
}

// value is a JSON value of the constants, and where it stands.
type value struct {
	raw    json.RawMessage
	path   string
	faults *faults
}

type member struct {
	key string
	value
}

func (v value) fail(format string, args ...any) { v.faults.add(v.path, format, args...) }

func (v value) isNull() bool { return bytes.Equal(bytes.TrimSpace(v.raw), []byte("null")) }

// show is the value as an error quotes it.
func (v value) show() string { return clip(string(bytes.TrimSpace(v.raw))) }

func (v value) text() (string, bool) {
	var s string
	if v.isNull() || json.Unmarshal(v.raw, &s) != nil {
		v.fail("%s: want a string", v.show())
		return "", false
	}
	return s, true
}

func (v value) oneOf(words ...string) (string, bool) {
	s, ok := v.text()
	if !ok {
		return "", false
	}
	if !slices.Contains(words, s) {
		v.fail("%q%s: want one of %s", clip(s), didYouMean(s, words), strings.Join(words, ", "))
		return "", false
	}
	return s, true
}

func (v value) integer(low, high int, want string) (int, bool) {
	var n int
	if json.Unmarshal(v.raw, &n) != nil || n < low || n > high {
		v.fail("%s: want a whole number, %s, without quotes", v.show(), want)
		return 0, false
	}
	return n, true
}

// object reads the members of an object in order. A key that is given twice is a
// fault: which one counts is not the same everywhere.
func (v value) object(want string) ([]member, bool) {
	d := json.NewDecoder(bytes.NewReader(v.raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		v.fail("%s: %s", v.show(), want)
		return nil, false
	}
	var members []member
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		key, isKey := t.(string)
		var raw json.RawMessage
		if err == nil && isKey {
			err = d.Decode(&raw)
		}
		if err != nil || !isKey {
			v.fail("not valid JSON: %v", err)
			return nil, false
		}
		m := member{key: key, value: value{raw: raw, path: v.path + "." + clip(key), faults: v.faults}}
		if seen[key] {
			m.fail("given twice: keep one")
			continue
		}
		seen[key] = true
		members = append(members, m)
	}
	if _, err := d.Token(); err != nil {
		v.fail("not valid JSON: %v", err)
		return nil, false
	}
	return members, true
}
