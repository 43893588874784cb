package core

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// maxBody bounds a request, in bytes. The largest that any service takes is
// 1 MiB, in base64 or JSON escapes at worst six times that.
const maxBody = 8 << 20

// Server is the one door of the local cloud.
type Server struct {
	Clock      Clock
	Principals *Principals
	Faults     *Faults
	Recorder   *Recorder
	Log        *slog.Logger

	wall  Clock // dates of signatures
	local *http.ServeMux
	mu    sync.RWMutex
	byKey map[string]Service
}

// Options are the parts a Server is made of; each has a default.
type Options struct {
	Clock Clock // of the services; default the machine's
	// SignatureClock judges the dates of signatures, which clients take from
	// their own clocks; default the machine's.
	SignatureClock Clock
	Principals     []Principal
	Seed           uint64 // of the faults' choices
	Records        int    // calls kept; default 20000
	Log            *slog.Logger
}

// NewServer returns a server without services.
func NewServer(o Options) (*Server, error) {
	if o.Clock == nil {
		o.Clock = RealClock{}
	}
	if o.SignatureClock == nil {
		o.SignatureClock = RealClock{}
	}
	if o.Records <= 0 {
		o.Records = 20000
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	principals, err := NewPrincipals(o.Principals...)
	if err != nil {
		return nil, err
	}
	s := &Server{Clock: o.Clock, Principals: principals, Faults: NewFaults(o.Clock, o.Seed), Recorder: NewRecorder(o.Records),
		Log: o.Log, wall: o.SignatureClock, local: http.NewServeMux(), byKey: map[string]Service{}}
	s.routeControl()
	return s, nil
}

// Register plugs a service in under its signing name ("elasticloadbalancing").
func (s *Server) Register(service string, impl Service) error {
	if _, ok := wires[service]; !ok {
		return fmt.Errorf("service %q: the core does not know its protocol", service)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byKey[service] = impl
	return nil
}

// HandleLocal adds a control route; pattern is one of http.ServeMux, its path
// under /_local/.
func (s *Server) HandleLocal(pattern string, h http.Handler) { s.local.Handle(pattern, h) }

func (s *Server) services() map[string]Service {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.byKey)
}

func (s *Server) service(name string) Service {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byKey[name]
}

// ServeHTTP answers AWS calls, and the control API under /_local/.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/_local/") {
		s.local.ServeHTTP(w, r)
		return
	}
	start := time.Now()
	call := &Call{RequestID: newID(), Time: s.Clock.Now(), HTTP: r, Host: "http://" + r.Host}
	a, err := s.answer(w, r, call)
	s.record(call, a, err, time.Since(start))
	if errors.Is(err, errCut) {
		panic(http.ErrAbortHandler) // the connection ends without an answer
	}
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("X-Amzn-RequestId", call.RequestID)
	for k, v := range a.header {
		h.Set(k, v)
	}
	w.WriteHeader(a.status)
	if _, err := w.Write(a.body); err != nil {
		s.Log.Debug("client went away", "operation", call.Operation, "err", err)
	}
}

// statusClientGone is what records show of calls that nobody waited for.
const statusClientGone = 499

// errCut means: send nothing and close the connection.
var errCut = errors.New("connection cut by a fault")

// answer performs the call that r asks for. Beside an answer it returns the
// error that the answer tells of.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, call *Call) (answer, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		e := &Error{Code: "RequestEntityTooLarge", Message: err.Error(), Status: http.StatusRequestEntityTooLarge}
		return renderError("", call.RequestID, e), e
	}
	to, routeErr := s.routeOf(r, body)
	call.Service, call.Operation = to.service, to.operation
	result, err := s.perform(r, call, to, body, routeErr)
	if errors.Is(err, errCut) {
		return answer{}, err
	}
	if err == nil {
		var a answer
		if a, err = render(call, result); err == nil {
			return a, nil
		}
	}
	e := asError(err)
	return renderError(call.Service, call.RequestID, e), e
}

func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if errors.Is(err, context.Canceled) {
		return &Error{Code: "ClientGone", Message: "the client did not wait for the answer", Status: statusClientGone}
	}
	return &Error{Code: "InternalFailure", Message: err.Error(), Status: http.StatusInternalServerError}
}

func (s *Server) perform(r *http.Request, call *Call, to route, body []byte, routeErr *Error) (any, error) {
	if routeErr != nil {
		return nil, routeErr
	}
	service := s.service(to.service)
	if service == nil {
		return nil, Errorf("UnknownOperationException", "the local cloud has no service %q", to.service)
	}
	sig, who, err := s.authenticate(r, body, to.service)
	if err != nil {
		return nil, err
	}
	call.Principal = who
	call.Scope = Scope{Account: who.Account, Region: sig.region}
	call.Params, call.Body = Params(to.form), body
	call.params = string(body)
	if to.form != nil {
		call.params = withoutSignature(to.form).Encode()
	} else if len(body) == 0 {
		call.params = r.URL.RequestURI()
	}
	return s.suffer(r.Context(), call, service.ServeAWS)
}

// withoutSignature is a form without what presigning adds: records hold
// nothing that lets somebody else sign in.
func withoutSignature(form url.Values) url.Values {
	out := maps.Clone(form)
	maps.DeleteFunc(out, func(name string, _ []string) bool { return strings.HasPrefix(strings.ToLower(name), "x-amz-") })
	return out
}

// suffer runs one call through the faults in force.
func (s *Server) suffer(ctx context.Context, call *Call, do func(context.Context, *Call) (any, error)) (any, error) {
	v := s.Consult(call)
	if v.Delay > 0 {
		if err := s.sleep(ctx, v.Delay); err != nil {
			return nil, err
		}
	}
	switch {
	case v.LostRequest:
		return nil, errCut
	case v.Err != nil:
		return nil, v.Err
	}
	result, err := do(ctx, call)
	if v.LostAnswer {
		return nil, errCut
	}
	return result, err
}

// Verdict is what the faults in force do to one call.
type Verdict struct {
	Delay       time.Duration // before it is performed
	LostRequest bool          // it is not performed, and nobody is told
	Err         *Error        // it is refused
	LostAnswer  bool          // it is performed, and nobody is told
	Duplicate   bool          // it is performed twice
}

// Consult asks the faults about a call and counts it against them. Calls from
// outside have been through it; services use it for what they do on their own
// account, such as deliveries, and Note the outcome.
func (s *Server) Consult(call *Call) Verdict {
	call.faults = s.Faults.hit(call)
	var v Verdict
	for _, f := range call.faults {
		switch f.Kind {
		case FaultDelay:
			v.Delay += time.Duration(f.Delay)
		case FaultLostRequest:
			v.LostRequest = true
		case FaultThrottle, FaultError:
			v.Err = f.error()
		case FaultLostAnswer:
			v.LostAnswer = true
		case FaultDuplicate:
			v.Duplicate = true
		}
	}
	return v
}

// NewInternal returns a call that a service makes on its own account; params
// is what records show of it.
func (s *Server) NewInternal(scope Scope, service, operation, principal, params string) *Call {
	return &Call{Scope: scope, Service: service, Operation: operation, RequestID: newID(), Time: s.Clock.Now(),
		Principal: Principal{ARN: principal, Account: scope.Account}, params: params}
}

// Note records the outcome of an internal call.
func (s *Server) Note(call *Call, err error) {
	a := answer{status: http.StatusOK}
	if err != nil {
		a.status = asError(err).status()
	}
	s.record(call, a, err, s.Clock.Now().Sub(call.Time))
}

func (s *Server) sleep(ctx context.Context, d time.Duration) error {
	c, stop := s.Clock.After(d)
	defer stop()
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Server) record(call *Call, a answer, err error, took time.Duration) {
	rec := Record{Time: call.Time, Service: call.Service, Operation: call.Operation, Account: call.Account, Region: call.Region,
		Principal: call.Principal.ARN, RequestID: call.RequestID, Params: call.params, Status: a.status, Seconds: took.Seconds()}
	if err != nil {
		e := asError(err)
		rec.Code, rec.Message = e.Code, e.Message
	}
	rec.Fault = call.faultNames()
	s.Recorder.Add(rec)
}

func (c *Call) faultNames() string {
	var names []string
	for _, f := range c.faults {
		names = append(names, string(f.Kind))
	}
	return strings.Join(names, ",")
}

// newID returns an id of the form that AWS gives requests and messages.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// NewID returns a random id in the form of a UUID.
func NewID() string { return newID() }

// readSmall reads the document of a control request.
func readSmall(r io.Reader) ([]byte, error) {
	var b bytes.Buffer
	_, err := b.ReadFrom(io.LimitReader(r, 1<<20))
	return b.Bytes(), err
}
