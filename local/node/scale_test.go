package node_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// TestManyPodsAtOnce tells how long many pods take from bound to Ready.
func TestManyPodsAtOnce(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	const n = 200
	boundAndReady := s.times(t, ns)
	nodes := []string{"node-a", "node-b", "node-c"}
	began := time.Now()
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := worker; i < n; i += 8 {
				manifest := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%d"},"spec":{"nodeName":"%s","containers":[{"name":"web","image":"web","ports":[{"containerPort":8080}],"readinessProbe":{"httpGet":{"path":"/readyz","port":8080},"periodSeconds":1}}]}}`, i, nodes[i%3])
				if err := s.kube.Post(t.Context(), "/api/v1/namespaces/"+ns+"/pods", rawJSON(manifest), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	created := time.Now()
	var bound, readyAt map[string]time.Time
	await(t, "all pods are ready", func() error {
		if bound, readyAt = boundAndReady(); len(readyAt) < n {
			return fmt.Errorf("%d of %d", len(readyAt), n)
		}
		return nil
	})
	var each []time.Duration
	for name, at := range readyAt {
		each = append(each, at.Sub(bound[name]))
	}
	slices.Sort(each)
	t.Logf("%d pods created in %s, the last is ready %s after the last was bound; p50 %s, p95 %s from bound to ready",
		n, created.Sub(began).Round(time.Millisecond), time.Since(created).Round(time.Millisecond),
		each[n/2].Round(time.Millisecond), each[n*95/100].Round(time.Millisecond))
}

// times notes when each pod of a namespace was first seen bound, and ready.
func (s *stack) times(t testing.TB, ns string) func() (bound, readyAt map[string]time.Time) {
	t.Helper()
	var mu sync.Mutex
	bound, readyAt := map[string]time.Time{}, map[string]time.Time{}
	s.follow(t, ns, func(_ watch.EventType, p *v1.Pod) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if _, known := bound[p.Name]; !known && p.Spec.NodeName != "" {
			bound[p.Name] = now
		}
		if _, known := readyAt[p.Name]; !known && ready(p) {
			readyAt[p.Name] = now
		}
	})
	return func() (map[string]time.Time, map[string]time.Time) {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(bound), maps.Clone(readyAt)
	}
}

// rawJSON is sent as it is.
type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(strings.TrimSpace(string(r))), nil }
