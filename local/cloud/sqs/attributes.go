package sqs

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/policy"
)

// limit is a numeric attribute: its range and default.
type limit struct{ least, most, standard int }

// maxMessage is the largest message, in bytes (1 MiB since 2025).
const maxMessage = 1 << 20

var limits = map[string]limit{
	"DelaySeconds":                  {0, 900, 0},
	"MaximumMessageSize":            {1024, maxMessage, maxMessage},
	"MessageRetentionPeriod":        {60, 1209600, 345600},
	"ReceiveMessageWaitTimeSeconds": {0, 20, 0},
	"VisibilityTimeout":             {0, 43200, 30},
	"KmsDataKeyReusePeriodSeconds":  {60, 86400, 300},
}

// otherAttributes are settable and not numbers.
var otherAttributes = []string{"Policy", "RedrivePolicy", "RedriveAllowPolicy", "KmsMasterKeyId", "SqsManagedSseEnabled"}

func (q *queue) number(name string) int {
	if n, err := strconv.Atoi(q.attr[name]); err == nil {
		return n
	}
	return limits[name].standard
}

func (q *queue) seconds(name string) time.Duration {
	return time.Duration(q.number(name)) * time.Second
}

// redrive is the RedrivePolicy; its count may be text or a number.
type redrive struct {
	Target string      `json:"deadLetterTargetArn"`
	Max    json.Number `json:"maxReceiveCount"`
}

func (q *queue) redrive() (target string, most int) {
	var r redrive
	if json.Unmarshal([]byte(q.attr["RedrivePolicy"]), &r) != nil {
		return "", 0
	}
	n, _ := strconv.Atoi(r.Max.String()) // checked when it was set
	return r.Target, n
}

// checkAttributes says what is wrong with attributes for a queue in scope.
// The caller holds s.mu.
func (s *Service) checkAttributes(scope core.Scope, attr map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(attr)) {
		value := attr[name]
		l, numeric := limits[name]
		switch {
		case numeric:
			if n, err := strconv.Atoi(value); err != nil || n < l.least || n > l.most {
				return apiError("InvalidAttributeValue", "InvalidAttributeValue", "Invalid value for the parameter "+name+".")
			}
		case name == "FifoQueue" || name == "ContentBasedDeduplication":
			return apiError("InvalidAttributeValue", "InvalidAttributeValue", name+": the local cloud has standard queues only")
		case !slices.Contains(otherAttributes, name):
			return apiError("InvalidAttributeName", "InvalidAttributeName", "Unknown Attribute "+name+".")
		case name == "Policy":
			if _, err := policy.Parse(value); err != nil {
				return apiError("InvalidAttributeValue", "InvalidAttributeValue", "Invalid value for the parameter Policy. "+err.Error())
			}
		case name == "RedrivePolicy" && value != "":
			if err := s.checkRedrive(scope, value); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Service) checkRedrive(scope core.Scope, value string) error {
	bad := func(reason string) error {
		return invalidParameter(fmt.Sprintf("Value %s for parameter RedrivePolicy is invalid. Reason: %s.", value, reason))
	}
	var r redrive
	if err := json.Unmarshal([]byte(value), &r); err != nil {
		return bad("Redrive policy is not a valid JSON map")
	}
	if n, err := strconv.Atoi(r.Max.String()); err != nil || n < 1 || n > 1000 {
		return bad("Redrive policy must have maxReceiveCount between 1 and 1000")
	}
	target := s.findARN(r.Target)
	if target == nil || target.id.Scope != scope {
		return bad("Dead letter target does not exist")
	}
	return nil
}

// apply sets attributes that have been checked; an empty value removes one.
func (q *queue) apply(attr map[string]string, now time.Time) {
	for name, value := range attr {
		if value == "" {
			delete(q.attr, name)
		} else {
			q.attr[name] = value
		}
	}
	q.rules, _ = policy.Parse(q.attr["Policy"]) // checked by checkAttributes
	q.changed = now
	q.signal()
}

// attributes returns what GetQueueAttributes shows.
func (q *queue) attributes(now time.Time) map[string]string {
	out := maps.Clone(q.attr)
	for name := range limits {
		if name != "KmsDataKeyReusePeriodSeconds" || q.attr["KmsMasterKeyId"] != "" {
			out[name] = strconv.Itoa(q.number(name))
		}
	}
	if out["SqsManagedSseEnabled"] == "" {
		out["SqsManagedSseEnabled"] = strconv.FormatBool(q.attr["KmsMasterKeyId"] == "")
	}
	ready, inFlight, delayed := q.counts(now)
	out["QueueArn"] = q.id.arn()
	out["ApproximateNumberOfMessages"] = strconv.Itoa(ready)
	out["ApproximateNumberOfMessagesNotVisible"] = strconv.Itoa(inFlight)
	out["ApproximateNumberOfMessagesDelayed"] = strconv.Itoa(delayed)
	out["CreatedTimestamp"] = strconv.FormatInt(q.created.Unix(), 10)
	out["LastModifiedTimestamp"] = strconv.FormatInt(q.changed.Unix(), 10)
	return out
}

func knownAttribute(name string) bool {
	_, numeric := limits[name]
	return numeric || name == "All" || slices.Contains(otherAttributes, name) ||
		name == "QueueArn" || name == "CreatedTimestamp" || name == "LastModifiedTimestamp" || strings.HasPrefix(name, "ApproximateNumberOfMessages")
}
