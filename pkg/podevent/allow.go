package podevent

import "strings"

// AllowList names the annotations that an event carries: exact keys, or a
// prefix followed by "*". The zero value lets none pass, as annotations may be
// large and may hold secrets; AllowList{"*"} lets all pass.
type AllowList []string

// Allows reports whether the annotation key is on the list.
func (l AllowList) Allows(key string) bool {
	for _, entry := range l {
		prefix, wild := strings.CutSuffix(entry, "*")
		if key == entry || wild && strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// Filter returns the annotations that are on the list, never nil.
func (l AllowList) Filter(annotations map[string]string) map[string]string {
	allowed := map[string]string{}
	for k, v := range annotations {
		if l.Allows(k) {
			allowed[k] = v
		}
	}
	return allowed
}
