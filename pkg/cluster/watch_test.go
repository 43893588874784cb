package cluster_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/elbridge/elbridge/pkg/cluster"
)

// frame is one event of a stream as the API server writes it.
func frame(kind string, object runtime.Object) []byte {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	raw, err := runtime.Encode(protobuf.NewSerializer(scheme, scheme), object)
	if err != nil {
		panic(err)
	}
	e, err := (&metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw}}).Marshal()
	if err != nil {
		panic(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(e))), e...)
}

// atRevision is a pod as of a revision.
func atRevision(name, rv string) *corev1.Pod {
	return pod(name, func(p *corev1.Pod) { p.ResourceVersion = rv })
}

// script writes a stream: "+a@5", "~a@6", "-a@7" and "^@9" are events with a pod
// and its revision, "!410" is an error, "half" is half a frame, "length" is its
// first four bytes, "junk" is no frame,
// "cut" is a reset, "wait" waits for the client to leave. It ends with its end.
func script(r *http.Request, steps string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for step := range strings.FieldsSeq(steps) {
			name, rv, _ := strings.Cut(step[1:], "@")
			var out []byte
			switch {
			case step == "wait":
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				return
			case step == "cut":
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			case step == "junk":
				out = []byte("<html>no such page</html>")
			case step == "length":
				out = frame("ADDED", pod("half"))[:4]
			case step == "half":
				out = frame("ADDED", pod("half"))[:20]
			case step[0] == '!':
				code, _ := strconv.Atoi(step[1:])
				reason := map[int]metav1.StatusReason{410: metav1.StatusReasonExpired, 403: metav1.StatusReasonForbidden, 500: metav1.StatusReasonInternalError}[code]
				out = frame("ERROR", status(code, reason, 0))
			default:
				out = frame(map[byte]string{'+': "ADDED", '~': "MODIFIED", '-': "DELETED", '^': "BOOKMARK", '?': "UNHEARD-OF"}[step[0]], atRevision(name, rv))
			}
			_, _ = w.Write(out)
		}
	}
}

// patience has a client that gives silent streams up after a while.
func (w *world) patience(silence time.Duration) *cluster.Client {
	elsewhere := "http://127.0.0.1:9"
	d := &cluster.Dialer{AWS: aws.Config{Region: "eu-west-1", BaseEndpoint: &elsewhere, Credentials: w}, EKS: w, Now: w.Now, Silence: silence}
	return d.Client(cluster.Config{Name: "prod", EKS: &cluster.EKS{Name: "prod-eks"}})
}

// spell writes a change as script reads it.
func spell(c cluster.Change) string {
	name := ""
	if c.Pod != nil {
		name = c.Pod.Name
	}
	return map[cluster.ChangeKind]string{cluster.Opened: "=", cluster.Changed: "~", cluster.Gone: "-", cluster.Bookmark: "^"}[c.Kind] + name + "@" + c.ResourceVersion
}

func TestWatch(t *testing.T) {
	tests := map[string]struct {
		stream  string
		silence time.Duration
		want    string
		err     error
	}{
		"the server ends it":            {"", time.Minute, "=@5", nil},
		"changes, one after the other":  {"+a@6 ~a@7 +b@8 -a@9", time.Minute, "=@5 ~a@6 ~a@7 ~b@8 -a@9", nil},
		"bookmarks":                     {"^@6 +a@7 ^@9", time.Minute, "=@5 ^@6 ~a@7 ^@9", nil},
		"I8 too old a revision":         {"+a@6 !410", time.Minute, "=@5 ~a@6", cluster.ErrExpired},
		"an error of the server's":      {"+a@6 !500", time.Minute, "=@5 ~a@6", cluster.ErrUnreachable},
		"P103 rights that were lost":    {"!403", time.Minute, "=@5", cluster.ErrUnauthorized},
		"nothing is said":               {"+a@6 wait", 200 * time.Millisecond, "=@5 ~a@6", cluster.ErrSilent},
		"nothing is ever said":          {"wait", 200 * time.Millisecond, "=@5", cluster.ErrSilent},
		"half a frame, then a reset":    {"+a@6 half cut", time.Minute, "=@5 ~a@6", cluster.ErrUnreachable},
		"half a frame, then the end":    {"+a@6 half", time.Minute, "=@5 ~a@6", cluster.ErrUnreachable},
		"a length, then the end":        {"+a@6 length", time.Minute, "=@5 ~a@6", cluster.ErrUnreachable},
		"a reset":                       {"+a@6 cut", time.Minute, "=@5 ~a@6", cluster.ErrUnreachable},
		"no stream at all":              {"junk", time.Minute, "=@5", cluster.ErrUnreachable},
		"an event that nobody heard of": {"?a@6", time.Minute, "=@5", cluster.ErrUnreachable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(r *http.Request) any { return script(r, tt.stream) })
			var got []string
			err := newWorld(s).patience(tt.silence).Watch(t.Context(), cluster.Scope{Namespace: "ingress", LabelSelector: "app=web"}, "5", func(c cluster.Change) { got = append(got, spell(c)) })
			wantStreamClass(t, err, tt.err)
			if strings.Join(got, " ") != tt.want {
				t.Errorf("changes %q, want %q", strings.Join(got, " "), tt.want)
			}
			if err != nil && !strings.Contains(err.Error(), "cluster prod: watching pods of namespace ingress with app=web: ") {
				t.Errorf("%v, want it to say what was watched where", err)
			}
			q := s.requests()[0].URL.Query()
			if keep, err := strconv.Atoi(q.Get("timeoutSeconds")); err != nil || keep < 300 || keep >= 600 {
				t.Errorf("timeoutSeconds %q, want 300 to 599", q.Get("timeoutSeconds"))
			}
			if q.Del("timeoutSeconds"); q.Encode() != "allowWatchBookmarks=true&labelSelector=app%3Dweb&resourceVersion=5&watch=true" {
				t.Errorf("asked for %s", q.Encode())
			}
			if accept := s.requests()[0].Header.Get("Accept"); accept != "application/vnd.kubernetes.protobuf;stream=watch" {
				t.Errorf("accepts %s", accept)
			}
		})
	}
}

func TestWatchRefused(t *testing.T) {
	tests := map[string]struct {
		answer any
		want   error
	}{
		"410":                    {status(410, metav1.StatusReasonExpired, 0), cluster.ErrExpired},
		"P103 403":               {status(403, metav1.StatusReasonForbidden, 0), cluster.ErrUnauthorized},
		"P103 401":               {status(401, metav1.StatusReasonUnauthorized, 0), cluster.ErrUnauthorized},
		"503 that says wait":     {status(503, metav1.StatusReasonServiceUnavailable, 32), cluster.ErrUnreachable},
		"502 of a load balancer": {502, cluster.ErrUnreachable},
		"200 of somebody else":   {200, cluster.ErrUnreachable},
		"cut":                    {"cut", cluster.ErrUnreachable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(*http.Request) any { return tt.answer })
			err := newWorld(s).client().Watch(t.Context(), cluster.Scope{}, "5", func(c cluster.Change) {
				if c.Kind != cluster.Opened {
					t.Errorf("change %s", spell(c))
				}
			})
			wantStreamClass(t, err, tt.want)
		})
	}
}

// The answer to a token may rest on credentials that ended in a freeze.
func TestWatchRenewsToken_P100(t *testing.T) {
	refused := false
	s := newServer(t, func(r *http.Request) any {
		if !refused {
			refused = true
			return status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, 0)
		}
		return script(r, "+a@6")
	})
	if err := newWorld(s).client().Watch(t.Context(), cluster.Scope{}, "5", func(cluster.Change) {}); err != nil {
		t.Fatal(err)
	}
	all := s.requests()
	if len(all) != 2 || all[0].Header.Get("Authorization") == all[1].Header.Get("Authorization") {
		t.Errorf("%d requests, want a second one with a new token", len(all))
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	s := newServer(t, func(r *http.Request) any { return script(r, "+a@6 wait") })
	ctx, cancel := context.WithCancel(t.Context())
	err := newWorld(s).client().Watch(ctx, cluster.Scope{}, "5", func(c cluster.Change) {
		if c.Kind == cluster.Changed {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, cluster.ErrUnreachable) {
		t.Errorf("error %v, want the context's alone", err)
	}
}

// What on does with a change is not the stream's silence.
func TestSlowReader(t *testing.T) {
	const silence = 500 * time.Millisecond
	read := make(chan struct{})
	s := newServer(t, func(r *http.Request) any {
		return func(w http.ResponseWriter) {
			_, _ = w.Write(frame("ADDED", atRevision("a", "6")))
			w.(http.Flusher).Flush()
			select {
			case <-read:
			case <-r.Context().Done():
			}
			_, _ = w.Write(frame("ADDED", atRevision("b", "7")))
		}
	})
	n := 0
	err := newWorld(s).patience(silence).Watch(t.Context(), cluster.Scope{}, "5", func(c cluster.Change) {
		if n++; c.ResourceVersion == "6" {
			time.Sleep(silence + silence/5) // is what is tested
			close(read)
		}
	})
	if err != nil || n != 3 {
		t.Errorf("%d changes, error %v; want three", n, err)
	}
}

// Who is silent may be at the end of a connection that leads nowhere.
func TestSilenceCostsTheConnection(t *testing.T) {
	s := newServer(t, func(r *http.Request) any {
		if r.URL.Query().Has("watch") {
			return script(r, "wait")
		}
		return pod("web-0")
	})
	c := newWorld(s).patience(50 * time.Millisecond)
	wantStreamClass(t, c.Watch(t.Context(), cluster.Scope{}, "5", func(cluster.Change) {}), cluster.ErrSilent)
	if _, err := c.Pod(t.Context(), "ingress", "web-0"); err != nil || s.connections() != 2 {
		t.Errorf("%d connections, error %v; want another than the stream's", s.connections(), err)
	}
}

// A connection that was silent for half a minute may have died in a freeze.
func TestWatchAfterAFreeze(t *testing.T) {
	s := newServer(t, func(r *http.Request) any { return script(r, "+a@6") })
	w := newWorld(s)
	c := w.client()
	for i, tt := range []struct {
		pause time.Duration
		conns int
	}{{0, 1}, {time.Second, 1}, {time.Hour, 2}} {
		w.pass(tt.pause)
		if err := c.Watch(t.Context(), cluster.Scope{}, "5", func(cluster.Change) {}); err != nil {
			t.Fatal(err)
		}
		if n := s.connections(); n != tt.conns {
			t.Errorf("step %d, after %s: %d connections, want %d", i, tt.pause, n, tt.conns)
		}
	}
}
