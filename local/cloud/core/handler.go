package core

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// Handler makes an http.Handler that speaks a REST protocol by itself into a
// service: signatures, faults and records apply to it as to the others.
type Handler struct {
	HTTP http.Handler
	// Operations names the operation of a request, empty if there is none.
	Operations func(method, path string) string
}

// Operation implements RESTOperations.
func (h Handler) Operation(method, path string) string { return h.Operations(method, path) }

// ServeAWS implements Service.
func (h Handler) ServeAWS(ctx context.Context, call *Call) (any, error) {
	r := call.HTTP.Clone(ctx)
	r.Body = io.NopCloser(bytes.NewReader(call.Body))
	w := &buffer{header: http.Header{}, status: http.StatusOK}
	h.HTTP.ServeHTTP(w, r)
	raw := Raw{Status: w.status, Header: map[string]string{}, Body: w.body.Bytes()}
	for name := range w.header {
		raw.Header[name] = w.header.Get(name)
	}
	return raw, nil
}

// buffer is a ResponseWriter in memory.
type buffer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (b *buffer) Header() http.Header { return b.header }

// WriteHeader implements http.ResponseWriter.
func (b *buffer) WriteHeader(status int) { b.status = status }

// Write implements http.ResponseWriter.
func (b *buffer) Write(p []byte) (int, error) { return b.body.Write(p) }

// InMemory returns a transport that hands every request to h, whatever host it
// names: nothing is sent anywhere.
func InMemory(h http.Handler) http.RoundTripper { return inMemory{h} }

type inMemory struct{ h http.Handler }

// RoundTrip implements http.RoundTripper.
func (t inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	if r.Host == "" {
		r.Host = r.URL.Host
	}
	w := &buffer{header: http.Header{}, status: http.StatusOK}
	t.h.ServeHTTP(w, r)
	return &http.Response{StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r}, nil
}
