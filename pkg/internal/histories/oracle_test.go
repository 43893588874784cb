package histories_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// claimant is a pod with a key that it claims in a group.
type claimant struct {
	group string
	key   claim.Key
	uid   string
}

// observedOnly stands before the group of a claimant whose rules only observe.
const observedOnly = "observed only: "

// span is an unbroken time of claiming.
type span struct {
	since time.Time
	run   int       // the number of decisions begun by then
	at    int       // by the count of what happens
	pod   [2]string // cluster and name
}

// groupCount is what a reading of a group showed.
type groupCount struct {
	healthy map[claim.Key]bool
	serving int
	leaving int // drains, and nobody claims it
	at      int // by the count of what happens
}

// claims is the oracle: what live pods claim, written down once more and
// without a look at pkg/claim. Disabled rules protect, and claim nothing new.
func (s *sim) claims(arn string, all bool) map[claim.Key][]*podevent.Pod {
	out := map[claim.Key][]*podevent.Pod{}
	for _, r := range s.hrules {
		if r.arn != arn || r.empty || (!all && (r.disabled || r.mode == "observe")) {
			continue
		}
		for id, p := range s.pods {
			alive := !p.Terminating && p.Phase != "Failed" && len(p.PodIPs) == 1
			asks := r.when == "HasIP" || p.Ready
			within := !r.cidrs || strings.HasPrefix(p.PodIP(), "10.0.")
			if alive && asks && within && r.selects(clusterOf(id), p) {
				k := claim.Key{ID: p.PodIP(), Port: r.port}
				out[k] = append(out[k], p)
			}
		}
	}
	return out
}

// observe keeps account of who claims what, since when.
func (s *sim) observe() {
	for c, of := range s.claimed { // until now they did
		s.lastClaim[c] = span{since: time.Now(), at: s.clock, pod: of.pod}
	}
	if s.known == s.version {
		return
	}
	s.known = s.version
	now, at := map[claimant][2]string{}, s.tick()
	for arn := range s.groups {
		managed := s.claims(arn, false)
		for k, pods := range s.claims(arn, true) {
			for _, p := range pods {
				now[claimant{arn, k, p.UID}] = s.nameOf(p)
				_, manages := managed[k]
				if s.lastly[claimant{arn, k, ""}] = manages; !manages {
					now[claimant{observedOnly + arn, k, p.UID}] = s.nameOf(p)
				}
			}
		}
	}
	maps.DeleteFunc(s.claimed, func(c claimant, _ span) bool { return now[c] == [2]string{} })
	for c, pod := range now {
		if _, known := s.claimed[c]; !known {
			s.claimed[c] = span{time.Now(), s.runs, at, pod}
		}
	}
}

func (s *sim) nameOf(p *podevent.Pod) [2]string {
	for id, o := range s.pods {
		if o.UID == p.UID {
			return [2]string{clusterOf(id), p.Name}
		}
	}
	return [2]string{}
}

// since returns the decisions begun before a pod began to claim a key.
func (s *sim) since(arn string, k claim.Key, uid string) int {
	if c, ok := s.claimed[claimant{arn, k, uid}]; ok {
		return c.run
	}
	return s.runs
}

// constantsYoung: who removes may act by constants that are a minute old, as the
// list of rules does not show that they changed.
func (s *sim) constantsYoung(arn string) bool {
	return slices.ContainsFunc(s.everRules(), func(r *hrule) bool {
		return r.arn == arn && !r.constantsFrom.IsZero() && time.Since(r.constantsFrom) < 61*time.Second
	})
}

// rulesServe: the program may register by rules as they were. A resync knows them
// from its round's beginning; a registrar serves additions from rules a minute
// old, and on a cold start by the constants that an old message carries.
func (a *actor) rulesServe(arn string) bool {
	return slices.ContainsFunc(a.everRules(), func(r *hrule) bool {
		return r.arn == arn && r.changed > len(ruleNames) && (!a.resync || time.Since(r.from) < 61*time.Second)
	})
}

// rulesYoung: a rule of the group changed after the actor read the rules.
func (a *actor) rulesYoung(arn string) bool {
	return slices.ContainsFunc(a.everRules(), func(r *hrule) bool { return r.arn == arn && r.changed > a.rulesRead })
}

func (s *sim) everRules() []*hrule {
	return slices.Concat(slices.Collect(maps.Values(s.hrules)), slices.Collect(maps.Values(s.gone)))
}

func (s *sim) count(arn string) groupCount {
	c := groupCount{at: s.tick(), healthy: map[claim.Key]bool{}}
	claims := s.claims(arn, true)
	for k, h := range s.groups[arn].targets {
		switch h {
		case plan.Healthy:
			c.healthy[k] = true
			c.serving++
		case plan.Draining:
			c.serving++
			if len(claims[k]) == 0 {
				c.leaving++
			}
		}
	}
	return c
}

func (s *sim) groupText(arn string) string {
	var out []string
	for _, k := range slices.SortedFunc(maps.Keys(s.groups[arn].targets), claim.Compare) {
		out = append(out, fmt.Sprintf("%v=%s", k, s.groups[arn].targets[k]))
	}
	return short(arn) + "[" + strings.Join(out, " ") + "]"
}
