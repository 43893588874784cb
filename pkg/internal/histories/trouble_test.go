package histories_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/plan"
)

// trouble is what only a resync repairs, withstands or is asked for.
func (s *sim) trouble(a act) {
	where := s.clusterNames[a.Pod%len(s.clusterNames)]
	switch a.Kind {
	case "on":
		s.on(time.Duration(2+a.Arg) * 3 * time.Second)
	case "kill": // a new one begins with no memory, the calls of the old one may be on their way
		r := s.runners[a.Arg%len(s.runners)]
		s.untold.Store(true)
		r.stop(true)
		s.runners = slices.DeleteFunc(s.runners, func(o *runner) bool { return o == r })
		s.killed = append(s.killed, r)
		s.runners = append(s.runners, s.runner())
	case "turn": // the run ends, and the next one has its memory
		s.untold.Store(true)
		s.runners[a.Arg%len(s.runners)].stop(false)
	case "outage":
		s.outage = time.Now().Add(time.Duration(1+a.Arg) * 15 * time.Second)
	case "drop":
		s.drop(a)
	case "stray":
		port := int32(8080 + a.Pod%2)
		s.byHand(webARN, claim.Key{ID: fmt.Sprintf("10.0.0.%d", []int{1, 2, 3, 77, 78}[a.Arg%5]), Port: port}, plan.Initial)
	case "stream":
		s.stream(where, a.Arg)
	case "silence":
		s.silence(where, a.Arg%2 == 0)
	case "freeze":
		s.freeze([]string{busARN, webARN, apiARN}[a.Arg%3])
	case "thaw":
		s.thaw()
	case "ask":
		s.wish(a)
	case "group-went":
		s.groupWent = true
		s.groups[apiARN].deleted = true
		clear(s.groups[apiARN].targets)
	case "group-made":
		s.groupMade()
	default:
		s.t.Fatalf("no act %q", a.Kind)
	}
}

// drop is somebody's hand on a target.
func (s *sim) drop(a act) {
	g := s.groups[webARN]
	ks := slices.SortedFunc(maps.Keys(g.targets), claim.Compare)
	if len(ks) == 0 {
		return
	}
	k := ks[a.Arg%len(ks)]
	if a.Pod%2 == 0 {
		delete(g.targets, k)
		s.note("by hand: %v is gone from web", k)
		return
	}
	s.byHand(webARN, k, plan.Draining)
}

func (s *sim) byHand(arn string, k claim.Key, h plan.Health) {
	if g := s.groups[arn]; g.targets[k] != h {
		g.set(k, h)
		s.note("by hand: %v is %s; now %s", k, h, s.groupText(arn))
	}
}

func (s *sim) stream(where string, arg int) {
	s.note("stream of %s: %d", where, arg%4)
	switch arg % 4 {
	case 0:
		s.cut(where, nil)
	case 1:
		s.cut(where, cluster.ErrUnreachable)
	case 2: // a revision is gone from etcd: who comes back with it has to list
		s.compacted = s.rv + 1
		s.cut(where, nil)
	case 3:
		s.cut(where, cluster.ErrExpired)
	}
}

func (s *sim) freeze(arn string) {
	if s.frozen[arn] > 0 {
		return
	}
	s.frozen[arn], s.frozenAt[arn] = s.tick(), time.Now()
	if arn == busARN {
		s.busTags[binding.FreezeTag] = "by kim"
	} else {
		s.groups[arn].tags[binding.FreezeTag] = "by kim"
	}
	s.note("frozen: %s", arn)
}

func (s *sim) thaw() {
	clear(s.frozen)
	delete(s.busTags, binding.FreezeTag)
	for _, g := range s.groups {
		delete(g.tags, binding.FreezeTag)
	}
}

func (s *sim) groupMade() {
	g := s.groups[apiARN]
	if !g.deleted {
		return
	}
	s.groups[apiARN] = newGroup(apiARN)
	delete(s.frozen, apiARN)
	s.own()
	s.note("group api is made anew")
}

// dry is the id of requests that are to change nothing.
const dry = "dry"

// wish is a request to resync.
func (s *sim) wish(a act) {
	s.note("request %d", a.Arg%4)
	switch {
	case a.Arg%4 == 0:
		s.ask(`{"schema":1,"trigger":"request","request":{"id":"` + dry + `"},"dryRun":true}`)
	case a.Arg%4 == 1 && len(s.hashes) > 0:
		s.approved = true
		s.ask(fmt.Sprintf(`{"schema":1,"trigger":"request","request":{"id":"approve","reason":"they are gone","approve":%q}}`, s.hashes[max(0, len(s.hashes)-1-a.Pod)]))
	case a.Arg%4 == 2:
		s.ask(`{"schema":1,"trigger":"hint-expired","request":{"id":"expired","groups":["` + apiARN + `"]}}`)
	case a.Arg%4 == 3:
		s.ask(`{"source":"elbridge","detail-type":"Webhook Started","detail":{}}`)
	}
}

// mended ends all trouble.
func (s *sim) mended() {
	s.thaw()
	s.groupMade()
	for _, name := range s.clusterNames {
		s.silence(name, false)
	}
}
