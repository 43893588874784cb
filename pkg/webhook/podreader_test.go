package webhook

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/webhook/webhooktest"
)

func TestPodReader(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	answer := http.StatusOK
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/ingress/pods/web-0" || r.URL.RawQuery != "" {
			t.Errorf("asked for %s, want the pod by a quorum read", r.URL)
		}
		if r.Header.Get("Authorization") != "Bearer second" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(answer)
		_ = json.NewEncoder(w).Encode(webhooktest.Pod{IPs: []string{"10.64.1.7"}, Terminating: true}.JSON())
	}))
	defer server.Close()
	other := newPair(t, noon)
	token, ca := file("token", "first"), file("ca.crt", string(other.cert))
	r := NewPodReader(server.URL+"/", token, ca, podevent.AllowList{})
	read := func() (*podevent.Pod, error) { return r.Pod(t.Context(), "ingress", "web-0") }

	if _, err := read(); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with another CA: %v", err)
	}
	file("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	if _, err := read(); err == nil || !strings.Contains(err.Error(), "let the webhook's service account get pods") {
		t.Errorf("with an old token: %v", err)
	}
	file("token", "second\n")
	pod, err := read()
	if err != nil || pod.UID != "uid-web-0" || !pod.Terminating || pod.PodIP() != "10.64.1.7" {
		t.Errorf("with the renewed files: %+v, %v", pod, err)
	}
	answer = http.StatusNotFound
	if _, err := read(); !errors.Is(err, ErrPodGone) {
		t.Errorf("404: %v, want ErrPodGone", err)
	}
	answer = http.StatusInternalServerError
	if _, err := read(); err == nil || errors.Is(err, ErrPodGone) {
		t.Errorf("500: %v", err)
	}
	for _, path := range []string{token, ca} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := read(); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("without %s: %v, want an error that names it", path, err)
		}
	}
}
