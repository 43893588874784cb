package sqs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
)

// settleEntry is a message that is deleted, or whose visibility is changed.
type settleEntry struct {
	Id, ReceiptHandle string
	VisibilityTimeout *int
}

func (s *Service) deleteMessage(_ context.Context, call *core.Call) (any, error) {
	return s.settle(call, (*queue).remove)
}

func (s *Service) changeVisibility(_ context.Context, call *core.Call) (any, error) {
	return s.settle(call, (*queue).revisit)
}

func (s *Service) settle(call *core.Call, do func(*queue, settleEntry, time.Time) error) (any, error) {
	var in struct {
		QueueUrl string
		settleEntry
	}
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(call, in.QueueUrl, call.Operation)
	if err != nil {
		return nil, err
	}
	return nil, do(q, in.settleEntry, call.Time)
}

// remove deletes a message. A stale handle succeeds without effect: the
// message was received again by somebody else.
func (q *queue) remove(e settleEntry, _ time.Time) error {
	m, current, err := q.open(e.ReceiptHandle)
	if err == nil && current {
		q.drop(m)
	}
	return err
}

// revisit sets when a message in flight comes back.
func (q *queue) revisit(e settleEntry, now time.Time) error {
	if e.VisibilityTimeout == nil {
		return missingParameter("VisibilityTimeout")
	}
	if _, err := within("VisibilityTimeout", e.VisibilityTimeout, 0, 43200, 0); err != nil {
		return err
	}
	m, current, err := q.open(e.ReceiptHandle)
	if err != nil {
		return err
	}
	q.advance(now)
	if !current || m.inReady != nil {
		return invalidParameter("Value " + e.ReceiptHandle + " for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.")
	}
	q.unlink(m)
	q.hide(m, now.Add(time.Duration(*e.VisibilityTimeout)*time.Second))
	q.signal()
	return nil
}

type batchFailure struct {
	Id          string
	SenderFault bool
	Code        string
	Message     string `json:",omitempty"`
}

type batchAnswer struct {
	Successful []any          `json:"Successful"`
	Failed     []batchFailure `json:"Failed,omitempty"`
}

func (b *batchAnswer) add(id string, done any, err error) {
	if err == nil {
		b.Successful = append(b.Successful, done)
		return
	}
	f := batchFailure{Id: id, Code: "InternalError", Message: err.Error()}
	if e, ok := errors.AsType[*core.Error](err); ok {
		f.Code, f.Message, f.SenderFault = e.Code, e.Message, e.Status < http.StatusInternalServerError
		if e.QueryCode != "" {
			f.Code = e.QueryCode
		}
	}
	b.Failed = append(b.Failed, f)
}

var entryIDForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// checkEntries says what is wrong with the ids of a batch.
func checkEntries(ids []string) error {
	switch {
	case len(ids) == 0:
		return apiError("EmptyBatchRequest", "AWS.SimpleQueueService.EmptyBatchRequest", "There should be at least one entry in the request.")
	case len(ids) > 10:
		return apiError("TooManyEntriesInBatchRequest", "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
			fmt.Sprintf("Maximum number of entries per request are 10. You have sent %d.", len(ids)))
	}
	seen := map[string]bool{}
	for _, id := range ids {
		if !entryIDForm.MatchString(id) {
			return apiError("InvalidBatchEntryId", "AWS.SimpleQueueService.InvalidBatchEntryId",
				"A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
		}
		if seen[id] {
			return apiError("BatchEntryIdsNotDistinct", "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", "Id "+id+" repeated.")
		}
		seen[id] = true
	}
	return nil
}

func (s *Service) sendBatch(_ context.Context, call *core.Call) (any, error) {
	var in struct {
		QueueUrl string
		Entries  []sendRequest
	}
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	ids, size := make([]string, len(in.Entries)), 0
	for i, e := range in.Entries {
		ids[i] = e.Id
		size += e.size()
	}
	if err := checkEntries(ids); err != nil {
		return nil, err
	}
	if size > maxMessage {
		return nil, apiError("BatchRequestTooLong", "AWS.SimpleQueueService.BatchRequestTooLong",
			fmt.Sprintf("Batch requests cannot be longer than %d bytes. You have sent %d bytes.", maxMessage, size))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(call, in.QueueUrl, "SendMessage")
	if err != nil {
		return nil, err
	}
	out := &batchAnswer{Successful: []any{}}
	for i, e := range in.Entries {
		if f := call.FailEntry(i); f != nil {
			out.add(e.Id, nil, f)
			continue
		}
		done, err := q.send(e, call.Principal.UserID, call.Time)
		out.add(e.Id, done, err)
	}
	return out, nil
}

func (s *Service) deleteBatch(_ context.Context, call *core.Call) (any, error) {
	return s.settleBatch(call, "DeleteMessage", (*queue).remove)
}

func (s *Service) changeVisibilityBatch(_ context.Context, call *core.Call) (any, error) {
	return s.settleBatch(call, "ChangeMessageVisibility", (*queue).revisit)
}

func (s *Service) settleBatch(call *core.Call, action string, do func(*queue, settleEntry, time.Time) error) (any, error) {
	var in struct {
		QueueUrl string
		Entries  []settleEntry
	}
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	ids := make([]string, len(in.Entries))
	for i, e := range in.Entries {
		ids[i] = e.Id
	}
	if err := checkEntries(ids); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(call, in.QueueUrl, action)
	if err != nil {
		return nil, err
	}
	out := &batchAnswer{Successful: []any{}}
	for i, e := range in.Entries {
		if f := call.FailEntry(i); f != nil {
			out.add(e.Id, nil, f)
			continue
		}
		out.add(e.Id, map[string]string{"Id": e.Id}, do(q, e, call.Time))
	}
	return out, nil
}
