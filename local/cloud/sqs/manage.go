package sqs

import (
	"context"
	"encoding/base64"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
)

var nameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// Times for which SQS refuses to repeat something.
const (
	nameTaken = 60 * time.Second // after DeleteQueue
	purgeRest = 60 * time.Second // after PurgeQueue
)

type urlAnswer struct{ QueueUrl string }

func (s *Service) createQueue(_ context.Context, call *core.Call) (any, error) {
	var in struct {
		QueueName  string
		Attributes map[string]string
		Tags       map[string]string `json:"tags"`
	}
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	if in.QueueName == "" {
		return nil, missingParameter("QueueName")
	}
	if strings.HasSuffix(in.QueueName, ".fifo") {
		return nil, invalidParameter("the local cloud has standard queues only: " + in.QueueName)
	}
	if !nameForm.MatchString(in.QueueName) {
		return nil, invalidParameter("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkAttributes(call.Scope, in.Attributes); err != nil {
		return nil, err
	}
	id := queueID{call.Scope, in.QueueName}
	if q := s.queues[id]; q != nil {
		now := q.attributes(call.Time)
		for name, value := range in.Attributes {
			if now[name] != value {
				return nil, apiError("QueueNameExists", "QueueAlreadyExists", "A queue already exists with the same name and a different value for attribute "+name)
			}
		}
		return urlAnswer{q.url(call)}, nil
	}
	if at, ok := s.deleted[id]; ok && call.Time.Sub(at) < nameTaken {
		return nil, apiError("QueueDeletedRecently", "AWS.SimpleQueueService.QueueDeletedRecently", "You must wait 60 seconds after deleting a queue before you can create another with the same name.")
	}
	delete(s.deleted, id)
	q := newQueue(id, call.Time)
	q.apply(in.Attributes, call.Time)
	maps.Copy(q.tags, in.Tags)
	s.queues[id] = q
	return urlAnswer{q.url(call)}, nil
}

// queueRequest is a request that names one queue and little else.
type queueRequest struct {
	QueueUrl       string
	AttributeNames []string
	Attributes     map[string]string
	Tags           map[string]string
	TagKeys        []string
	MaxResults     *int
	NextToken      string
}

// with decodes a queueRequest and calls do with its queue, under the lock.
func (s *Service) with(call *core.Call, do func(q *queue, in queueRequest) (any, error)) (any, error) {
	var in queueRequest
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(call, in.QueueUrl, call.Operation)
	if err != nil {
		return nil, err
	}
	return do(q, in)
}

func (s *Service) deleteQueue(_ context.Context, call *core.Call) (any, error) {
	return s.with(call, func(q *queue, _ queueRequest) (any, error) {
		delete(s.queues, q.id)
		s.deleted[q.id] = call.Time
		q.signal() // long polls see that it is gone
		return nil, nil
	})
}

func (s *Service) getQueueURL(_ context.Context, call *core.Call) (any, error) {
	var in struct{ QueueName, QueueOwnerAWSAccountId string }
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	if in.QueueOwnerAWSAccountId == "" {
		in.QueueOwnerAWSAccountId = call.Account
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(call, "/"+in.QueueOwnerAWSAccountId+"/"+in.QueueName, "GetQueueUrl")
	if err != nil {
		return nil, err
	}
	return urlAnswer{q.url(call)}, nil
}

func (s *Service) getAttributes(_ context.Context, call *core.Call) (any, error) {
	return s.with(call, func(q *queue, in queueRequest) (any, error) {
		all, out := q.attributes(call.Time), map[string]string{}
		for _, name := range in.AttributeNames {
			if name == "All" {
				return map[string]any{"Attributes": all}, nil
			}
			if !knownAttribute(name) {
				return nil, apiError("InvalidAttributeName", "InvalidAttributeName", "Unknown Attribute "+name+".")
			}
			if value, ok := all[name]; ok {
				out[name] = value
			}
		}
		if len(out) == 0 {
			return nil, nil
		}
		return map[string]any{"Attributes": out}, nil
	})
}

func (s *Service) setAttributes(_ context.Context, call *core.Call) (any, error) {
	return s.with(call, func(q *queue, in queueRequest) (any, error) {
		if len(in.Attributes) == 0 {
			return nil, missingParameter("Attributes")
		}
		if err := s.checkAttributes(q.id.Scope, in.Attributes); err != nil {
			return nil, err
		}
		q.apply(in.Attributes, call.Time)
		return nil, nil
	})
}

func (s *Service) purge(_ context.Context, call *core.Call) (any, error) {
	return s.with(call, func(q *queue, _ queueRequest) (any, error) {
		if !q.purged.IsZero() && call.Time.Sub(q.purged) < purgeRest {
			return nil, &core.Error{Code: "PurgeQueueInProgress", QueryCode: "AWS.SimpleQueueService.PurgeQueueInProgress", Status: http.StatusForbidden,
				Message: "Only one PurgeQueue operation on " + q.id.name + " is allowed every 60 seconds."}
		}
		q.purged = call.Time
		for _, m := range q.byID {
			q.drop(m)
		}
		return nil, nil
	})
}

func (s *Service) tag(_ context.Context, call *core.Call) (any, error) {
	return s.with(call, func(q *queue, in queueRequest) (any, error) {
		maps.Copy(q.tags, in.Tags)
		return nil, nil
	})
}

func (s *Service) untag(_ context.Context, call *core.Call) (any, error) {
	return s.with(call, func(q *queue, in queueRequest) (any, error) {
		for _, key := range in.TagKeys {
			delete(q.tags, key)
		}
		return nil, nil
	})
}

func (s *Service) listTags(_ context.Context, call *core.Call) (any, error) {
	return s.with(call, func(q *queue, _ queueRequest) (any, error) {
		return map[string]any{"Tags": maps.Clone(q.tags)}, nil
	})
}

func (s *Service) listQueues(_ context.Context, call *core.Call) (any, error) {
	var in struct {
		QueueNamePrefix, NextToken string
		MaxResults                 *int
	}
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var urls []string
	for id, q := range s.queues {
		if id.Scope == call.Scope && strings.HasPrefix(id.name, in.QueueNamePrefix) {
			urls = append(urls, q.url(call))
		}
	}
	page, token, err := pageOf(urls, in.MaxResults, in.NextToken)
	return listAnswer{QueueUrls: page, NextToken: token}, err
}

type listAnswer struct {
	QueueUrls []string `json:"QueueUrls,omitempty"`
	Sources   []string `json:"queueUrls,omitempty"` // of ListDeadLetterSourceQueues
	NextToken string   `json:"NextToken,omitempty"`
}

func (s *Service) listSources(_ context.Context, call *core.Call) (any, error) {
	return s.with(call, func(q *queue, in queueRequest) (any, error) {
		var urls []string
		for _, other := range s.queues {
			if target, _ := other.redrive(); target == q.id.arn() {
				urls = append(urls, other.url(call))
			}
		}
		page, token, err := pageOf(urls, in.MaxResults, in.NextToken)
		return listAnswer{Sources: page, NextToken: token}, err
	})
}

// pageOf sorts urls and cuts a page from them. Without a maximum SQS returns
// at most 1000 and no token.
func pageOf(urls []string, most *int, token string) ([]string, string, error) {
	slices.Sort(urls)
	if most == nil {
		return urls[:min(len(urls), 1000)], "", nil
	}
	if *most < 1 || *most > 1000 {
		return nil, "", invalidParameter("Value " + strconv.Itoa(*most) + " for parameter MaxResults is invalid. Reason: must be between 1 and 1000.")
	}
	after, err := base64.URLEncoding.DecodeString(token)
	if err != nil {
		return nil, "", invalidParameter("Invalid or expired next token.")
	}
	start, _ := slices.BinarySearch(urls, string(after)+"\x00")
	urls = urls[start:]
	if len(urls) <= *most {
		return urls, "", nil
	}
	urls = urls[:*most]
	return urls, base64.URLEncoding.EncodeToString([]byte(urls[*most-1])), nil
}
