// Package settings reads the environment of a function, so that an operator sees
// every fault at once and not one a deploy. It reads no environment itself: the
// caller says how.
package settings

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Env reads variables and collects what is wrong with them.
type Env struct {
	lookup func(string) (string, bool)
	faults []error
}

// New returns a reader over lookup, such as os.LookupEnv.
func New(lookup func(string) (string, bool)) *Env { return &Env{lookup: lookup} }

// Err joins what was found wrong, or is nil.
func (e *Env) Err() error { return errors.Join(e.faults...) }

// Fault notes what is wrong with a variable.
func (e *Env) Fault(name, what string) {
	e.faults = append(e.faults, fmt.Errorf("%s: %s", name, what))
}

// Optional returns a variable, or fallback where it is unset or empty.
func (e *Env) Optional(name, fallback string) string {
	if v, ok := e.lookup(name); ok && v != "" {
		return v
	}
	return fallback
}

// Required returns a variable, or notes that it is missing.
func (e *Env) Required(name string) string {
	v := e.Optional(name, "")
	if v == "" {
		e.Fault(name, "missing")
	}
	return v
}

// Matching returns a required variable of the form re; want says in words what it is.
func (e *Env) Matching(name string, re *regexp.Regexp, want string) string {
	v := e.Required(name)
	if v != "" && !re.MatchString(v) {
		e.Fault(name, fmt.Sprintf("%q: want %s", v, want))
	}
	return v
}

// URL returns a required queue's URL.
func (e *Env) URL(name string) string {
	e.Required(name)
	return e.OptionalURL(name)
}

// OptionalURL returns a queue's URL, or "".
func (e *Env) OptionalURL(name string) string {
	v := e.Optional(name, "")
	if u, err := url.Parse(v); v != "" && (err != nil || u.Host == "" || !strings.HasPrefix(u.Scheme, "http")) {
		e.Fault(name, fmt.Sprintf("%q: want the queue's URL", v))
	}
	return v
}

// OneOf returns one of the values, the first of which is the default.
func (e *Env) OneOf(name string, values ...string) string {
	v := e.Optional(name, values[0])
	if slices.Contains(values, v) {
		return v
	}
	e.Fault(name, fmt.Sprintf("%q: want %s", v, strings.Join(values, " or ")))
	return values[0]
}

// Duration returns a duration of 0 or more.
func (e *Env) Duration(name string, fallback time.Duration) time.Duration {
	v := e.Optional(name, fallback.String())
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 {
		e.Fault(name, fmt.Sprintf("%q: want a duration such as %s", v, fallback))
	}
	return d
}

// Number returns a number of 0 or more.
func (e *Env) Number(name string, fallback float64) float64 {
	v := e.Optional(name, strconv.FormatFloat(fallback, 'g', -1, 64))
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || n < 0 {
		e.Fault(name, fmt.Sprintf("%q: want a number, 0 or more", v))
	}
	return n
}
