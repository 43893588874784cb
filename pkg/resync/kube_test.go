package resync_test

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// kube is an API server: revisions, lists, streams that go on from a revision,
// quorum reads, and faults.
type kube struct {
	w     *world
	rv    int
	pods  map[string]*podevent.Pod // by namespace/name
	nodes map[string]bool          // Ready
	log   []write
	next  chan struct{} // closed at the next write or fault

	// onList is called before a list hands on its n-th pod; onRead before a point
	// read ("pod shop/a", "ip 10.0.0.1", "pods shop", "node node-a"). Their errors
	// are the answers.
	onList func(n int) error
	onRead func(what string) error
	refuse error // of lists and streams
	cut    error // ends the streams that are open
	cuts   int
	reads  []string // "list", "watch", "pod shop/a", …
}

// write is a change of one pod: made where old is nil, gone where now is.
type write struct {
	rv       int
	old, now *podevent.Pod
}

// cluster adds a cluster.
func (w *world) cluster(name string) *kube {
	k := &kube{w: w, rv: 100, pods: map[string]*podevent.Pod{}, nodes: map[string]bool{"node-a": true, "node-b": true}, next: make(chan struct{})}
	w.do(func() { w.clusters[name] = k })
	return k
}

func (w *world) local() *kube { return w.clusters["local"] }

// pod stores pods given as "name ip=10.0.0.1 app=web uid=u1 node=node-a unready
// ended terminating host ns=shop ports=http:8080"; what is not said is as in the
// name alone: ready, in shop, app=web, on node-a, its uid its name.
func (k *kube) pod(texts ...string) {
	for _, text := range texts {
		k.store(podOf(text))
	}
}

func podOf(text string) *podevent.Pod {
	f := strings.Fields(text)
	p := &podevent.Pod{Namespace: "shop", Name: f[0], UID: f[0], NodeName: "node-a", Phase: "Running", Ready: true, ContainersReady: true,
		Labels: map[string]string{"app": "web"}}
	for _, word := range f[1:] {
		name, v, _ := strings.Cut(word, "=")
		switch name {
		case "ip":
			p.PodIPs = strings.Split(v, ",")
		case "app":
			p.Labels = map[string]string{"app": v}
		case "uid":
			p.UID = v
		case "ns":
			p.Namespace = v
		case "node":
			p.NodeName = v
		case "unready":
			p.Ready, p.ContainersReady = false, false
		case "host":
			p.HostNetwork = true
		case "terminating":
			p.Terminating = true
		case "ended":
			p.Phase, p.Ready, p.ContainersReady = "Failed", false, false
		case "port":
			n, _ := strconv.Atoi(v)
			p.Ports = []podevent.Port{{Name: "http", ContainerPort: int32(n), Protocol: "TCP"}}
		default:
			panic("unknown word " + word)
		}
	}
	return p
}

func (k *kube) store(p *podevent.Pod) {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	id := p.Namespace + "/" + p.Name
	if old := k.pods[id]; old != nil && old.UID != p.UID {
		k.write(old, nil)
	}
	k.rv++
	p.ResourceVersion = strconv.Itoa(k.rv)
	k.log = append(k.log, write{k.rv, k.pods[id], p})
	k.pods[id] = p
	k.wake()
}

// write is under the lock.
func (k *kube) write(old, now *podevent.Pod) {
	k.rv++
	k.log = append(k.log, write{k.rv, old, now})
	delete(k.pods, old.Namespace+"/"+old.Name)
	k.wake()
}

func (k *kube) wake() {
	close(k.next)
	k.next = make(chan struct{})
}

// edit changes pods of the namespace shop as they are.
func (k *kube) edit(f func(p *podevent.Pod), names ...string) {
	for _, n := range names {
		var c podevent.Pod
		k.w.do(func() { c = *k.pods["shop/"+n] })
		f(&c)
		k.store(&c)
	}
}

func (k *kube) terminate(names ...string) {
	k.edit(func(p *podevent.Pod) { p.Terminating = true }, names...)
}

func (k *kube) relabel(app string, names ...string) {
	k.edit(func(p *podevent.Pod) { p.Labels = map[string]string{"app": app} }, names...)
}

// gone removes pods at once, as a force delete does.
func (k *kube) gone(names ...string) {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	for _, n := range names {
		k.write(k.pods["shop/"+n], nil)
	}
}

// restored is etcd from a backup that knows no pods: streams end and lists are empty.
func (k *kube) restored() {
	k.w.do(func() { k.pods, k.log = map[string]*podevent.Pod{}, nil })
	k.end(cluster.ErrExpired)
}

// end ends the streams that are open.
func (k *kube) end(err error) {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	k.cut = err
	k.cuts++
	k.wake()
}

// down has lists, streams and point reads fail, until up is called.
func (k *kube) down(err error) {
	k.w.do(func() { k.refuse = err; k.onRead = func(string) error { return err } })
	k.end(err)
}

func (k *kube) up() {
	k.w.do(func() { k.refuse, k.onRead = nil, nil })
}

func admits(s cluster.Scope, p *podevent.Pod) bool {
	sel, err := labels.Parse(s.LabelSelector)
	if err != nil {
		panic(err)
	}
	return p != nil && (s.Namespace == "" || s.Namespace == p.Namespace) && sel.Matches(labels.Set(p.Labels))
}

func (k *kube) Each(ctx context.Context, s cluster.Scope, each func(*podevent.Pod)) (string, error) {
	k.w.mu.Lock()
	k.reads = append(k.reads, "list")
	err, onList, rv := k.refuse, k.onList, k.rv
	all := k.find(func(p *podevent.Pod) bool { return admits(s, p) })
	k.w.mu.Unlock()
	if err != nil {
		return "", err
	}
	for i, p := range all {
		if onList != nil {
			if err := onList(i); err != nil {
				return "", err
			}
		}
		each(p)
	}
	return strconv.Itoa(rv), ctx.Err()
}

// find is under the lock.
func (k *kube) find(ok func(*podevent.Pod) bool) []*podevent.Pod {
	var out []*podevent.Pod
	for _, id := range slices.Sorted(maps.Keys(k.pods)) {
		if p := k.pods[id]; ok(p) {
			c := *p
			out = append(out, &c)
		}
	}
	return out
}

func (k *kube) Watch(ctx context.Context, s cluster.Scope, resourceVersion string, on func(cluster.Change)) error {
	from, err := strconv.Atoi(resourceVersion)
	if err != nil {
		return err
	}
	k.w.mu.Lock()
	k.reads = append(k.reads, "watch")
	cuts, refuse := k.cuts, k.refuse
	k.w.mu.Unlock()
	if refuse != nil {
		return refuse
	}
	on(cluster.Change{Kind: cluster.Opened, ResourceVersion: resourceVersion})
	bookmark := time.NewTicker(time.Minute)
	defer bookmark.Stop()
	for {
		k.w.mu.Lock()
		changes, cut, next := k.since(s, &from), k.cuts > cuts, k.next
		err := k.cut
		k.w.mu.Unlock()
		for _, c := range changes {
			on(c)
		}
		if cut {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-bookmark.C:
			on(cluster.Change{Kind: cluster.Bookmark, ResourceVersion: strconv.Itoa(from)})
		case <-next:
		}
	}
}

// since is under the lock.
func (k *kube) since(s cluster.Scope, from *int) []cluster.Change {
	var out []cluster.Change
	for _, wr := range k.log {
		if wr.rv <= *from {
			continue
		}
		*from = wr.rv
		c := cluster.Change{ResourceVersion: strconv.Itoa(wr.rv)}
		switch {
		case admits(s, wr.now):
			p := *wr.now
			c.Kind, c.Pod = cluster.Changed, &p
		case admits(s, wr.old): // it left the scope, or is gone
			p := *wr.old
			c.Kind, c.Pod = cluster.Gone, &p
		default:
			continue
		}
		out = append(out, c)
	}
	return out
}

// read notes a point read and returns its fault.
func (k *kube) read(what string) error {
	var hook func(string) error
	k.w.do(func() { k.reads = append(k.reads, what); hook = k.onRead })
	if hook == nil {
		return nil
	}
	return hook(what)
}

// readsOf counts reads of a kind: "pod", "ip", "node", "list", "watch".
func (k *kube) readsOf(kind string) (n int) {
	k.w.do(func() {
		for _, r := range k.reads {
			if r == kind || strings.HasPrefix(r, kind+" ") {
				n++
			}
		}
	})
	return n
}

func (k *kube) Pod(_ context.Context, namespace, name string) (*podevent.Pod, error) {
	if err := k.read("pod " + namespace + "/" + name); err != nil {
		return nil, err
	}
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	if p := k.pods[namespace+"/"+name]; p != nil {
		c := *p
		return &c, nil
	}
	return nil, cluster.ErrNotFound
}

func (k *kube) Pods(_ context.Context, namespace, selector string) ([]*podevent.Pod, error) {
	if err := k.read("pods " + namespace); err != nil {
		return nil, err
	}
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	return k.find(func(p *podevent.Pod) bool {
		return admits(cluster.Scope{Namespace: namespace, LabelSelector: selector}, p)
	}), nil
}

func (k *kube) PodsByIP(_ context.Context, ip string) ([]*podevent.Pod, error) {
	if err := k.read("ip " + ip); err != nil {
		return nil, err
	}
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	return k.find(func(p *podevent.Pod) bool { return p.PodIP() == ip }), nil
}

func (k *kube) Node(_ context.Context, name string) (cluster.Node, error) {
	if err := k.read("node " + name); err != nil {
		return cluster.Node{}, err
	}
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	ready, known := k.nodes[name]
	if !known {
		return cluster.Node{}, cluster.ErrNotFound
	}
	return cluster.Node{Name: name, Ready: ready}, nil
}
