package environ

import (
	"cmp"
	"slices"
	"strings"
)

// Rewrite replaces what a container sees by what this machine has.
type Rewrite struct {
	paths     []pair // longest first
	addresses []pair
}

type pair struct{ from, to string }

const (
	digits    = "0123456789"
	hexDigits = digits + "abcdefABCDEF"
)

// Path makes every path at or below mount point into dir.
func (r *Rewrite) Path(mount, dir string) {
	mount = strings.TrimRight(mount, "/")
	if mount == "" {
		return // the root itself can't be moved
	}
	r.paths = append(r.paths, pair{mount, dir})
	slices.SortStableFunc(r.paths, func(a, b pair) int { return cmp.Compare(len(b.from), len(a.from)) })
}

// Address makes every mention of a published address into a real one.
func (r *Rewrite) Address(published, real string) {
	r.addresses = append(r.addresses, pair{published, real})
}

// Apply rewrites one argument or the value of one variable.
func (r *Rewrite) Apply(s string) string {
	for _, p := range r.addresses {
		if strings.Contains(p.from, ":") {
			s = replaceWhole(s, p, hexDigits+":", hexDigits)
		} else {
			s = replaceWhole(s, p, digits+".", digits)
		}
	}
	return r.applyPaths(s)
}

// applyPaths goes over s once, so that what was replaced is not replaced again.
func (r *Rewrite) applyPaths(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		if p, ok := r.pathAt(s, i); ok {
			out.WriteString(p.to)
			i += len(p.from)
			continue
		}
		out.WriteByte(s[i])
		i++
	}
	return out.String()
}

func (r *Rewrite) pathAt(s string, i int) (pair, bool) {
	if s[i] != '/' || (i > 0 && isPathByte(s[i-1])) {
		return pair{}, false
	}
	for _, p := range r.paths {
		rest, found := strings.CutPrefix(s[i:], p.from)
		if found && (rest == "" || rest[0] == '/' || !isPathByte(rest[0])) {
			return p, true
		}
	}
	return pair{}, false
}

func isPathByte(b byte) bool {
	return b == '/' || b == '.' || b == '-' || b == '_' || b == '~' || b == '+' || b == '@' ||
		'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9'
}

// replaceWhole replaces p where no byte of before stands in front of it and none
// of after behind it.
func replaceWhole(s string, p pair, before, after string) string {
	var out strings.Builder
	for {
		i := strings.Index(s, p.from)
		if i < 0 {
			out.WriteString(s)
			return out.String()
		}
		end := i + len(p.from)
		whole := (i == 0 || !strings.ContainsRune(before, rune(s[i-1]))) && (end == len(s) || !strings.ContainsRune(after, rune(s[end])))
		out.WriteString(s[:i])
		if whole {
			out.WriteString(p.to)
		} else {
			out.WriteString(p.from)
		}
		s = s[end:]
	}
}
