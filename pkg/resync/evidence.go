package resync

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/resync/picture"
)

// goneMaxAge is how young the news must be that a pod is gone, if nothing showed
// it ending before: VPC CNI gives an address to nobody else for about 30 s (I9).
const goneMaxAge = 30 * time.Second

// scene is all that speaks for and against removing keys of a group.
type scene struct {
	lk    *look
	view  claim.View
	byID  map[string][]claim.Seen   // pods by address, selected or read
	past  map[string][]picture.Past // what pods of the clusters had the address before
	ready map[[2]string]bool        // by cluster and node
	reads *reads
	now   time.Time
	// asks are keys without a witness that reading would give one, perhaps: pods
	// of the group had the address, and nobody has looked who has it now.
	asks []claim.Key
}

// evidence says of each unclaimed key what witnesses that it may go (I9), and of
// which keys reading may tell more. What the past says of a pod that was not read
// yet is taken for true: nothing goes before it is read.
func (r *Resync) evidence(ctx context.Context, lk *look, v claim.View, pods []claim.Seen, cands []claim.Key) (map[claim.Key]plan.Evidence, []claim.Key) {
	if len(cands) == 0 { // as in most rounds: nothing else needs to be known of the pods
		return nil, nil
	}
	s := &scene{lk: lk, view: v, byID: map[string][]claim.Seen{}, past: map[string][]picture.Past{}, reads: lk.reads, now: r.Now()}
	for _, p := range pods {
		for _, id := range claim.Addresses(p.PodIPs, lk.g.Family) {
			s.byID[id] = append(s.byID[id], p)
		}
	}
	for _, k := range cands {
		if _, met := s.past[k.ID]; met {
			continue
		}
		s.past[k.ID] = nil
		for _, name := range lk.clusters {
			s.past[k.ID] = append(s.past[k.ID], r.pictures[name].Past(k.ID)...)
		}
	}
	s.ready = r.nodesReady(ctx, s, cands)
	out := make(map[claim.Key]plan.Evidence, len(cands))
	for _, k := range cands {
		out[k] = s.judge(k)
	}
	return out, s.asks
}

// judge is the evidence for one key. Its owners claim it not.
func (s *scene) judge(k claim.Key) plan.Evidence {
	owners := slices.DeleteFunc(slices.Clone(s.byID[k.ID]), func(p claim.Seen) bool { // the host's address is everybody's there
		return p.HostNetwork && s.view.Rules[p.ID()] == ""
	})
	slices.SortFunc(owners, claim.ComparePods) // the same evidence in whatever order they were read
	for _, p := range owners {
		if ended(p) || s.view.Rules[p.ID()] == "" {
			continue
		}
		ev := s.of(p) // it is there, and only does not ask for traffic now
		if s.view.Emptied[p.ID()] {
			ev.Witness, ev.Shown = plan.Emptied, s.view.Shows(p, k)
		}
		return ev
	}
	for _, p := range owners {
		if !ended(p) {
			return s.stranger(k, p)
		}
	}
	for _, p := range owners {
		if s.view.Rules[p.ID()] != "" && s.ready[[2]string{p.Cluster, p.NodeName}] && s.stillHis(k, p) {
			ev := s.of(p)
			ev.Witness, ev.Shown = plan.PodEnded, s.view.Shows(p, k)
			return ev
		}
	}
	return s.absent(k, len(owners) == 0)
}

// stillHis reports whether the target of an ended pod's address was that pod's: a
// finished pod's object may outlive its hold on the address by days, and somebody
// else's target have the address by now (P046). A terminating pod holds it to the
// end of its processes; of a finished one it has to have been seen that it
// finished a moment ago; and no other pod of the group had the address.
func (s *scene) stillHis(k claim.Key, p claim.Seen) bool {
	lately := !p.Finished()
	for _, past := range s.past[k.ID] {
		if his := past.Pod.ID() == p.ID(); his {
			lately = lately || past.Kind == picture.Finished
		} else if s.lk.ruleThatSelected(past) != "" {
			return false
		}
	}
	return lately
}

func ended(p claim.Seen) bool { return p.Terminating || p.Finished() }

// of attributes a key to a pod and the rule that selects it.
func (s *scene) of(p claim.Seen) plan.Evidence {
	return plan.Evidence{Cluster: p.Cluster, Pod: p.Namespace + "/" + p.Name, UID: p.UID, Node: p.NodeName, Rule: s.view.Rules[p.ID()]}
}

// stranger is the evidence for a key whose address a living pod has that no
// binding of the group selects: by its own change of labels, or because it has
// the address of one of ours that went. A changed rule witnesses nothing, nor does
// an emptied binding, which is not the one that selected the pod.
func (s *scene) stranger(k claim.Key, p claim.Seen) plan.Evidence {
	var ev plan.Evidence
	for _, past := range s.past[k.ID] {
		rule := s.lk.ruleThatSelected(past)
		switch {
		case rule == "":
		case past.Pod.ID() == p.ID():
			if past.Kind == picture.Moved || past.Kind == picture.Finished {
				continue
			}
			ev = s.of(p)
			ev.Rule, ev.Witness = rule, plan.Deselected
			return ev
		case !p.HostNetwork:
			ev = attribute(past, rule)
			ev.Witness = plan.OtherOwner
			return ev
		}
	}
	return ev
}

// absent is the evidence for a key whose address no living pod has. nobody says
// that no pod at all has it.
func (s *scene) absent(k claim.Key, nobody bool) plan.Evidence {
	for _, past := range s.past[k.ID] {
		rule := s.lk.ruleThatSelected(past)
		if rule == "" {
			continue
		}
		ev := attribute(past, rule)
		p, read := s.reads.of(nameOf(past.Pod))
		switch there := read && p != nil && p.UID == past.Pod.UID; {
		case past.Kind == picture.Deselected, // also on the host's network, where its address is everybody's
			past.Kind == picture.Gone && there && s.view.Rules[past.Pod.ID()] == "": // it left the stream's selector, and lives
			ev.Witness = plan.Deselected
		case past.Kind != picture.Gone && past.Kind != picture.Finished, there: // it has another address now, or none
		case nobody && s.ready[[2]string{past.Pod.Cluster, past.Pod.NodeName}]:
			if past.Ended { // the API server showed it ending
				ev.Witness, ev.Shown = plan.PodEnded, s.lk.within(past, k)
			} else if s.now.Sub(past.At) < goneMaxAge {
				ev.Witness = plan.PodGone
			}
		}
		if ev.Witness == plan.Unwitnessed && !s.reads.ids[k.ID] {
			s.asks = append(s.asks, k)
		}
		return ev
	}
	return s.unknown()
}

// unknown is the evidence for a key of which nothing is known. A group of which
// every binding says empty: true is emptied of those too.
func (s *scene) unknown() plan.Evidence {
	if s.lk.emptied() {
		return plan.Evidence{Witness: plan.Emptied, Rule: s.lk.bindings[0].Rule}
	}
	return plan.Evidence{}
}

func attribute(past picture.Past, rule string) plan.Evidence {
	p := past.Pod
	return plan.Evidence{Cluster: p.Cluster, Pod: p.Namespace + "/" + p.Name, UID: p.UID, Node: p.NodeName, Rule: rule}
}

// nodeMaxAge is how old a reading of a node may be that still speaks for a pod
// that ended: as old as what is acted on (I3).
const nodeMaxAge = 2 * time.Second

// nodeBook keeps nodes for so long.
type nodeBook struct {
	mu sync.Mutex
	m  map[[2]string]nodeEntry
}

type nodeEntry struct {
	ready bool
	read  time.Time
}

// nodesReady reads the nodes of ended pods. One that can't be read, or does not
// exist, is not Ready: it witnesses nothing.
func (r *Resync) nodesReady(ctx context.Context, s *scene, cands []claim.Key) map[[2]string]bool {
	want := map[[2]string]bool{}
	for _, k := range cands {
		for _, p := range s.byID[k.ID] {
			if ended(p) && p.NodeName != "" {
				want[[2]string{p.Cluster, p.NodeName}] = true
			}
		}
		for _, p := range s.past[k.ID] {
			if (p.Kind == picture.Gone || p.Kind == picture.Finished) && p.Pod.NodeName != "" {
				want[[2]string{p.Pod.Cluster, p.Pod.NodeName}] = true
			}
		}
	}
	out := make(map[[2]string]bool, len(want))
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(parallelReads)
	for n := range want {
		g.Go(func() error {
			ready := r.nodes.ready(ctx, r, n)
			mu.Lock()
			defer mu.Unlock()
			out[n] = ready
			return nil
		})
	}
	_ = g.Wait() // what was not read is not Ready
	return out
}

func (b *nodeBook) ready(ctx context.Context, r *Resync, n [2]string) bool {
	b.mu.Lock()
	e, known := b.m[n]
	b.mu.Unlock()
	if at := r.Now(); !known || at.Sub(e.read) >= nodeMaxAge {
		node, err := r.Clusters[n[0]].Node(ctx, n[1])
		if err != nil && !errors.Is(err, cluster.ErrNotFound) {
			r.Log.WarnContext(ctx, "node not read: it witnesses nothing", "cluster", n[0], "node", n[1], "err", err)
		}
		e = nodeEntry{ready: err == nil && node.Ready, read: at}
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.m == nil || len(b.m) >= maxNodes {
			b.m = map[[2]string]nodeEntry{}
		}
		b.m[n] = e
	}
	return e.ready
}

// maxNodes bounds the readings kept: the largest clusters have 5,000 nodes.
const maxNodes = 5000
