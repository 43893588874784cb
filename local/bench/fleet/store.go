package fleet

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	// firstRevision of the fleet; pods differ in theirs.
	firstRevision = 1_000_000
	// changesKept is how many changes a watch can still be told of: the window of
	// an API server's watch cache.
	changesKept = 1 << 16
)

// store holds the fleet's pods as bytes.
type store struct {
	spec Spec

	mu       sync.RWMutex
	ids      []identity
	pods     [][]byte // PodList's items
	revision int64
	touched  []int64 // revision of each pod's last change
	changes  []change
	waiters  chan struct{} // closed at the next change
	scopes   map[string][]int
	pages    map[pageKey]page
}

type change struct {
	revision int64
	pod      int
	frame    []byte
}

type pageKey struct {
	scope        string
	start, limit int
	zip          bool
}

// page is a page that was put together before, good for lists of one revision as
// long as none of its pods changed.
type page struct {
	revision, made int64
	body           []byte
	zipped         bool
}

// newStore makes and encodes all pods.
func newStore(spec Spec) (*store, error) {
	s := &store{spec: spec, ids: make([]identity, spec.Pods), pods: make([][]byte, spec.Pods), touched: make([]int64, spec.Pods), revision: firstRevision,
		waiters: make(chan struct{}), scopes: map[string][]int{}, pages: map[pageKey]page{}}
	var g errgroup.Group
	g.SetLimit(runtime.NumCPU())
	const chunk = 1000
	for from := 0; from < spec.Pods; from += chunk {
		g.Go(func() error {
			for i := from; i < min(from+chunk, spec.Pods); i++ {
				s.ids[i] = spec.identify(i)
				raw, err := s.encode(i, int64(i+1), nil)
				if err != nil {
					return err
				}
				s.pods[i] = raw
			}
			return nil
		})
	}
	return s, g.Wait()
}

// encode encodes pod i with a revision, and with an annotation that tells how
// often it was changed, as controllers leave them behind.
func (s *store) encode(i int, revision int64, annotation *string) ([]byte, error) {
	p := newPod(s.ids[i], i)
	p.ResourceVersion = fmt.Sprint(revision)
	if annotation != nil {
		p.Annotations["fleet.example.com/touched"] = *annotation
	}
	return p.Marshal()
}

// touch changes a pod in a way that changes no claim, and tells the watches.
func (s *store) touch(i int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision := s.revision + 1
	raw, err := s.encode(i, revision, new(fmt.Sprint(revision)))
	if err != nil {
		return err
	}
	object, err := envelope("Pod", raw)
	if err != nil {
		return err
	}
	f, err := frame("MODIFIED", object)
	if err != nil {
		return err
	}
	s.pods[i], s.touched[i], s.revision = raw, revision, revision
	if len(s.changes) >= changesKept {
		s.changes = slices.Clone(s.changes[changesKept/2:])
	}
	s.changes = append(s.changes, change{revision, i, f})
	close(s.waiters)
	s.waiters = make(chan struct{})
	return nil
}

// since returns the changes after a revision, a channel that is closed at the
// next one, and false if that revision is compacted.
func (s *store) since(revision int64) ([]change, <-chan struct{}, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.changes) > 0 && revision < s.changes[0].revision-1 || revision < firstRevision {
		return nil, nil, false
	}
	at, _ := slices.BinarySearchFunc(s.changes, revision+1, func(c change, r int64) int { return int(c.revision - r) })
	return slices.Clone(s.changes[at:]), s.waiters, true
}

// scope is what a list or watch is of.
type scope struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func (c scope) text() string {
	return c.namespace + "\n" + c.labels.String() + "\n" + c.fields.String()
}

func (c scope) has(id identity) bool {
	return (c.namespace == "" || c.namespace == id.namespace) && c.labels.Matches(labels.Set(id.labels)) && c.fields.Matches(fields.Set{
		"metadata.name": id.name, "metadata.namespace": id.namespace, "spec.nodeName": id.node, "status.podIP": id.addr.String(), "status.phase": "Running"})
}

// members are the pods of a scope. Neither labels nor addresses change, so they
// are found once.
func (s *store) members(c scope) []int {
	key := c.text()
	s.mu.RLock()
	found, ok := s.scopes[key]
	s.mu.RUnlock()
	if ok {
		return found
	}
	found = []int{}
	for i, id := range s.ids {
		if c.has(id) {
			found = append(found, i)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.scopes) > 1000 { // lists by address are many, and seen once
		s.scopes = map[string][]int{}
	}
	s.scopes[key] = found
	return found
}

// page returns one page of a scope, compressed if that is wanted and it is large. Its
// revision is the list's. Pods are as they are now, which may be later than the list's
// first page: watches tell of those once more.
func (s *store) page(c scope, start, limit int, revision int64, zip bool) (page, error) {
	all := s.members(c)
	start = min(start, len(all))
	end := len(all)
	if limit > 0 {
		end = min(end, start+limit)
	}
	key := pageKey{c.text(), start, limit, zip}
	s.mu.RLock()
	kept := s.pages[key]
	fresh := kept.body != nil && kept.revision == revision
	pods := make([][]byte, 0, end-start)
	for _, i := range all[start:end] {
		fresh = fresh && s.touched[i] <= kept.made
		pods = append(pods, s.pods[i])
	}
	kept.made, kept.revision = s.revision, revision
	s.mu.RUnlock()
	if fresh {
		return kept, nil
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(revision, 10)}
	if end < len(all) {
		meta.Continue = continuation{Revision: revision, Start: end}.text()
		if c.fields.Empty() && c.labels.Empty() {
			meta.RemainingItemCount = new(int64(len(all) - end))
		}
	}
	body, err := podList(meta, pods)
	if kept.zipped = zip && len(body) > zipFrom; kept.zipped && err == nil {
		body, err = zipped(body)
	}
	if err != nil {
		return page{}, err
	}
	kept.body = body
	if end-start > 1 { // not the lists that ask for one address
		s.mu.Lock()
		s.pages[key] = kept
		s.mu.Unlock()
	}
	return kept, nil
}

// zipped compresses as an API server does: level 1.
func zipped(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(b)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}
