package fleet

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// zipFrom is the size from which an API server compresses for who accepts it, in bytes.
	zipFrom = 128 << 10
	// bookmarkEvery is how often an API server's watch cache sends bookmarks, about.
	bookmarkEvery = time.Minute
	// watchFor is how long a watch lasts that asks for no time-out.
	watchFor = 30 * time.Minute
)

// api answers as an API server does, as far as resync asks.
type api struct {
	*store
	mux   *http.ServeMux
	stats *Stats
	noZip atomic.Bool // as if the server's compression was off
}

// Stats count what was asked for.
type Stats struct {
	Lists, Pages, Watches, Gets, Events atomic.Int64
	BytesIn, BytesOut                   atomic.Int64 // on the wire, TLS included
}

func newAPI(s *store, stats *Stats) *api {
	a := &api{store: s, stats: stats, mux: http.NewServeMux()}
	a.mux.HandleFunc("GET /api/v1/pods", a.listOrWatch)
	a.mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods", a.listOrWatch)
	a.mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods/{name}", a.pod)
	a.mux.HandleFunc("GET /api/v1/nodes/{name}", a.node)
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		a.refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the fleet does not know "+r.Method+" "+r.URL.Path)
	})
	return a
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
		http.Error(w, "the fleet speaks "+runtime.ContentTypeProtobuf+" only", http.StatusNotAcceptable)
		return
	}
	a.mux.ServeHTTP(w, r)
}

func send(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // protobuf, for our own client; who went away needs no answer
}

func (a *api) refuse(w http.ResponseWriter, status int, reason metav1.StatusReason, message string) {
	body, err := refusal(int32(status), reason, message)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	send(w, status, body)
}

func (a *api) object(w http.ResponseWriter, kind string, raw []byte, err error) {
	if err == nil {
		raw, err = envelope(kind, raw)
	}
	if err != nil {
		a.refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
		return
	}
	send(w, http.StatusOK, raw)
}

// pod answers a GET. A pod's name ends in its index.
func (a *api) pod(w http.ResponseWriter, r *http.Request) {
	a.stats.Gets.Add(1)
	name := r.PathValue("name")
	i, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	if err != nil || i < 0 || i >= len(a.ids) || a.ids[i].name != name || a.ids[i].namespace != r.PathValue("namespace") {
		a.refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("pods %q not found", name))
		return
	}
	a.mu.RLock()
	raw := a.pods[i]
	a.mu.RUnlock()
	a.object(w, "Pod", raw, nil)
}

// node answers a GET: every node of the fleet is ready.
func (a *api) node(w http.ResponseWriter, r *http.Request) {
	a.stats.Gets.Add(1)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.PathValue("name"), ResourceVersion: "1"},
		Spec:   corev1.NodeSpec{ProviderID: "aws:///eu-west-1a/i-0000000000000000a"},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	raw, err := n.Marshal()
	a.object(w, "Node", raw, err)
}

// continuation is where a list goes on. To a client it is opaque.
type continuation struct {
	Revision int64
	Start    int
}

func (c continuation) text() string {
	b, _ := json.Marshal(c) // of two numbers: never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseContinuation(text string) (c continuation, err error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	return c, err
}

func parseScope(r *http.Request, q url.Values) (c scope, err error) {
	c.namespace = r.PathValue("namespace")
	if c.labels, err = labels.Parse(q.Get("labelSelector")); err != nil {
		return c, err
	}
	c.fields, err = fields.ParseSelector(q.Get("fieldSelector"))
	return c, err
}

func (a *api) listOrWatch(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	c, err := parseScope(r, q)
	if err != nil {
		a.refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	if q.Get("watch") == "true" || q.Get("watch") == "1" {
		a.watch(w, r, c, q)
		return
	}
	a.list(w, r, c, q)
}

func (a *api) list(w http.ResponseWriter, r *http.Request, c scope, q url.Values) {
	limit, _ := strconv.Atoi(q.Get("limit")) // none is none
	a.mu.RLock()
	from := continuation{Revision: a.revision}
	a.mu.RUnlock()
	if text := q.Get("continue"); text != "" {
		var err error
		if from, err = parseContinuation(text); err != nil {
			a.refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "continue: "+err.Error())
			return
		}
	} else {
		a.stats.Lists.Add(1)
	}
	a.stats.Pages.Add(1)
	zip := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") && !a.noZip.Load()
	p, err := a.page(c, from.Start, limit, from.Revision, zip)
	if err != nil {
		a.refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
		return
	}
	if p.zipped {
		w.Header().Set("Content-Encoding", "gzip")
	}
	send(w, http.StatusOK, p.body)
}
