package cluster_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// pages answers LISTs: one string a page with the pods' names, "" is a page
// without pods; a page "!410" fails.
func pages(all ...string) func(*http.Request) any {
	return func(r *http.Request) any {
		n := 0
		if c := r.URL.Query().Get("continue"); c != "" {
			if _, err := fmt.Sscanf(c, "page-%d", &n); err != nil {
				panic(err)
			}
		}
		if fault, ok := strings.CutPrefix(all[n], "!"); ok {
			return map[string]any{"410": status(410, metav1.StatusReasonExpired, 0), "500": status(500, metav1.StatusReasonInternalError, 0), "cut": "cut", "html": 200}[fault]
		}
		l := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		for name := range strings.FieldsSeq(all[n]) {
			l.Items = append(l.Items, *pod(name))
		}
		if n+1 < len(all) {
			l.Continue = fmt.Sprint("page-", n+1)
		}
		return l
	}
}

func names(ps []*podevent.Pod) string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Name)
	}
	return strings.Join(out, " ")
}

func TestList(t *testing.T) {
	tests := map[string]struct {
		pages []string
		want  string
		err   error
	}{
		"none":                        {[]string{""}, "", nil},
		"one page":                    {[]string{"a b"}, "a b", nil},
		"several, also empty ones":    {[]string{"a", "", "b", "", "c"}, "a b c", nil},
		"I8 the first fails":          {[]string{"!500"}, "", cluster.ErrUnreachable},
		"I8 the last fails":           {[]string{"a", "b", "!500"}, "", cluster.ErrUnreachable},
		"I8 the list grew too old":    {[]string{"a", "!410", "b"}, "", cluster.ErrUnreachable},
		"I8 the connection breaks":    {[]string{"a", "!cut"}, "", cluster.ErrUnreachable},
		"I8 a page is something else": {[]string{"a", "!html"}, "", cluster.ErrUnreachable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, pages(tt.pages...))
			ps, err := newWorld(s).client().Pods(t.Context(), "ingress", "app in (a,b)")
			if err != nil || tt.err != nil {
				wantClass(t, err, tt.err)
			}
			if names(ps) != tt.want || (tt.err != nil && ps != nil) {
				t.Errorf("pods %q, want %q", names(ps), tt.want)
			}
			for i, r := range s.requests() {
				q := r.URL.Query()
				if r.URL.Path != "/api/v1/namespaces/ingress/pods" || q.Get("limit") != "500" || q.Get("labelSelector") != "app in (a,b)" || q.Has("resourceVersion") || q.Has("resourceVersionMatch") {
					t.Errorf("page %d: %s; want the same of each page, and no resourceVersion", i, r.URL)
				}
			}
		})
	}
}

func TestListWithoutEnd(t *testing.T) {
	s := newServer(t, func(*http.Request) any {
		return &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{Continue: "more"}}
	})
	ps, err := newWorld(s).client().Pods(t.Context(), "", "")
	wantClass(t, err, cluster.ErrUnreachable)
	if n := len(s.requests()); ps != nil || n != 200 {
		t.Errorf("%d pods after %d pages, want none after 200", len(ps), n)
	}
}

// A read without resourceVersion is one that etcd is asked for (I1).
func TestReadsAreQuorumReads_I1(t *testing.T) {
	s := newServer(t, func(r *http.Request) any {
		switch {
		case strings.HasSuffix(r.URL.Path, "/pods"):
			return pages("a")(r)
		case strings.Contains(r.URL.Path, "/nodes/"):
			return &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}}
		}
		return pod("web-0")
	})
	c := newWorld(s).client()
	ctx := t.Context()
	tests := []struct {
		want string
		read func() error
	}{
		{"/api/v1/namespaces/ingress/pods/web-0?timeout=5s", func() error { _, err := c.Pod(ctx, "ingress", "web-0"); return err }},
		{"/api/v1/nodes/node-a?timeout=5s", func() error { _, err := c.Node(ctx, "node-a"); return err }},
		{"/api/v1/pods?limit=500&timeout=5s", func() error { _, err := c.Pods(ctx, "", ""); return err }},
		{"/api/v1/pods?labelSelector=app%3Dweb&limit=500&timeout=5s", func() error { _, err := c.Pods(ctx, "", "app=web"); return err }},
		{"/api/v1/pods?fieldSelector=status.podIP%3D10.64.1.7&limit=500&timeout=5s", func() error { _, err := c.PodsByIP(ctx, "10.64.1.7"); return err }},
		{"/api/v1/pods?fieldSelector=status.podIP%3Dfd00%3A%3A7&limit=500&timeout=5s", func() error { _, err := c.PodsByIP(ctx, "fd00::7"); return err }},
	}
	for _, tt := range tests {
		if err := tt.read(); err != nil {
			t.Fatal(err)
		}
		for _, r := range s.requests() {
			if accept := r.Header.Get("Accept"); !strings.HasPrefix(accept, runtime.ContentTypeProtobuf) {
				t.Errorf("%s accepts %s, want protobuf first", r.URL, accept)
			}
		}
		if got := s.asked(); got != tt.want {
			t.Errorf("asked %s, want %s", got, tt.want)
		}
	}
}

func TestJSONIsUnderstoodToo(t *testing.T) {
	s := newServer(t, func(r *http.Request) any {
		r.Header.Set("X-Want-Json", "yes")
		return pod("web-0")
	})
	if p, err := newWorld(s).client().Pod(t.Context(), "ingress", "web-0"); err != nil || p.Name != "web-0" {
		t.Errorf("pod %+v, error %v", p, err)
	}
}

func TestPod(t *testing.T) {
	yes, always, grace := true, corev1.ContainerRestartPolicyAlways, int64(30)
	condition := func(kind corev1.PodConditionType, s corev1.ConditionStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: s})
		}
	}
	tests := map[string]struct {
		change func(*corev1.Pod)
		want   func(*podevent.Pod)
	}{
		"nothing but a name": {func(*corev1.Pod) {}, func(*podevent.Pod) {}},
		"identity": {func(p *corev1.Pod) {
			p.Labels, p.Annotations = map[string]string{"app": "web"}, map[string]string{"note": "x"}
			p.Spec.ServiceAccountName, p.Spec.NodeName, p.Spec.HostNetwork = "robot", "node-a", true
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "Other", Name: "o"}, {Kind: "ReplicaSet", Name: "web-1", Controller: &yes}}
		}, func(p *podevent.Pod) {
			p.Labels, p.Annotations = map[string]string{"app": "web"}, map[string]string{"note": "x"}
			p.ServiceAccount, p.NodeName, p.HostNetwork = "robot", "node-a", true
			p.Owner = &podevent.Owner{Kind: "ReplicaSet", Name: "web-1"}
		}},
		"an owner that doesn't control it": {func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: "Other", Name: "o"}} }, func(*podevent.Pod) {}},
		"both families, in their order": {func(p *corev1.Pod) {
			p.Status.PodIP, p.Status.HostIP = "fd00::7", "10.64.0.11"
			p.Status.PodIPs = []corev1.PodIP{{IP: "fd00::7"}, {IP: "10.64.1.7"}}
		}, func(p *podevent.Pod) { p.PodIPs, p.HostIP = []string{"fd00::7", "10.64.1.7"}, "10.64.0.11" }},
		"podIP without podIPs": {func(p *corev1.Pod) { p.Status.PodIP = "10.64.1.7" }, func(p *podevent.Pod) { p.PodIPs = []string{"10.64.1.7"} }},
		"ready":                {condition(corev1.PodReady, corev1.ConditionTrue), func(p *podevent.Pod) { p.Ready = true }},
		"containers ready":     {condition(corev1.ContainersReady, corev1.ConditionTrue), func(p *podevent.Pod) { p.ContainersReady = true }},
		"unknown is not ready": {condition(corev1.PodReady, corev1.ConditionUnknown), func(*podevent.Pod) {}},
		"other conditions":     {condition(corev1.PodScheduled, corev1.ConditionTrue), func(*podevent.Pod) {}},
		"finished":             {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, func(p *podevent.Pod) { p.Phase = "Succeeded" }},
		"I4 terminating, by a time to come": {func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}, &grace
		}, func(p *podevent.Pod) { p.Terminating, p.DeletionGracePeriodSeconds = true, &grace }},
		"ports of containers and sidecars": {func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{
				{Name: "a", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, HostPort: 80, Protocol: "TCP"}}},
				{Name: "b", Ports: []corev1.ContainerPort{{ContainerPort: 53, Protocol: "UDP"}}},
			}
			p.Spec.InitContainers = []corev1.Container{
				{Name: "init", Ports: []corev1.ContainerPort{{Name: "no", ContainerPort: 1}}},
				{Name: "proxy", RestartPolicy: &always, Ports: []corev1.ContainerPort{{Name: "mesh", ContainerPort: 15001, Protocol: "TCP"}}},
			}
		}, func(p *podevent.Pod) {
			p.Ports = []podevent.Port{{Name: "http", ContainerPort: 8080, HostPort: 80, Protocol: "TCP"}, {ContainerPort: 53, Protocol: "UDP"}, {Name: "mesh", ContainerPort: 15001, Protocol: "TCP"}}
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(*http.Request) any { return pod("web-0", tt.change) })
			got, err := newWorld(s).client().Pod(t.Context(), "ingress", "web-0")
			if err != nil {
				t.Fatal(err)
			}
			want := &podevent.Pod{Namespace: "ingress", Name: "web-0", UID: "uid-of-1", ResourceVersion: "7"}
			tt.want(want)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestNode(t *testing.T) {
	for s, want := range map[corev1.ConditionStatus]bool{corev1.ConditionTrue: true, corev1.ConditionFalse: false, corev1.ConditionUnknown: false, "": false} {
		srv := newServer(t, func(*http.Request) any {
			n := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}}
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}}
			if s != "" {
				n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: s})
			}
			return n
		})
		got, err := newWorld(srv).client().Node(t.Context(), "node-a")
		if err != nil || got != (cluster.Node{Name: "node-a", Ready: want}) {
			t.Errorf("condition %q: %+v, error %v; want ready %v", s, got, err, want)
		}
	}
}
