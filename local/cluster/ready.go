package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	readyPolling = 50 * time.Millisecond
	askTimeout   = 5 * time.Second
)

// awaitReady waits until a part serves, has ended, or ctx ends.
func (c *Cluster) awaitReady(ctx context.Context, p *process) error {
	ask := c.asker(p.part)
	var last error
	for {
		if last = ask(ctx); last == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.failure()
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w; the end of %s:\n%s", p.part, context.Cause(ctx), last, p.log, tail(p.log, p.logStart))
		case <-time.After(readyPolling):
		}
	}
}

// asker returns what tells whether a part is ready.
func (c *Cluster) asker(part Part) func(context.Context) error {
	switch part {
	case Etcd: // has no client yet: it listens when it has elected itself
		return c.listens
	case APIServer:
		return c.https(part, "/readyz")
	default:
		return c.https(part, "/healthz")
	}
}

func (c *Cluster) listens(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(c.url(Etcd), "https://"))
	if err != nil {
		return err
	}
	return conn.Close()
}

// https asks a path that everybody may read for its "ok".
func (c *Cluster) https(part Part, path string) func(context.Context) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CA)
	client := &http.Client{
		Timeout:   askTimeout,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true},
	}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url(part)+path, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s answers %s: %s", path, resp.Status, body)
		}
		return err
	}
}
