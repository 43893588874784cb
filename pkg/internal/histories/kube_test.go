package histories_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// silenceMax is how long a stream may say nothing (pkg/cluster), bookmarkEvery how
// often an API server says that nothing happened.
const (
	silenceMax    = 150 * time.Second
	bookmarkEvery = time.Minute
)

// stored is a change of one pod in etcd: made where old is nil, gone where now is.
type stored struct {
	rv       int
	cluster  string
	old, now *podevent.Pod
}

// streams are those of one cluster. They are under the sim's lock.
type streams struct {
	cuts   int   // so often the open ones were ended
	cut    error // with what
	silent bool  // they say nothing, and don't end
}

// put stores a pod under its id, "cluster/name"; nil: it is gone.
func (s *sim) put(id string, p *podevent.Pod) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.rv++
	s.version++
	old := s.pods[id]
	if p == nil {
		delete(s.pods, id)
	} else {
		p.ResourceVersion = strconv.Itoa(s.rv)
		s.pods[id] = p
	}
	s.etcd = append(s.etcd, stored{s.rv, clusterOf(id), old, p})
	s.wake()
}

// wake has every stream look; it is under the lock.
func (s *sim) wake() {
	close(s.next)
	s.next = make(chan struct{})
}

// cut ends the open streams of a cluster.
func (s *sim) cut(clusterName string, err error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	st := s.streams[clusterName]
	st.cuts++
	st.cut = err
	s.wake()
}

func (s *sim) silence(clusterName string, silent bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.streams[clusterName].silent = silent
	s.wake()
}

func clusterOf(id string) string { c, _, _ := strings.Cut(id, "/"); return c }

// kube is a cluster as one program reads it.
type kube struct {
	*actor
	cluster string
}

func (k kube) find(ok func(*podevent.Pod) bool) []*podevent.Pod {
	var out []*podevent.Pod
	for _, id := range slices.Sorted(maps.Keys(k.pods)) {
		if p := k.pods[id]; clusterOf(id) == k.cluster && ok(p) {
			c := *p
			out = append(out, &c)
		}
	}
	return out
}

func admits(s cluster.Scope, p *podevent.Pod) bool {
	sel, err := labels.Parse(s.LabelSelector)
	if err != nil {
		panic(err)
	}
	return p != nil && (s.Namespace == "" || s.Namespace == p.Namespace) && sel.Matches(labels.Set(p.Labels))
}

func (k kube) Pod(ctx context.Context, ns, name string) (*podevent.Pod, error) {
	issued, at := time.Now(), 0
	out, err := call(ctx, k.actor, "pod "+k.cluster+" "+name, k.cluster, "unreachable", func() (*podevent.Pod, error) {
		at = k.tick()
		for _, p := range k.find(func(p *podevent.Pod) bool { return p.Namespace == ns && p.Name == name }) {
			return p, nil
		}
		return nil, cluster.ErrNotFound
	})
	if err == nil {
		k.haveRead(issued, at, k.cluster, name)
	}
	return out, err
}

// selection is what a list of a binding's pods reads: who claims whatever address.
const selection = "selection"

func (k kube) Pods(ctx context.Context, ns, selector string) ([]*podevent.Pod, error) {
	issued := time.Now()
	out, at, err := k.list(ctx, selector, func(p *podevent.Pod) bool {
		return admits(cluster.Scope{Namespace: ns, LabelSelector: selector}, p)
	})
	if err == nil {
		k.haveRead(issued, at, k.cluster, selection)
	}
	return out, err
}

func (k kube) PodsByIP(ctx context.Context, ip string) ([]*podevent.Pod, error) {
	issued := time.Now()
	out, at, err := k.list(ctx, "at "+ip, func(p *podevent.Pod) bool { return p.PodIP() == ip })
	if err == nil {
		k.haveRead(issued, at, k.cluster, ip)
	}
	return out, err
}

// list also returns when it was, by the count of what happens; 0 if it failed.
func (k kube) list(ctx context.Context, what string, ok func(p *podevent.Pod) bool) (out []*podevent.Pod, at int, err error) {
	issued := time.Now()
	out, err = call(ctx, k.actor, "pods "+k.cluster+" "+what, k.cluster, "unreachable", func() ([]*podevent.Pod, error) {
		at = k.tick()
		return k.find(ok), nil
	})
	if err != nil {
		return nil, 0, err
	}
	for _, p := range out {
		k.haveRead(issued, at, k.cluster, p.Name)
	}
	return out, at, nil
}

func (k kube) Node(ctx context.Context, name string) (cluster.Node, error) {
	return call(ctx, k.actor, "node "+k.cluster+" "+name, k.cluster, "unreachable no-nodes", func() (cluster.Node, error) {
		return cluster.Node{Name: name, Ready: k.nodes[name]}, nil
	})
}

// Each lists as of one revision; a faulty list ends in the middle.
func (k kube) Each(ctx context.Context, sc cluster.Scope, each func(*podevent.Pod)) (string, error) {
	var half bool
	var rv int
	all, err := call(ctx, k.actor, "list "+k.cluster+" "+sc.String(), k.cluster, "unreachable", func() ([]*podevent.Pod, error) {
		half, rv = k.fault == "half-list", k.rv
		return k.find(func(p *podevent.Pod) bool { return admits(sc, p) }), nil
	})
	k.listed(k.cluster, err == nil && !half)
	if err != nil {
		return "", err
	}
	if half {
		all = all[:len(all)/2]
	}
	for _, p := range all {
		each(p)
	}
	if half {
		return "", fmt.Errorf("%w by the story, in the middle of a list", cluster.ErrUnreachable)
	}
	return strconv.Itoa(rv), ctx.Err()
}

// Watch hands on what is stored after a revision; each time it has something to
// say it waits for its turn.
func (k kube) Watch(ctx context.Context, sc cluster.Scope, resourceVersion string, on func(cluster.Change)) error {
	from, err := strconv.Atoi(resourceVersion)
	if err != nil {
		return err
	}
	name := "watch " + k.cluster + " " + sc.String()
	cuts, err := call(ctx, k.actor, name, k.cluster, "unreachable", func() (int, error) {
		if from < k.compacted {
			return 0, cluster.ErrExpired
		}
		return k.streams[k.cluster].cuts, nil
	})
	if err != nil {
		return err
	}
	on(cluster.Change{Kind: cluster.Opened, ResourceVersion: resourceVersion})
	bookmark, dog := time.NewTicker(bookmarkEvery), time.NewTimer(silenceMax)
	defer bookmark.Stop()
	defer dog.Stop()
	for {
		changes, next, ended, err := k.since(sc, &from, cuts)
		if len(changes) > 0 {
			k.yield(fmt.Sprintf("%d %s says", k.id, name))
			if k.dead.Load() {
				return errKilled
			}
			for _, c := range changes {
				on(c)
			}
			dog.Reset(silenceMax)
			continue
		}
		if ended {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-dog.C:
			return cluster.ErrSilent
		case <-bookmark.C:
			if !k.isSilent() {
				on(cluster.Change{Kind: cluster.Bookmark, ResourceVersion: strconv.Itoa(from)})
				dog.Reset(silenceMax)
			}
		case <-next:
		}
	}
}

func (k kube) isSilent() bool {
	k.lock.Lock()
	defer k.lock.Unlock()
	return k.streams[k.cluster].silent
}

// since is what the scope's stream says after a revision, what wakes it next, and
// whether it was ended, with what.
func (k kube) since(sc cluster.Scope, from *int, cuts int) (changes []cluster.Change, next chan struct{}, ended bool, err error) {
	k.lock.Lock()
	defer k.lock.Unlock()
	st := k.streams[k.cluster]
	if st.cuts > cuts {
		return nil, nil, true, st.cut
	}
	if st.silent {
		return nil, k.next, false, nil
	}
	begin, _ := slices.BinarySearchFunc(k.etcd, *from+1, func(w stored, rv int) int { return w.rv - rv })
	for _, w := range k.etcd[begin:] {
		*from = w.rv
		c := cluster.Change{ResourceVersion: strconv.Itoa(w.rv)}
		switch {
		case w.cluster != k.cluster:
			continue
		case admits(sc, w.now):
			p := *w.now
			c.Kind, c.Pod = cluster.Changed, &p
		case admits(sc, w.old): // it left the scope, or is gone
			p := *w.old
			c.Kind, c.Pod = cluster.Gone, &p
		default:
			continue
		}
		changes = append(changes, c)
	}
	return changes, k.next, false, nil
}
