package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/elbridge/elbridge/pkg/podevent"
)

const (
	readTimeout = 2 * time.Second
	maxPodBytes = 3 << 20 // the API server's own limit of a body
)

// podReader reads pods with plain HTTP and the service account's token: a
// Kubernetes client would take more memory than everything else here.
type podReader struct {
	server    string // URL
	tokenFile string // read for each request, as the kubelet renews it
	caFile    string // "" for the system's roots
	allow     podevent.AllowList

	mu     sync.Mutex
	ca     []byte
	client *http.Client
}

// NewPodReader returns a reader for the API server at a URL. The files are read
// when they are needed, so that renewed ones are used.
func NewPodReader(server, tokenFile, caFile string, allow podevent.AllowList) PodReader {
	return &podReader{server: strings.TrimRight(server, "/"), tokenFile: tokenFile, caFile: caFile, allow: allow}
}

// Pod reads one pod. Without a resourceVersion the read is a quorum read.
func (r *podReader) Pod(ctx context.Context, namespace, name string) (*podevent.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	what := "reading pod " + namespace + "/" + name
	body, err := r.get(ctx, "/api/v1/namespaces/"+url.PathEscape(namespace)+"/pods/"+url.PathEscape(name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	pod, err := DecodePod(body, r.allow)
	if err != nil {
		return nil, fmt.Errorf("%s: answer not understood: %w", what, err)
	}
	return pod, nil
}

func (r *podReader) get(ctx context.Context, path string) ([]byte, error) {
	client, err := r.current()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.server+path, nil)
	if err != nil {
		return nil, err
	}
	if r.tokenFile != "" {
		token, err := os.ReadFile(r.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("service account token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+string(bytes.TrimSpace(token)))
	}
	req.Header.Set("Accept", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxPodBytes))
	switch {
	case err != nil:
		return nil, err
	case res.StatusCode == http.StatusNotFound:
		return nil, ErrPodGone
	case res.StatusCode == http.StatusForbidden, res.StatusCode == http.StatusUnauthorized:
		return nil, fmt.Errorf("%s: let the webhook's service account get pods", res.Status)
	case res.StatusCode != http.StatusOK:
		return nil, errors.New(res.Status)
	}
	return body, nil
}

// current returns a client that trusts the CA as it is on disk now.
func (r *podReader) current() (*http.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ca []byte
	if r.caFile != "" {
		var err error
		if ca, err = os.ReadFile(r.caFile); err != nil {
			return nil, fmt.Errorf("CA of the API server: %w", err)
		}
	}
	if r.client != nil && bytes.Equal(ca, r.ca) {
		return r.client, nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != nil {
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("CA of the API server: %s: want PEM certificates", r.caFile)
		}
	}
	if r.client != nil {
		r.client.CloseIdleConnections()
	}
	r.ca = ca
	r.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig:     conf,
		TLSHandshakeTimeout: readTimeout,
		MaxIdleConns:        2,
		MaxConnsPerHost:     maxReads,
		IdleConnTimeout:     time.Minute,
	}}
	return r.client, nil
}
