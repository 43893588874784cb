package audit

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Query says which events to read. What is left empty leaves the choice open.
type Query struct {
	From, To    time.Time // both within, by the log's time, which has seconds
	DetailTypes []string  // any of them

	TargetGroup string // ARN that the event names
	Address     string // IP or instance id that the event names
	Request     string // id of an operator's request
	RunID       string // of a resync run

	Limit int // the newest so many
}

// ErrQuery is a query that can't be asked: a value has characters that no such
// value has, and that would change the meaning of the filter.
var ErrQuery = errors.New("not a query of the audit log")

// maxPattern is the longest filter pattern, in characters (API model).
const maxPattern = 1024

// check returns the query with its address as the events write it.
func (q Query) check() (Query, error) {
	if ip, err := netip.ParseAddr(q.Address); err == nil {
		q.Address = ip.Unmap().String()
	}
	values := map[string]string{"target group": q.TargetGroup, "address": q.Address, "request": q.Request, "run id": q.RunID}
	for _, d := range q.DetailTypes {
		if values["detail-type"] = d; d == "" || !harmless(d) {
			break
		}
	}
	for what, value := range values {
		if !harmless(value) || what == "detail-type" && value == "" {
			return q, fmt.Errorf("%w: %s %q: want letters, digits, spaces and %s", ErrQuery, what, value, punctuation)
		}
	}
	switch {
	case q.Limit < 0:
		return q, fmt.Errorf("%w: limit %d: want 0, or how many events", ErrQuery, q.Limit)
	case !q.From.IsZero() && !q.To.IsZero() && q.To.Before(q.From):
		return q, fmt.Errorf("%w: it ends at %v, before it begins at %v", ErrQuery, q.To, q.From)
	}
	return q, nil
}

// punctuation is what ARNs, addresses, ids and detail-types have beside letters
// and digits. Quotes, backslashes, braces, % and the wildcard * are not in it.
const punctuation = ".:/-_=+@,#"

func harmless(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool {
		return r != ' ' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune(punctuation, r)
	})
}

// pattern is the filter pattern that narrows the reading; keeps has the last
// word. Targets and groups are named in lists of any length, and the selectors
// of JSON patterns know only places in a list: what is asked of them is asked as
// text that the line has to contain. Terms can't be joined by "or", so that of
// several detail-types nothing is said then.
func (q Query) pattern() string {
	if q.Address == "" && q.TargetGroup == "" {
		return q.selectors()
	}
	var terms []string
	for _, value := range []string{q.Address, q.TargetGroup, q.Request, q.RunID} {
		if value != "" {
			terms = append(terms, `"`+value+`"`)
		}
	}
	if len(q.DetailTypes) == 1 {
		terms = append(terms, `"`+q.DetailTypes[0]+`"`)
	}
	return fits(strings.Join(terms, " "))
}

func (q Query) selectors() string {
	var all []string
	either := func(value string, paths ...string) {
		var some []string
		for _, path := range paths {
			some = append(some, path+` = "`+value+`"`)
		}
		if value != "" {
			all = append(all, "("+strings.Join(some, " || ")+")")
		}
	}
	either(q.Request, "$.detail.request.id", "$.detail.cause.request")
	either(q.RunID, "$.detail.runId", "$.detail.cause.runId")
	var types []string
	for _, d := range q.DetailTypes {
		types = append(types, `$.detail-type = "`+d+`"`)
	}
	if len(types) > 0 {
		all = append(all, "("+strings.Join(types, " || ")+")")
	}
	if len(all) == 0 {
		return ""
	}
	return fits("{ " + strings.Join(all, " && ") + " }")
}

// fits is a pattern that the API takes; instead of one that is too long
// everything is read.
func fits(pattern string) string {
	if len(pattern) > maxPattern {
		return ""
	}
	return pattern
}

// keeps says whether an event is one that was asked for: the filter also lets
// through what only contains a value, as 10.0.0.12 contains 10.0.0.1.
func (q Query) keeps(e Event) bool {
	if len(q.DetailTypes) > 0 && !slices.Contains(q.DetailTypes, e.DetailType) {
		return false
	}
	var asked []string
	for _, value := range []string{q.Address, q.TargetGroup, q.Request, q.RunID} {
		if value != "" {
			asked = append(asked, value)
		}
	}
	return e.names(asked)
}
