package container

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Identity is what a built-in server says about itself.
type Identity struct {
	Pod       string `json:"pod"`
	Namespace string `json:"namespace"`
	UID       string `json:"uid"`
	Container string `json:"container"`
	Node      string `json:"node"`
	Zone      string `json:"zone"`
	Address   string `json:"address"` // published, primary family
}

// Answer is the body of every answer but those of the health paths.
type Answer struct {
	Identity
	Terminating bool                `json:"terminating"`
	Method      string              `json:"method"`
	Path        string              `json:"path"`
	Host        string              `json:"host"`
	Remote      string              `json:"remote"`
	Protocol    string              `json:"protocol"`
	Headers     map[string][]string `json:"headers"`
}

// Headers of every answer.
const (
	HeaderPod = "Elbridge-Pod"
	HeaderUID = "Elbridge-Pod-Uid"
)

func (s *Server) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(HeaderPod, s.spec.Identity.Pod)
		w.Header().Set(HeaderUID, s.spec.Identity.UID)
		switch {
		case r.URL.Path == "/readyz", slices.Contains(s.spec.ReadyPaths, r.URL.Path) && !s.ready():
			answerStatus(w, s.readyStatus())
		case r.URL.Path == "/healthz", r.URL.Path == "/livez":
			answerStatus(w, s.healthStatus())
		default:
			s.answer(w, r)
		}
	})
}

func (s *Server) ready() bool {
	return !s.notReady.Load() && s.now().Sub(s.start) >= s.spec.Behaviour.ReadyAfter
}

func (s *Server) readyStatus() int {
	if !s.ready() {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

func (s *Server) healthStatus() int {
	if code := int(s.health.Load()); code != 0 {
		return code
	}
	return http.StatusOK
}

// answer says who answers, after ?delay= (a Go duration) and with ?status=.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if text := q.Get("delay"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			http.Error(w, "delay: want a duration such as 200ms", http.StatusBadRequest)
			return
		}
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler) // the client sees a broken connection, no empty answer
		}
	}
	status := http.StatusOK
	if text := q.Get("status"); text != "" {
		code, err := strconv.Atoi(text)
		if err != nil || code < 200 || code > 599 {
			http.Error(w, "status: want 200 to 599", http.StatusBadRequest)
			return
		}
		status = code
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(Answer{
		Identity: s.spec.Identity, Terminating: s.terminating.Load(), Method: r.Method, Path: r.URL.Path,
		Host: r.Host, Remote: r.RemoteAddr, Protocol: r.Proto, Headers: r.Header,
	})
}

func answerStatus(w http.ResponseWriter, code int) {
	w.WriteHeader(code)
	_, _ = w.Write([]byte(http.StatusText(code) + "\n"))
}
