package core

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// FaultKind is a way to fail.
type FaultKind string

// The kinds of faults.
const (
	FaultThrottle    FaultKind = "throttle"     // refused with the service's throttling error
	FaultError       FaultKind = "error"        // refused with Code, Message and Status
	FaultDelay       FaultKind = "delay"        // performed after Delay
	FaultLostRequest FaultKind = "lost-request" // not performed, the connection is cut
	FaultLostAnswer  FaultKind = "lost-answer"  // performed, then the connection is cut
	FaultPartial     FaultKind = "partial"      // some entries of a batch fail with Code
	FaultDuplicate   FaultKind = "duplicate"    // deliveries only: made twice
)

var faultKinds = []FaultKind{FaultThrottle, FaultError, FaultDelay, FaultLostRequest, FaultLostAnswer, FaultPartial, FaultDuplicate}

// Duration is a time.Duration that JSON writes as "1m30s".
type Duration time.Duration

// MarshalJSON writes the duration as text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads "250ms", or a number of seconds.
func (d *Duration) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), `"`)
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		*d = Duration(seconds * float64(time.Second))
		return nil
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("duration %s: want text such as \"250ms\"", b)
	}
	*d = Duration(v)
	return nil
}

// Fault makes the calls that it matches fail. Empty fields match everything.
// The deliveries of event rules are calls too: service "events", operation
// "Deliver".
type Fault struct {
	ID        string `json:"id,omitempty"` // chosen by the cloud if empty
	Service   string `json:"service,omitempty"`
	Operation string `json:"operation,omitempty"` // may end with *
	Account   string `json:"account,omitempty"`
	Region    string `json:"region,omitempty"`
	Principal string `json:"principal,omitempty"` // part of the ARN
	Contains  string `json:"contains,omitempty"`  // part of the request's parameters

	Kind    FaultKind `json:"kind"`
	Code    string    `json:"code,omitempty"`
	Message string    `json:"message,omitempty"`
	Status  int       `json:"status,omitempty"`
	Delay   Duration  `json:"delay,omitempty"`

	Rate  float64  `json:"rate,omitempty"`  // share of the calls (partial: of the entries), 0..1; 0 means all (partial: every second)
	Times int      `json:"times,omitempty"` // ends after so many calls; 0 means never
	For   Duration `json:"for,omitempty"`   // ends after so long; 0 means never

	until time.Time
}

// Validate says what is wrong with f.
func (f Fault) Validate() error {
	switch {
	case !slices.Contains(faultKinds, f.Kind):
		return fmt.Errorf("fault kind %q: want one of %v", f.Kind, faultKinds)
	case f.Rate < 0 || f.Rate > 1:
		return fmt.Errorf("fault rate %v: want 0 to 1", f.Rate)
	case f.Times < 0 || f.For < 0 || f.Delay < 0:
		return fmt.Errorf("fault times %d, for %v, delay %v: want none of them negative", f.Times, time.Duration(f.For), time.Duration(f.Delay))
	case f.Kind == FaultDelay && f.Delay == 0:
		return fmt.Errorf("fault kind delay: want a delay such as \"250ms\"")
	case f.Status != 0 && (f.Status < 400 || f.Status > 599):
		return fmt.Errorf("fault status %d: want 400 to 599", f.Status)
	}
	return nil
}

func (f Fault) matches(c *Call) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	operation := is(f.Operation, c.Operation)
	if prefix, ok := strings.CutSuffix(f.Operation, "*"); ok {
		operation = strings.HasPrefix(c.Operation, prefix)
	}
	return operation && is(f.Service, c.Service) && is(f.Account, c.Account) && is(f.Region, c.Region) &&
		strings.Contains(c.Principal.ARN, f.Principal) && strings.Contains(c.params, f.Contains)
}

// activeFault is a fault that hit one call.
type activeFault struct {
	Fault
	service string
	seed    uint64
}

// hits says whether entry i of a batch fails; the same answer each time.
func (f activeFault) hits(i int) bool {
	if f.Rate == 0 {
		return i%2 == 1
	}
	return rand.New(rand.NewPCG(f.seed, uint64(i))).Float64() < f.Rate
}

func (f activeFault) error() *Error {
	e := &Error{Code: f.Code, Message: f.Message, Status: f.Status}
	if f.Kind == FaultThrottle {
		*e = throttling(f.service)
	}
	if f.Code != "" {
		e.Code, e.QueryCode = f.Code, ""
	}
	if e.Code == "" {
		e.Code, e.Status = "InternalFailure", http.StatusInternalServerError
	}
	if f.Status != 0 {
		e.Status = f.Status
	}
	if f.Message != "" {
		e.Message = f.Message
	}
	if e.Message == "" {
		e.Message = "asked for by a fault"
	}
	return e
}

// throttling is the error that a service gives when a rate is exceeded.
func throttling(service string) Error {
	switch service {
	case "elasticloadbalancing", "sts":
		return Error{Code: "Throttling", Message: "Rate exceeded", Status: http.StatusBadRequest}
	case "sqs":
		return Error{Code: "RequestThrottled", QueryCode: "RequestThrottled", Message: "Rate exceeded", Status: http.StatusBadRequest}
	case "eks", "lambda":
		return Error{Code: "TooManyRequestsException", Message: "Rate exceeded", Status: http.StatusTooManyRequests}
	}
	return Error{Code: "ThrottlingException", Message: "Rate exceeded", Status: http.StatusBadRequest}
}

// Faults holds the faults in force.
type Faults struct {
	clock Clock
	mu    sync.Mutex
	all   []*Fault
	next  int
	rand  *rand.Rand
}

// NewFaults returns an empty set whose choices follow from seed.
func NewFaults(clock Clock, seed uint64) *Faults {
	return &Faults{clock: clock, rand: rand.New(rand.NewPCG(seed, 0))}
}

// Add puts a fault in force and returns its id.
func (fs *Faults) Add(f Fault) (string, error) {
	if err := f.Validate(); err != nil {
		return "", err
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.ID == "" {
		fs.next++
		f.ID = "f" + strconv.Itoa(fs.next)
	}
	if f.For > 0 {
		f.until = fs.clock.Now().Add(time.Duration(f.For))
	}
	fs.all = append(slices.DeleteFunc(fs.all, func(o *Fault) bool { return o.ID == f.ID }), &f)
	return f.ID, nil
}

// Remove ends a fault; it says whether there was one.
func (fs *Faults) Remove(id string) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	before := len(fs.all)
	fs.all = slices.DeleteFunc(fs.all, func(f *Fault) bool { return f.ID == id })
	return len(fs.all) < before
}

// Clear ends all faults.
func (fs *Faults) Clear() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.all = nil
}

// List returns the faults in force.
func (fs *Faults) List() []Fault {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	out := make([]Fault, 0, len(fs.all))
	for _, f := range fs.all {
		out = append(out, *f)
	}
	return out
}

// hit returns the faults that this call shall suffer, and counts them.
func (fs *Faults) hit(c *Call) []activeFault {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if len(fs.all) == 0 {
		return nil
	}
	now := fs.clock.Now()
	var out []activeFault
	fs.all = slices.DeleteFunc(fs.all, func(f *Fault) bool {
		if !f.until.IsZero() && now.After(f.until) {
			return true
		}
		if !f.matches(c) || f.Kind != FaultPartial && f.Rate > 0 && fs.rand.Float64() >= f.Rate {
			return false
		}
		out = append(out, activeFault{Fault: *f, service: c.Service, seed: fs.rand.Uint64()})
		if f.Times == 0 {
			return false
		}
		f.Times--
		return f.Times == 0
	})
	return out
}
