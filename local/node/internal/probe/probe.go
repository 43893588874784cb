// Package probe decides and carries out the probes of containers as a kubelet
// does: thresholds in a pure counter, one fresh connection for each probe.
package probe

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/elbridge/elbridge/local/vpc"
)

// Counter turns single results into a verdict that changes only after a number
// of results in a row.
type Counter struct {
	verdict  bool
	last     bool
	run      int32
	success  int32
	failures int32
}

// NewCounter begins with a verdict: false for readiness and startup, true for
// liveness. Thresholds of 0 are the defaults, 1 success and 3 failures.
func NewCounter(verdict bool, p *v1.Probe) *Counter {
	c := &Counter{verdict: verdict, success: p.SuccessThreshold, failures: p.FailureThreshold}
	if c.success < 1 {
		c.success = 1
	}
	if c.failures < 1 {
		c.failures = 3
	}
	return c
}

// Add counts one result and returns the verdict, and whether this result made
// it: a run has just reached its threshold.
func (c *Counter) Add(ok bool) (verdict, reached bool) {
	if ok != c.last {
		c.run = 0
	}
	c.last = ok
	c.run++
	threshold := c.failures
	if ok {
		threshold = c.success
	}
	if c.run >= threshold {
		reached = c.run == threshold
		c.verdict = ok
	}
	return c.verdict, reached
}

// Loop probes until ctx ends: after the initial delay, then once a period. report
// is called with each verdict.
func Loop(ctx context.Context, p *v1.Probe, c *Counter, once func(context.Context) error, report func(verdict, reached bool, err error)) {
	delay := time.Duration(p.InitialDelaySeconds) * time.Second
	t := time.NewTimer(delay)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		t.Reset(seconds(p.PeriodSeconds, 10))
		probeCtx, cancel := context.WithTimeout(ctx, seconds(p.TimeoutSeconds, 1))
		err := once(probeCtx)
		cancel()
		if ctx.Err() != nil {
			return
		}
		verdict, reached := c.Add(err == nil)
		report(verdict, reached, err)
	}
}

func seconds(n int32, otherwise int32) time.Duration {
	if n < 1 {
		n = otherwise
	}
	return time.Duration(n) * time.Second
}

// Once carries out the probe of a container whose pod publishes ip. Commands
// always succeed, gRPC is a connection.
func Once(ctx context.Context, h v1.ProbeHandler, c *v1.Container, ip string) error {
	switch {
	case h.HTTPGet != nil:
		return Get(ctx, h.HTTPGet, c, ip)
	case h.TCPSocket != nil:
		return connect(ctx, orIP(h.TCPSocket.Host, ip), Port(h.TCPSocket.Port, c))
	case h.GRPC != nil:
		return connect(ctx, ip, int(h.GRPC.Port))
	}
	return nil
}

func connect(ctx context.Context, host string, port int) error {
	conn, err := vpc.Dial(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return conn.Close()
}

// Get asks an HTTP server of a pod; 200 to 399 is success. Also a hook's action.
func Get(ctx context.Context, g *v1.HTTPGetAction, c *v1.Container, ip string) error {
	scheme := strings.ToLower(string(g.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	path, query, _ := strings.Cut(g.Path, "?")
	u := url.URL{Scheme: scheme, Host: net.JoinHostPort(orIP(g.Host, ip), strconv.Itoa(Port(g.Port, c))), Path: path, RawQuery: query}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "kube-probe/1.37")
	req.Header.Set("Accept", "*/*")
	for _, h := range g.HTTPHeaders {
		if http.CanonicalHeaderKey(h.Name) == "Host" {
			req.Host = h.Value
		}
		req.Header.Set(h.Name, h.Value)
	}
	resp, err := client().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 10<<10))
	if resp.StatusCode < 200 || resp.StatusCode > 399 {
		return fmt.Errorf("HTTP probe failed with statuscode: %d", resp.StatusCode)
	}
	return nil
}

func client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:       vpc.Dial,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as kubelets do: pods' certificates are not for their address
			DisableKeepAlives: true,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Hostname() != via[0].URL.Hostname() || len(via) > 10 {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
}

// Port resolves the number or name of a port of a container; 0 if there is none.
func Port(p intstr.IntOrString, c *v1.Container) int {
	if p.Type == intstr.Int {
		return p.IntValue()
	}
	for _, declared := range c.Ports {
		if declared.Name == p.StrVal {
			return int(declared.ContainerPort)
		}
	}
	n, _ := strconv.Atoi(p.StrVal)
	return n
}

func orIP(host, ip string) string {
	if host == "" {
		return ip
	}
	return host
}
