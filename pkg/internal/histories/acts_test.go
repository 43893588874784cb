package histories_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// hrule is a rule as the oracle knows it.
type hrule struct {
	name, arn     string
	clusters      []string // none: all
	apps          []string
	port          int32
	when, mode    string
	cidrs         bool
	percent       int
	disabled      bool
	empty         bool
	constantsFrom time.Time // when its constants changed last
	from          time.Time // when anything of it did
	changed       int       // and by the count of what happens
}

var ruleNames = []string{"web", "web2", "api"}

func (r *hrule) selects(cluster string, p *podevent.Pod) bool {
	return r.covers(cluster) && slices.Contains(r.apps, p.Labels["app"])
}

func (r *hrule) covers(cluster string) bool {
	return len(r.clusters) == 0 || slices.Contains(r.clusters, cluster)
}

func newSim(t *testing.T, h history) *sim {
	s := &sim{t: t, met: tally{}, plan: h.plan, todo: h.acts, tape: h.tape, start: time.Now(), freedAt: map[string]time.Time{},
		hrules: map[string]*hrule{}, gone: map[string]*hrule{}, groups: map[string]*group{webARN: newGroup(webARN), apiARN: newGroup(apiARN)}, busTags: map[string]string{}, frozen: map[string]int{}, frozenAt: map[string]time.Time{},
		nodes: map[string]bool{"node-a": true, "node-b": true}, pods: map[string]*podevent.Pod{}, rv: 100, next: make(chan struct{}), known: -1,
		clusterNames: []string{"local"}, streams: map[string]*streams{"local": {}, "far": {}},
		claimed: map[claimant]span{}, lastly: map[claimant]bool{}, lastClaim: map[claimant]span{}}
	var all []string // by one rule both are pinned, by another all are meant
	if s.plan.Far {
		s.clusterNames = []string{"local", "far"}
		all = s.clusterNames
	}
	s.rule(&hrule{name: "web", arn: webARN, clusters: all, apps: []string{"web"}, port: 8080, when: h.plan.When, mode: "manage", percent: h.plan.Percent})
	s.rule(&hrule{name: "web2", arn: webARN, clusters: []string{"local"}, apps: []string{"web2"}, port: 8080, when: "HasIP", mode: h.plan.Second, percent: h.plan.Percent})
	s.rule(&hrule{name: "api", arn: apiARN, apps: []string{"web", "web2"}, port: 8080, when: "HasIP", mode: "manage", percent: 20, cidrs: h.plan.CIDRs})
	s.own()
	for range h.plan.Instances {
		s.cpus = append(s.cpus, s.instance())
	}
	for range h.plan.Resyncs {
		s.runners = append(s.runners, s.runner())
	}
	return s
}

// stranger is what somebody else has registered in a group that is not ours.
var stranger = claim.Key{ID: "10.0.0.99", Port: 8080}

// own gives the api group to us, or not.
func (s *sim) own() {
	if s.plan.Foreign {
		s.groups[apiARN].tags = map[string]string{}
		s.groups[apiARN].set(stranger, plan.Healthy)
	}
}

// rule writes a rule to the bus.
func (s *sim) rule(r *hrule) {
	s.version++
	r.changed, r.from = s.tick(), time.Now()
	s.hrules[r.name] = r
}

// act does one thing, where it can be done.
func (s *sim) act(a act) {
	name := s.clusterNames[0] + "/" + podNames[a.Pod]
	if a.Far {
		name = "far/" + podNames[a.Pod]
	}
	p := s.pods[name]
	if s.pending(name) {
		p = nil // one write of a pod at a time
	}
	switch a.Kind {
	case "up": // the frequent beginning of a pod's life
		s.create(name, a)
		s.status(name, a, func(p *podevent.Pod) { s.address(name, p, a) })
	case "create":
		s.create(name, a)
	case "ip":
		s.status(name, a, func(p *podevent.Pod) { s.address(name, p, a) })
	case "ready", "unready":
		s.status(name, a, func(p *podevent.Pod) {
			p.Ready = a.Kind == "ready" && !p.Terminating && !p.Finished() && len(p.PodIPs) > 0
			p.ContainersReady = p.Ready
		})
	case "finish":
		s.status(name, a, func(p *podevent.Pod) { p.Phase, p.Ready, p.ContainersReady = "Failed", false, false })
	case "relabel":
		if p != nil {
			s.update(name, podevent.Update, a, func(p *podevent.Pod) { p.Labels = label(a.Arg) })
		}
	case "delete", "refused":
		if p != nil && !p.Terminating {
			s.remove(name, 30, a, a.Kind == "refused")
		}
	case "gone":
		if p != nil && p.Terminating {
			s.remove(name, 0, a, false)
		}
	case "force":
		if p != nil {
			s.remove(name, 0, a, false)
		}
	case "evict":
		s.evict(name, a)
	case "replace": // as a StatefulSet does
		if p != nil {
			a.Slow = false
			s.remove(name, 0, a, false)
			s.create(name, a)
			s.status(name, a, func(p *podevent.Pod) { s.address(name, p, a) })
		}
	case "takeover":
		s.takeover(name, a)
	default:
		s.surroundings(a)
	}
}

// takeover ends a pod and gives its address to another one at once, as hasty
// networks do.
func (s *sim) takeover(name string, a act) {
	p := s.pods[name]
	if p == nil || s.pending(name) || p.HostNetwork || !s.plan.ReuseAtOnce || len(p.PodIPs) == 0 {
		return
	}
	a.Slow = false
	s.remove(name, 0, a, false)
	for i := range 4 {
		name := clusterOf(name) + "/" + podNames[(a.Pod+i+a.Arg)%4]
		if s.pods[name] == nil && !s.pending(name) {
			s.create(name, act{Pod: 0, Arg: a.Arg})
			s.status(name, act{Arg: a.Arg, Dup: a.Dup}, func(q *podevent.Pod) { q.PodIPs = p.PodIPs })
			return
		}
	}
}

// surroundings are what is no pod.
func (s *sim) surroundings(a act) {
	switch a.Kind {
	case "node":
		n := nodeNames[a.Arg%2]
		s.nodes[n] = !s.nodes[n]
		s.note("%s ready=%t", n, s.nodes[n])
	case "health":
		s.healthy()
	case "sick":
		s.flip(a)
	case "drained":
		for _, g := range s.groups {
			maps.DeleteFunc(g.targets, func(_ claim.Key, h plan.Health) bool { return h == plan.Draining })
		}
	case "time":
		s.sleep(time.Duration(a.Arg) * 700 * time.Millisecond)
	case "crash":
		if len(s.cpus) > 0 {
			c := s.cpus[a.Arg%len(s.cpus)]
			c.dead.Store(c.batch != nil)
			s.untold.Store(true)
		}
	case "fault":
		s.fault, s.faultIn = faults[a.Arg%len(faults)], ""
		if s.plan.Far && a.Dup {
			s.faultIn = s.clusterNames[a.Pod%2]
		}
		s.note("fault: %s %s", s.fault, s.faultIn)
	case "calm":
		s.fault = ""
	case "rule":
		if s.plan.RuleChanges {
			s.changeRule(a)
		}
	default:
		s.trouble(a)
	}
}

var (
	nodeNames = []string{"node-a", "node-b"}
	faults    = []string{"throttled", "unreachable", "no-rules", "no-health", "quota", "lost-answer", "no-events", "no-nodes", "half-list"}
)

func label(arg int) map[string]string {
	return map[string]string{"app": []string{"web", "web", "web2", "other"}[arg%4], "v": strconv.Itoa(arg)}
}

func (s *sim) pending(name string) bool {
	return slices.ContainsFunc(s.writes, func(w write) bool { return w.pod == name })
}

func (s *sim) create(name string, a act) {
	if s.pods[name] != nil || s.pending(name) {
		return
	}
	s.uids++
	_, short, _ := strings.Cut(name, "/")
	s.put(name, &podevent.Pod{Namespace: "shop", Name: short, UID: fmt.Sprintf("%s-%d", short, s.uids),
		NodeName: nodeNames[a.Arg%2], HostNetwork: a.Pod == 4, Phase: "Running", Labels: label(a.Arg / 2)})
	s.note("created %s in %s", podText(s.pods[name]), clusterOf(name))
}

// address gives the pod one, if it has none and one is free.
func (s *sim) address(name string, p *podevent.Pod, a act) {
	if len(p.PodIPs) > 0 || p.Terminating || p.Finished() {
		return
	}
	if p.HostNetwork {
		host := 1 + slices.Index(nodeNames, p.NodeName)
		if clusterOf(name) == "far" {
			host += 10
		}
		p.PodIPs = []string{fmt.Sprintf("10.0.9.%d", host)}
		return
	}
	n := 5 * len(s.clusterNames)
	for i := range n {
		ip := fmt.Sprintf("10.0.0.%d", 1+(a.Arg+i)%n)
		if s.free(ip) {
			p.PodIPs = []string{ip}
			return
		}
	}
}

// free reports whether the network would give the address away: no pod runs with
// it, and, but for the hasty kind of network, it has been free for 30 s.
func (s *sim) free(ip string) bool {
	for _, p := range s.pods {
		if p.PodIP() == ip && !p.Finished() {
			return false
		}
	}
	at, used := s.freedAt[ip]
	return !used || s.plan.ReuseAtOnce || time.Since(at) > 30*time.Second
}

func (s *sim) status(name string, a act, change func(*podevent.Pod)) {
	if s.pods[name] != nil && !s.pending(name) {
		s.update(name, podevent.StatusUpdate, a, change)
	}
}

// update sends a change through admission and stores it.
func (s *sim) update(name string, op podevent.Operation, a act, change func(*podevent.Pod)) {
	old := s.pods[name]
	p := *old
	change(&p)
	same := maps.Equal(p.Labels, old.Labels) && slices.Equal(p.PodIPs, old.PodIPs) && p.Ready == old.Ready && p.Phase == old.Phase
	if same {
		return // nothing is stored, and nothing is told
	}
	if op == podevent.StatusUpdate && len(p.PodIPs) > 0 && len(old.PodIPs) == 0 {
		a.Slow = false // addresses are counted as used once stored
	}
	s.publish(clusterOf(name), podevent.Observe(podevent.Change{Cluster: clusterOf(name), Operation: op, Old: old, New: &p, At: time.Now()}), a)
	s.store(name, a, func() {
		s.put(name, &p)
		if p.Finished() && !old.Finished() {
			s.freed(&p)
		}
	})
}

// remove sends a DELETE through admission; another webhook may refuse it.
func (s *sim) remove(name string, grace int64, a act, refused bool) {
	p := s.pods[name]
	s.publish(clusterOf(name), podevent.Observe(podevent.Change{Cluster: clusterOf(name), Operation: podevent.Delete, Old: p, Grace: &grace, At: time.Now()}), a)
	if refused {
		return
	}
	s.store(name, a, func() {
		if grace == 0 {
			s.put(name, nil)
			s.freed(p)
			return
		}
		s.terminate(name)
	})
}

func (s *sim) terminate(name string) *podevent.Pod {
	q := *s.pods[name]
	q.Terminating = true
	s.put(name, &q)
	return &q
}

// evict bypasses admission; the webhook tells of it once it has read the pod.
func (s *sim) evict(name string, a act) {
	p := s.pods[name]
	if p == nil || s.pending(name) || p.Terminating || a.Arg%3 == 2 { // or a disruption budget refuses it
		return
	}
	q := s.terminate(name)
	s.publish(clusterOf(name), podevent.Observe(podevent.Change{Cluster: clusterOf(name), Operation: podevent.Evict, Old: p, New: q, At: time.Now()}), a)
}

func (s *sim) freed(p *podevent.Pod) {
	for _, ip := range p.PodIPs {
		s.freedAt[ip] = time.Now()
	}
}

func (s *sim) store(name string, a act, do func()) {
	if a.Slow {
		s.writes = append(s.writes, write{at: time.Now(), pod: name, store: do})
		return
	}
	do()
	s.note("stored: %s", podText(s.pods[name]))
}

// healthy lets health checks pass.
func (s *sim) healthy() {
	for _, g := range s.groups {
		for k, h := range g.targets {
			if h == plan.Initial {
				g.set(k, plan.Healthy)
			}
		}
	}
}

// flip changes the health of one target of the web group.
func (s *sim) flip(a act) {
	ks := slices.SortedFunc(maps.Keys(s.groups[webARN].targets), claim.Compare)
	if len(ks) == 0 {
		return
	}
	k := ks[a.Arg%len(ks)]
	g := s.groups[webARN]
	switch g.targets[k] {
	case plan.Healthy:
		g.sick[k] = true
		g.set(k, plan.Unhealthy)
	case plan.Unhealthy:
		delete(g.sick, k)
		g.set(k, plan.Healthy)
	}
}

// changeRule changes pattern, constants or state of one of the web rules; resync
// also sees rules go and come, and groups that are emptied.
func (s *sim) changeRule(a act) {
	name := []string{"web", "web2"}[a.Pod%2]
	was := s.hrules[name]
	if was == nil {
		s.rule(s.gone[name])
		return
	}
	r := *was
	switch a.Arg % 4 {
	case 0:
		r.disabled = !r.disabled
	case 1:
		r.port, r.constantsFrom = 8080+(r.port+1)%2, time.Now()
	case 2:
		r.apps = [][]string{{"web"}, {"web2"}, {"other"}}[a.Arg%3]
	case 3:
		r.apps = []string{"web", "web2"}
	}
	if s.plan.resync() && a.Slow {
		r = *was
		if r.empty, r.constantsFrom = !r.empty, time.Now(); a.Dup {
			s.version++
			r = *was
			r.changed, r.from = s.tick(), time.Now()
			s.gone[name] = &r
			delete(s.hrules, name)
			s.note("rule %s is deleted", name)
			return
		}
	}
	s.note("rule %+v", r)
	s.rule(&r)
}

// touchAll has every living pod change once more after the rules did, as they
// make no events of their own.
func (s *sim) touchAll() {
	if !s.plan.RuleChanges {
		return
	}
	s.sleep(65 * time.Second) // constants are cached for a minute
	for _, name := range podNames {
		s.status("local/"+name, act{}, func(p *podevent.Pod) {
			if !p.Terminating && !p.Finished() {
				p.Ready = !p.Ready
				p.ContainersReady = p.Ready
			}
		})
	}
}
