package node_test

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestManyPodsAtOnce tells how long many pods take from bound to Ready.
func TestManyPodsAtOnce(t *testing.T) {
	s := up(t)
	ns := s.namespace(t)
	const n = 200
	w, err := s.watch.Get().Namespace(ns).Resource("pods").VersionedParams(&metav1.ListOptions{Watch: true}, metav1.ParameterCodec).Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
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
	bound, readyAt := map[string]time.Time{}, map[string]time.Time{}
	deadline := time.After(patience)
	for len(readyAt) < n {
		select {
		case event := <-w.ResultChan():
			p, ok := event.Object.(*v1.Pod)
			if !ok {
				continue
			}
			if _, known := bound[p.Name]; !known {
				bound[p.Name] = time.Now()
			}
			if _, known := readyAt[p.Name]; !known && ready(p) {
				readyAt[p.Name] = time.Now()
			}
		case <-deadline:
			t.Fatalf("%d of %d pods are ready", len(readyAt), n)
		}
	}
	var each []time.Duration
	for name, at := range readyAt {
		each = append(each, at.Sub(bound[name]))
	}
	sort.Slice(each, func(i, j int) bool { return each[i] < each[j] })
	t.Logf("%d pods created in %s, the last is ready %s after the last was bound; p50 %s, p95 %s from bound to ready",
		n, created.Sub(began).Round(time.Millisecond), time.Since(created).Round(time.Millisecond),
		each[n/2].Round(time.Millisecond), each[n*95/100].Round(time.Millisecond))
}

// rawJSON is sent as it is.
type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(strings.TrimSpace(string(r))), nil }
