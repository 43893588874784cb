package targetgroup

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
)

// The classes of an ELBv2 error. errors.Is asks for them; the SDK's own error
// stays in the chain for the log.
var (
	// ErrNotFound: the group does not exist. Nothing will change that but its owner.
	ErrNotFound = errors.New("target group not found")
	// ErrInvalidTarget: this very target can't be in this group.
	ErrInvalidTarget = errors.New("target refused")
	// ErrQuota: the group or its load balancer is full; removals may make room.
	ErrQuota = errors.New("target quota reached")
	// ErrThrottled: the account's rate is used up. A delay, not a failure (I6).
	ErrThrottled = errors.New("throttled")
	// ErrDenied: our role may not do this.
	ErrDenied = errors.New("access denied")
	// ErrUnavailable: ELB can't answer now, HealthUnavailable included. Never "empty".
	ErrUnavailable = errors.New("service unavailable")
)

// classes maps error codes to classes. Codes and meanings: the ELBv2 API's
// common and modelled errors. Throttling has many names, which the SDK knows.
var classes = map[string]error{
	"TargetGroupNotFound":             ErrNotFound,
	"InvalidTarget":                   ErrInvalidTarget,
	"ValidationError":                 ErrInvalidTarget,
	"TooManyRegistrationsForTargetId": ErrInvalidTarget,
	"TooManyTargets":                  ErrQuota,
	"AccessDenied":                    ErrDenied,
	"AccessDeniedException":           ErrDenied,
	"UnauthorizedOperation":           ErrDenied,
	"InvalidClientTokenId":            ErrDenied,
	"SignatureDoesNotMatch":           ErrDenied,
	"ExpiredToken":                    ErrDenied,
	"ExpiredTokenException":           ErrDenied,
	"UnrecognizedClientException":     ErrDenied,
	"MissingAuthenticationToken":      ErrDenied,
	"IncompleteSignature":             ErrDenied,
	"NotAuthorized":                   ErrDenied,
	"AuthFailure":                     ErrDenied,
	"HealthUnavailable":               ErrUnavailable,
}

// classify wraps err with its class and what was being done. An error that has
// no class of its own is ErrUnavailable: trying again is what is left.
func classify(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w: %w", doing, class(err), err)
}

func class(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ErrUnavailable
	}
	if _, throttled := retry.DefaultThrottleErrorCodes[api.ErrorCode()]; throttled {
		return ErrThrottled
	}
	if c, known := classes[api.ErrorCode()]; known {
		return c
	}
	return ErrUnavailable
}

// wantsZone reports whether err is ELB's request for a zone, as for an address
// outside the group's VPC (P013). There is no code for it, and the words differ:
// "You must specify an Availability Zone", "You must specify a valid Availability
// Zone or select 'all'", "The Availability Zone is required for IP address".
func wantsZone(err error) bool {
	text := zoneRefusal(err)
	return strings.Contains(text, "must specify") || strings.Contains(text, "is required")
}

// aboutZone reports whether err is about the zone, be it one that is missing or
// one that an address inside the VPC can't have.
func aboutZone(err error) bool { return zoneRefusal(err) != "" }

// zoneRefusal is the text, in lower case, of a refusal that names zones.
func zoneRefusal(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != "ValidationError" {
		return ""
	}
	if text := strings.ToLower(api.ErrorMessage()); strings.Contains(text, "availability zone") {
		return text
	}
	return ""
}
