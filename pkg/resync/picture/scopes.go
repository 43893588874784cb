package picture

import (
	"maps"
	"slices"

	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/eventpattern"
)

const (
	// maxNamespaces bounds the lists and streams that stand for a cluster: each
	// costs the API server a watcher, and a run a list in turn.
	maxNamespaces = 8
	// maxSelector bounds a label selector in bytes: with what else a URL has, and
	// escaped, it fits in the 8 KiB that proxies let pass.
	maxSelector = 2048
)

// Scopes returns what has to be listed so that every pod is seen that one of the
// selections admits: by namespace where all of them name some, and with labels
// where all that meet in a scope restrict the same ones. It may admit more pods
// and never fewer. No pod is in two scopes.
func Scopes(sel []eventpattern.Selection) []cluster.Scope {
	if len(sel) == 0 {
		return nil
	}
	byNamespace := map[string][]eventpattern.Selection{}
	for _, s := range sel {
		for _, ns := range s.Namespaces {
			byNamespace[ns] = append(byNamespace[ns], s)
		}
		if len(s.Namespaces) == 0 || len(byNamespace) > maxNamespaces {
			return []cluster.Scope{{LabelSelector: selector(sel)}}
		}
	}
	var out []cluster.Scope
	for _, ns := range slices.Sorted(maps.Keys(byNamespace)) {
		out = append(out, cluster.Scope{Namespace: ns, LabelSelector: selector(byNamespace[ns])})
	}
	return out
}

// selector admits what any of the selections does, as far as its length allows.
func selector(sel []eventpattern.Selection) string {
	joint := eventpattern.Selection{Labels: map[string][]string{}}
	for _, key := range slices.Sorted(maps.Keys(sel[0].Labels)) {
		values, ok := union(sel, key)
		if !ok {
			continue
		}
		joint.Labels[key] = values
		if len(joint.LabelSelector()) > maxSelector {
			delete(joint.Labels, key)
		}
	}
	return joint.LabelSelector()
}

// union returns the values of a label that any selection allows; ok if all of
// them restrict it.
func union(sel []eventpattern.Selection, key string) (values []string, ok bool) {
	for _, s := range sel {
		of, restricted := s.Labels[key]
		if !restricted {
			return nil, false
		}
		values = append(values, of...)
	}
	slices.Sort(values)
	return slices.Compact(values), true
}

// covers reports whether a pod of the namespace may be in the scope.
func (s *scope) covers(namespace string) bool {
	return s.Namespace == "" || s.Namespace == namespace
}
