package registrar_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// hrule is a rule as the oracle knows it.
type hrule struct {
	name, arn     string
	apps          []string
	port          int32
	when, mode    string
	cidrs         bool
	percent       int
	disabled      bool
	constantsFrom time.Time // when its constants changed last
}

func (r *hrule) selects(p *podevent.Pod) bool { return slices.Contains(r.apps, p.Labels["app"]) }

func newSim(t *testing.T, h history) *sim {
	s := &sim{world: newWorld(t), plan: h.plan, todo: h.acts, tape: h.tape, start: time.Now(), freedAt: map[string]time.Time{},
		hrules: map[string]*hrule{}, claimed: map[claimant]span{}, lastly: map[claimant]bool{}}
	delete(s.world.rules, "web")
	s.rule(&hrule{name: "web", arn: webARN, apps: []string{"web"}, port: 8080, when: h.plan.When, mode: "manage", percent: h.plan.Percent})
	s.rule(&hrule{name: "web2", arn: webARN, apps: []string{"web2"}, port: 8080, when: "HasIP", mode: h.plan.Second, percent: h.plan.Percent})
	s.rule(&hrule{name: "api", arn: apiARN, apps: []string{"web", "web2"}, port: 8080, when: "HasIP", mode: "manage", percent: 20, cidrs: h.plan.CIDRs})
	if h.plan.Foreign {
		s.groups[apiARN].tags = nil
		s.groups[apiARN].targets[claim.Key{ID: "10.0.0.99", Port: 8080}] = plan.Healthy
	}
	for range h.plan.Instances {
		s.cpus = append(s.cpus, s.instance())
	}
	return s
}

// rule writes a rule to the bus.
func (s *sim) rule(r *hrule) {
	s.hrules[r.name] = r
	apps := fmt.Sprintf(`{"app":["%s"]}`, r.apps[0])
	if len(r.apps) > 1 {
		apps = `{"app":[{"prefix":"web"}]}` // nothing that a LIST could carry
	}
	constants := fmt.Sprintf(`{"targetGroup":%q,"port":%d,"registerWhen":%q,"mode":%q,"maxRemovalPercent":%d`, r.arn, r.port, r.when, r.mode, r.percent)
	if r.cidrs {
		constants += `,"podCIDRs":["10.0.0.0/16"]`
	}
	s.bind(r.name, apps, constants+"}")
	if r.disabled {
		s.world.rules[r.name].state = "DISABLED"
	}
}

// act does one thing, where it can be done.
func (s *sim) act(a act) {
	name := podNames[a.Pod]
	p := s.pods["shop/"+name]
	if s.pending(name) {
		p = nil // one write of a pod at a time
	}
	switch a.Kind {
	case "up": // the frequent beginning of a pod's life
		s.create(name, a)
		s.status(name, a, func(p *podevent.Pod) { s.address(p, a) })
	case "create":
		s.create(name, a)
	case "ip":
		s.status(name, a, func(p *podevent.Pod) { s.address(p, a) })
	case "ready", "unready":
		s.status(name, a, func(p *podevent.Pod) {
			p.Ready = a.Kind == "ready" && !p.Terminating && !p.Finished() && len(p.PodIPs) > 0
			p.ContainersReady = p.Ready
		})
	case "finish":
		s.status(name, a, func(p *podevent.Pod) { p.Phase, p.Ready, p.ContainersReady = "Failed", false, false })
	case "relabel":
		if p != nil {
			s.update(p, podevent.Update, a, func(p *podevent.Pod) { p.Labels = label(a.Arg) })
		}
	case "delete", "refused":
		if p != nil && !p.Terminating {
			s.remove(p, 30, a, a.Kind == "refused")
		}
	case "gone":
		if p != nil && p.Terminating {
			s.remove(p, 0, a, false)
		}
	case "force":
		if p != nil {
			s.remove(p, 0, a, false)
		}
	case "evict":
		s.evict(p, a)
	case "replace": // as a StatefulSet does
		if p != nil {
			a.Slow = false
			s.remove(p, 0, a, false)
			s.create(name, a)
			s.status(name, a, func(p *podevent.Pod) { s.address(p, a) })
		}
	case "takeover":
		s.takeover(p, a)
	default:
		s.surroundings(a)
	}
}

// takeover ends a pod and gives its address to another one at once, as hasty
// networks do.
func (s *sim) takeover(p *podevent.Pod, a act) {
	if p == nil || p.HostNetwork || !s.plan.ReuseAtOnce || len(p.PodIPs) == 0 {
		return
	}
	a.Slow = false
	s.remove(p, 0, a, false)
	for i := range 4 {
		name := podNames[(a.Pod+i+a.Arg)%4]
		if s.pods["shop/"+name] == nil && !s.pending(name) {
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
		c := s.cpus[a.Arg%len(s.cpus)]
		c.dead = c.batch != nil
	case "fault":
		s.fault = faults[a.Arg%len(faults)]
		s.note("fault: %s", s.fault)
	case "calm":
		s.fault = ""
	case "rule":
		if s.plan.RuleChanges {
			s.changeRule(a)
		}
	}
}

var (
	nodeNames = []string{"node-a", "node-b"}
	faults    = []string{"throttled", "unreachable", "no-rules", "no-health", "quota", "lost-answer", "no-events", "no-nodes"}
)

func label(arg int) map[string]string {
	return map[string]string{"app": []string{"web", "web", "web2", "other"}[arg%4], "v": strconv.Itoa(arg)}
}

func (s *sim) pending(name string) bool {
	return slices.ContainsFunc(s.writes, func(w write) bool { return w.pod == name })
}

func (s *sim) create(name string, a act) {
	if s.pods["shop/"+name] != nil || s.pending(name) {
		return
	}
	s.uids++
	s.rv++
	s.pods["shop/"+name] = &podevent.Pod{Namespace: "shop", Name: name, UID: fmt.Sprintf("%s-%d", name, s.uids), ResourceVersion: strconv.Itoa(s.rv),
		NodeName: nodeNames[a.Arg%2], HostNetwork: a.Pod == 4, Phase: "Running", Labels: label(a.Arg / 2)}
	s.note("created %s", podText(s.pods["shop/"+name]))
}

// address gives the pod one, if it has none and one is free.
func (s *sim) address(p *podevent.Pod, a act) {
	if len(p.PodIPs) > 0 || p.Terminating || p.Finished() {
		return
	}
	if p.HostNetwork {
		p.PodIPs = []string{"10.0.9.1"}
		if p.NodeName == "node-b" {
			p.PodIPs = []string{"10.0.9.2"}
		}
		return
	}
	for i := range 5 {
		ip := fmt.Sprintf("10.0.0.%d", 1+(a.Arg+i)%5)
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
	if p := s.pods["shop/"+name]; p != nil && !s.pending(name) {
		s.update(p, podevent.StatusUpdate, a, change)
	}
}

// update sends a change through admission and stores it.
func (s *sim) update(old *podevent.Pod, op podevent.Operation, a act, change func(*podevent.Pod)) {
	p := *old
	change(&p)
	same := maps.Equal(p.Labels, old.Labels) && slices.Equal(p.PodIPs, old.PodIPs) && p.Ready == old.Ready && p.Phase == old.Phase
	if same {
		return // nothing is stored, and nothing is told
	}
	if op == podevent.StatusUpdate && len(p.PodIPs) > 0 && len(old.PodIPs) == 0 {
		a.Slow = false // addresses are counted as used once stored
	}
	s.publish(podevent.Observe(podevent.Change{Cluster: "local", Operation: op, Old: old, New: &p, At: time.Now()}), a)
	s.store(old.Name, a, func() {
		s.rv++
		p.ResourceVersion = strconv.Itoa(s.rv)
		s.pods["shop/"+p.Name] = &p
		if p.Finished() && !old.Finished() {
			s.freed(&p)
		}
	})
}

// remove sends a DELETE through admission; another webhook may refuse it.
func (s *sim) remove(p *podevent.Pod, grace int64, a act, refused bool) {
	s.publish(podevent.Observe(podevent.Change{Cluster: "local", Operation: podevent.Delete, Old: p, Grace: &grace, At: time.Now()}), a)
	if refused {
		return
	}
	s.store(p.Name, a, func() {
		if grace == 0 {
			delete(s.pods, "shop/"+p.Name)
			s.freed(p)
			return
		}
		s.terminate(p)
	})
}

func (s *sim) terminate(p *podevent.Pod) *podevent.Pod {
	q := *p
	s.rv++
	q.Terminating, q.ResourceVersion = true, strconv.Itoa(s.rv)
	s.pods["shop/"+q.Name] = &q
	return &q
}

// evict bypasses admission; the webhook tells of it once it has read the pod.
func (s *sim) evict(p *podevent.Pod, a act) {
	if p == nil || p.Terminating || a.Arg%3 == 2 { // or a disruption budget refuses it
		return
	}
	q := s.terminate(p)
	s.publish(podevent.Observe(podevent.Change{Cluster: "local", Operation: podevent.Evict, Old: p, New: q, At: time.Now()}), a)
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
	s.note("stored: %s", podText(s.pods["shop/"+name]))
}

// healthy lets health checks pass.
func (s *sim) healthy() {
	for _, g := range s.groups {
		for k, h := range g.targets {
			if h == plan.Initial {
				g.targets[k] = plan.Healthy
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
	switch s.groups[webARN].targets[k] {
	case plan.Healthy:
		s.groups[webARN].targets[k] = plan.Unhealthy
	case plan.Unhealthy:
		s.groups[webARN].targets[k] = plan.Healthy
	}
}

// changeRule changes pattern, constants or state of one of the web rules.
func (s *sim) changeRule(a act) {
	r := *s.hrules[[]string{"web", "web2"}[a.Pod%2]]
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
		s.status(name, act{}, func(p *podevent.Pod) {
			if !p.Terminating && !p.Finished() {
				p.Ready = !p.Ready
				p.ContainersReady = p.Ready
			}
		})
	}
}
