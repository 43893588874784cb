package eventpattern

// Selection is what of a pattern can be pushed into a Kubernetes LIST of pods.
// It is an over-approximation: every pod whose event the pattern matches is
// admitted, some others may be.
type Selection struct {
	Clusters   []string            // nil = any; else the exact values of detail.cluster
	Namespaces []string            // nil = any; else the exact values of detail.namespace
	Labels     map[string][]string // label key -> exact allowed values
}

// Selection returns what of the pattern a LIST can carry.
func (p *Pattern) Selection() Selection { return Selection{} }

// LabelSelector spells Labels as Kubernetes does: "app in (a,b),tier=web".
// Empty means every pod.
func (s Selection) LabelSelector() string { return "" }
