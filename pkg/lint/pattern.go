package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/elbridge/elbridge/pkg/internal/nearest"
	"github.com/elbridge/elbridge/pkg/podevent"
)

const podEventType = podevent.DetailTypePodStateChange

// pattern judges what a binding's pattern selects on.
func (l *linter) pattern(b *bound) {
	l.fields(b)
	l.podEvents(b)
	l.tenants(b)
}

func (l *linter) fields(b *bound) {
	for _, path := range b.paths() {
		f := b.of(StateField)
		f.Path = "EventPattern." + path
		switch kindOf(path) {
		case state:
			f.Message = fmt.Sprintf("%s is what a pod is doing, not what it is: the rule hears of the pod only in that state, and not when it leaves it", path)
			f.Fix = stateFix(path)
			l.add(f)
		case unknown:
			f.Check = UnknownField
			f.Message = "pod events have no field " + path + didYouMean(path)
			f.Fix = "see events/pod-state-change.schema.json for the fields that there are"
			l.add(f)
		}
	}
}

// stateFix says how to say what the pattern wanted to say.
func stateFix(path string) string {
	switch path {
	case "detail.ready":
		return `leave it out and give the binding "registerWhen":"Ready"`
	case "detail.containersReady":
		return `leave it out and give the binding "registerWhen":"ContainersReady"`
	case "detail.podIP", "detail.podIPs":
		return `leave it out and give the binding "podCIDRs"`
	case "detail.terminating", "detail.phase", "detail.reason", "detail.deletionGracePeriodSeconds":
		return "leave it out: pods that end are taken out of the group without it"
	default:
		return "leave it out, and select on cluster, namespace, name, labels, annotations, owner, service account, host network or ports"
	}
}

func didYouMean(path string) string {
	names := fieldNames()
	if w := nearest.Word(path, names); w != "" {
		return ", did you mean " + w
	}
	if w := nearest.Word("detail."+path, names); w != "" {
		return ", did you mean " + w
	}
	parent, key, ok := strings.Cut(path, ".labels.")
	if ok && parent != "detail" {
		return ", did you mean detail.labels." + key
	}
	if head, rest, ok := strings.Cut(strings.TrimPrefix(path, "detail."), "."); ok { // a misspelled parent of any key
		if w := nearest.Word("detail."+head, names); w != "" {
			return ", did you mean " + w + "." + rest
		}
	}
	return ""
}

// podEvents judges whether the pattern matches pod events, and them alone.
func (l *linter) podEvents(b *bound) {
	pinned := map[string]string{"source": podevent.Source, "detail-type": podEventType}
	for _, path := range []string{"source", "detail-type"} {
		want := pinned[path]
		loose := false
		possible := false
		for _, br := range b.branches {
			values := br.exact(path)
			possible = possible || values == nil || slices.Contains(values, want)
			loose = loose || len(values) != 1 || values[0] != want
		}
		f := b.of(OtherEvents)
		f.Path = "EventPattern." + path
		f.Fix = fmt.Sprintf(`write %q:[%q]`, path, want)
		switch {
		case !possible:
			f.Check = NeverMatches
			f.Message = fmt.Sprintf("pod events have the %s %q: the rule never matches one", path, want)
			l.add(f)
		case loose && path == "detail-type":
			f.Message = fmt.Sprintf("it is not pinned to %q: what else the rule matches, the registrar can't understand, and it goes to the dead-letter queue", want)
			l.add(f)
		case loose:
			f.Message = fmt.Sprintf("it is not pinned to %q: whoever may put events on the bus can hint at pods", want)
			f.Severity = Info
			l.add(f)
		}
	}
}

// tenants judges who can have pods selected.
func (l *linter) tenants(b *bound) {
	const namespace, account = "detail.namespace", "detail.serviceAccount"
	switch {
	case !b.everyBranch(namespace, account):
		f := b.of(UnpinnedTenant)
		f.Path = "EventPattern.detail"
		f.Message = "it pins neither namespace nor service account: whoever may create a pod anywhere can write these labels and receive the group's requests"
		f.Fix = `add "namespace":["…"], or "serviceAccount":["…"] where only the service's own pods may use it`
		l.add(f)
	case !b.everyBranch(namespace):
		f := b.of(UnpinnedSpace)
		f.Path = "EventPattern.detail"
		f.Message = "it pins a service account, in any namespace: each namespace may have one of that name"
		f.Fix = `add "namespace":["…"]`
		l.add(f)
	}
	if !b.everyBranch("detail.cluster") {
		f := b.of(UnpinnedCluster)
		f.Path = "EventPattern.detail"
		f.Message = "it pins no cluster: it covers all of them, and a removal needs every one of them read"
		f.Fix = `add "cluster":["…"] if it is meant for some only`
		l.add(f)
	}
}
