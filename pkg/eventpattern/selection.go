package eventpattern

import (
	"maps"
	"slices"
	"strings"
)

// Selection is what of a pattern can be pushed into a Kubernetes LIST of pods.
// It is an over-approximation: every pod whose event the pattern matches is
// admitted, some others may be. Only lists of plain strings are used, and only
// where every combination of $or branches has one.
type Selection struct {
	Clusters   []string            // nil = any; else the values of detail.cluster, sorted
	Namespaces []string            // nil = any; else the values of detail.namespace, sorted
	Labels     map[string][]string // label key -> allowed values, sorted; never nil
}

const labelsPath = "detail.labels."

// Selection returns what of the pattern a LIST can carry.
func (p *Pattern) Selection() Selection {
	s := Selection{Labels: map[string][]string{}}
	for path, values := range p.pinned() {
		switch {
		case path == "detail.cluster":
			s.Clusters = values
		case path == "detail.namespace" && all(values, isDNSLabel):
			s.Namespaces = values
		case strings.HasPrefix(path, labelsPath):
			key := path[len(labelsPath):]
			if isLabelKey(key) && all(values, isLabelValue) {
				s.Labels[key] = values
			}
		}
	}
	return s
}

// pinned returns the paths that every branch restricts to plain strings, each
// with the union of what the branches allow.
func (p *Pattern) pinned() map[string][]string {
	restricting := map[string]int{} // path -> branches that restrict it
	seen := map[*condition]bool{}   // branches share conditions
	union := map[string][]string{}
	for _, b := range p.branches {
		for _, c := range b.conditions {
			values, ok := c.plainStrings()
			if !ok {
				continue
			}
			restricting[c.path]++
			if !seen[c] {
				seen[c] = true
				union[c.path] = append(union[c.path], values...)
			}
		}
	}
	maps.DeleteFunc(union, func(path string, _ []string) bool { return restricting[path] < len(p.branches) })
	for path, values := range union {
		slices.Sort(values)
		union[path] = slices.Compact(values)
	}
	return union
}

// plainStrings returns the values of a condition that is a list of strings and
// nothing else. Addresses are not among them: they match in several spellings.
func (c *condition) plainStrings() ([]string, bool) {
	if c.absent || len(c.tests) != 1 {
		return nil, false
	}
	t, ok := c.tests[0].(*exactStrings)
	if !ok {
		return nil, false
	}
	return t.values, true
}

// LabelSelector spells Labels as Kubernetes does, keys sorted: "app in (a,b),tier=web".
// Empty means every pod.
func (s Selection) LabelSelector() string {
	var terms []string
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		values := s.Labels[key]
		if len(values) == 1 {
			terms = append(terms, key+"="+values[0])
		} else {
			terms = append(terms, key+" in ("+strings.Join(values, ",")+")")
		}
	}
	return strings.Join(terms, ",")
}

func all(values []string, is func(string) bool) bool {
	return !slices.ContainsFunc(values, func(v string) bool { return !is(v) })
}

// isLabelValue reports whether s is a legal label value: empty, or at most 63
// characters, letters and digits at both ends, and - _ . between them.
func isLabelValue(s string) bool { return s == "" || isLabelName(s) }

func isLabelName(s string) bool {
	return len(s) <= 63 && isName(s, "-_.", true)
}

// isLabelKey reports whether s is a legal label key: a name, and before it, if
// it has one, a DNS subdomain and a slash.
func isLabelKey(s string) bool {
	domain, name, ok := strings.Cut(s, "/")
	if !ok {
		return isLabelName(s)
	}
	return isLabelName(name) && len(domain) <= 253 && all(strings.Split(domain, "."), func(part string) bool {
		return isName(part, "-", false)
	})
}

// isDNSLabel reports whether s can be the name of a namespace.
func isDNSLabel(s string) bool { return len(s) <= 63 && isName(s, "-", false) }

// isName reports whether s is letters and digits, with other characters from
// inner between them. Capitals count as letters where upper is set.
func isName(s, inner string, upper bool) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', upper && 'A' <= c && c <= 'Z':
		case i > 0 && i < len(s)-1 && strings.IndexByte(inner, c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}
