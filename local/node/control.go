package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/elbridge/elbridge/local/node/internal/container"
	"github.com/elbridge/elbridge/local/node/internal/podstatus"
	"github.com/elbridge/elbridge/local/vpc"
)

const bodyLimit = 64 << 10

// serveControl serves the control API until ctx ends.
func (a *agent) serveControl(ctx context.Context, ln net.Listener) error {
	s := &http.Server{Handler: a.routes(), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (a *agent) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/pods", func(w http.ResponseWriter, _ *http.Request) { reply(w, a.podInfos()) })
	mux.HandleFunc("GET /v1/nodes", func(w http.ResponseWriter, _ *http.Request) { reply(w, a.nodeInfos()) })
	for verb, act := range map[string]func(*worker, []byte) error{
		"crash": crash(0, ""), "oom": crash(container.CodeKilled, "OOMKilled"),
		"evict": evict, "ready": setReadiness, "health": setHealth, "sandbox": newSandbox,
	} {
		mux.HandleFunc("POST /v1/pods/{namespace}/{name}/"+verb, a.onPod(act))
	}
	for verb, act := range map[string]func(*host, []byte) error{
		"partition": func(h *host, _ []byte) error { h.partition(); return nil },
		"lose":      func(h *host, _ []byte) error { h.lose(); return nil },
		"heal":      func(h *host, _ []byte) error { return h.heal(a.ctx) },
		"writes":    a.pauseWrites,
	} {
		mux.HandleFunc("POST /v1/nodes/{node}/"+verb, a.onNode(act))
	}
	mux.HandleFunc("POST /v1/addresses", func(w http.ResponseWriter, r *http.Request) { answer(w, r, a.chooseAddress) })
	return mux
}

func (a *agent) onPod(act func(*worker, []byte) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(body []byte) error {
			pod, err := a.worker(r.PathValue("namespace"), r.PathValue("name"))
			if err != nil {
				return err
			}
			return act(pod, body)
		})
	}
}

func (a *agent) onNode(act func(*host, []byte) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(body []byte) error {
			h, err := a.host(r.PathValue("node"))
			if err != nil {
				return err
			}
			return act(h, body)
		})
	}
}

func crash(code int, reason string) func(*worker, []byte) error {
	return func(w *worker, body []byte) error {
		var c Crash
		if err := parse(body, &c); err != nil {
			return err
		}
		c.ExitCode = cmp.Or(code, c.ExitCode, 1)
		if c.ExitCode < 0 || c.ExitCode > 255 {
			return fmt.Errorf("exitCode %d: want 0 to 255", c.ExitCode)
		}
		w.mu.Lock()
		if c.Container == "" {
			c.Container = w.pod.Spec.Containers[0].Name
		}
		r := w.running[c.Container]
		w.mu.Unlock()
		if r == nil {
			return fmt.Errorf("%w: container %q of %s/%s does not run", errNotPresent, c.Container, w.namespace, w.name)
		}
		r.Crash(container.Exit{Code: c.ExitCode, Reason: reason})
		<-r.Done()
		return nil
	}
}

func evict(w *worker, body []byte) error {
	e := Evict{Resource: "memory"}
	if err := parse(body, &e); err != nil {
		return err
	}
	w.evict(podstatus.Eviction{
		Reason:  "Evicted",
		Message: fmt.Sprintf("The node was low on resource: %s. Threshold quantity: 100Mi, available: 0.", e.Resource),
	}, e.DropIP)
	return nil
}

func setReadiness(w *worker, body []byte) error {
	var ready Ready
	if err := parse(body, &ready); err != nil {
		return err
	}
	w.update(func() {
		w.forced = ready.Ready
		for _, r := range w.running {
			w.judge(r)
			w.steer(r)
		}
	})
	return nil
}

func setHealth(w *worker, body []byte) error {
	var h Health
	if err := parse(body, &h); err != nil {
		return err
	}
	if h.Status != 0 && (h.Status < 200 || h.Status > 599) {
		return fmt.Errorf("status %d: want 200 to 599, or 0", h.Status)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.health = h.Status
	for _, r := range w.running {
		w.steer(r)
	}
	return nil
}

func newSandbox(w *worker, _ []byte) error {
	if !w.newSandbox() {
		return fmt.Errorf("%w: pod %s/%s is ending or has not begun", errNotPresent, w.namespace, w.name)
	}
	return nil
}

func (a *agent) pauseWrites(h *host, body []byte) error {
	var writes Writes
	if err := parse(body, &writes); err != nil {
		return err
	}
	if writes.Paused {
		h.writes.cut()
	} else {
		h.writes.up(a.ctx)
	}
	return nil
}

func (a *agent) chooseAddress(body []byte) error {
	var in Address
	if err := parse(body, &in); err != nil {
		return err
	}
	ip, err := netip.ParseAddr(in.Address)
	if err != nil || !vpc.PodCIDR.Contains(ip) || a.isNodeAddress(ip) {
		return fmt.Errorf("address %q: want one of %s that is no node's", in.Address, vpc.PodCIDR)
	}
	if in.Namespace == "" || (in.Name == "" && in.Selector == "") {
		return errors.New("want a namespace, and a name or a selector")
	}
	w := wish{namespace: in.Namespace, name: in.Name, address: ip}
	if in.Selector != "" {
		if w.selector, err = labels.Parse(in.Selector); err != nil {
			return fmt.Errorf("selector: %w", err)
		}
	}
	a.wishes.add(w)
	return nil
}

// parse reads a body; an empty one leaves the defaults.
func parse(body []byte, into any) error {
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	return nil
}

// answer acts on a body and says how it went.
func answer(w http.ResponseWriter, r *http.Request, act func([]byte) error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	if err == nil {
		err = act(body)
	}
	status := http.StatusBadRequest
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
		return
	case errors.Is(err, errNotFound):
		status = http.StatusNotFound
	case errors.Is(err, errNotPresent):
		status = http.StatusConflict
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(Error{Error: err.Error()})
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}
