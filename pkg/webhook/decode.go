package webhook

import (
	"errors"

	"github.com/elbridge/elbridge/pkg/podevent"
)

// review is what is used of an AdmissionReview. It holds no part of the body.
type review struct {
	apiVersion, kind string

	uid             string
	group, version  string
	resource        string
	subResource     string
	operation       string
	namespace, name string
	dryRun          bool
	hasRequest      bool
	object          object
	oldObject       object
	options         deleteOptions
}

// object is the union of what is used of a Pod and of an Eviction.
type object struct {
	pod     *podevent.Pod
	options deleteOptions // an Eviction's own
}

// deleteOptions are those of a DELETE, or of an Eviction.
type deleteOptions struct {
	grace  *int64
	uid    string // precondition
	dryRun bool
}

var errNoReview = errors.New("not an AdmissionReview of admission.k8s.io/v1 with a request")

// decodeReview reads an AdmissionReview. Unknown fields are skipped.
func decodeReview(body []byte, allow podevent.AllowList) (review, error) {
	s := &scanner{text: body}
	var r review
	s.object(func(key []byte) bool {
		switch string(key) {
		case "apiVersion":
			r.apiVersion = s.str()
		case "kind":
			r.kind = s.str()
		case "request":
			r.hasRequest = s.peek() == '{'
			r.request(s, allow)
		default:
			s.skip()
		}
		return true
	})
	if s.err == nil && s.peek() != 0 {
		s.fail("the end of the review")
	}
	if s.err == nil && (r.kind != "AdmissionReview" || r.apiVersion != "admission.k8s.io/v1" || !r.hasRequest) {
		return review{}, errNoReview
	}
	return r, s.err
}

func (r *review) request(s *scanner, allow podevent.AllowList) {
	s.object(func(key []byte) bool {
		switch string(key) {
		case "uid":
			r.uid = s.str()
		case "resource":
			r.groupVersionResource(s)
		case "subResource":
			r.subResource = s.str()
		case "operation":
			r.operation = s.str()
		case "namespace":
			r.namespace = s.str()
		case "name":
			r.name = s.str()
		case "dryRun":
			r.dryRun = s.boolean()
		case "object":
			r.object = decodeObject(s, allow)
		case "oldObject":
			r.oldObject = decodeObject(s, allow)
		case "options":
			r.options = decodeDeleteOptions(s)
		default:
			s.skip()
		}
		return true
	})
}

func (r *review) groupVersionResource(s *scanner) {
	s.object(func(key []byte) bool {
		switch string(key) {
		case "group":
			r.group = s.str()
		case "version":
			r.version = s.str()
		case "resource":
			r.resource = s.str()
		default:
			s.skip()
		}
		return true
	})
}

// peekUID returns the uid of a review that may be cut off. The API server
// writes it first.
func peekUID(prefix []byte) (uid string) {
	s := &scanner{text: prefix}
	s.object(func(key []byte) bool {
		if string(key) != "request" {
			s.skip()
			return true
		}
		s.object(func(key []byte) bool {
			if string(key) != "uid" {
				s.skip()
				return true
			}
			uid = s.str()
			return false
		})
		return false
	})
	return uid
}

func decodeDeleteOptions(s *scanner) (o deleteOptions) {
	s.object(func(key []byte) bool {
		switch string(key) {
		case "gracePeriodSeconds":
			o.grace = optional(s)
		case "dryRun":
			s.array(func() { o.dryRun = s.is("All") || o.dryRun })
		case "preconditions":
			s.object(func(key []byte) bool {
				if string(key) == "uid" {
					o.uid = s.str()
				} else {
					s.skip()
				}
				return true
			})
		default:
			s.skip()
		}
		return true
	})
	return o
}
