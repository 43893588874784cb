package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// maxBody is the largest review that is read. The API server takes bodies of
	// 3 MiB, and a review of an update holds two objects.
	maxBody = 8 << 20
	// bodyBudget is what all bodies that are being read may take together.
	bodyBudget = maxBody
	// budgetWait is how long a review waits for its share of the budget.
	budgetWait = 200 * time.Millisecond
	// prefix is read of what is too large, for the uid of the answer.
	prefix = 4 << 10
	// keepBuffer is the largest buffer that is kept for the next review.
	keepBuffer = 128 << 10
)

var (
	errOversized = errors.New("review too large")
	errBusy      = errors.New("no memory for the review")
)

// bodies reads the bodies of reviews within a memory budget, into buffers that
// are used again.
type bodies struct {
	budget *semaphore.Weighted
	pool   sync.Pool // of *[]byte
}

func newBodies() *bodies {
	return &bodies{
		budget: semaphore.NewWeighted(bodyBudget),
		pool:   sync.Pool{New: func() any { b := make([]byte, 0, 32<<10); return &b }},
	}
}

// read calls use with the body, which is valid during the call. With an error
// the body is the part that was read, at most a prefix of what is too large.
func (b *bodies) read(r *http.Request, use func(body []byte, err error)) {
	share := r.ContentLength
	if share < 0 || share > maxBody {
		share = maxBody
	}
	limit, problem := int64(maxBody), error(nil)
	if r.ContentLength > maxBody {
		limit, problem, share = prefix, errOversized, prefix
	}
	if !b.acquire(r.Context(), share) {
		limit, problem, share = prefix, errBusy, 0
	}
	defer b.budget.Release(share)

	buf := b.pool.Get().(*[]byte)
	defer func() {
		if cap(*buf) <= keepBuffer {
			b.pool.Put(buf)
		}
	}()
	body, err := readAll((*buf)[:0], r.Body, min(limit, max(share, prefix)), r.ContentLength)
	*buf = body
	use(body, errors.Join(problem, err))
}

func (b *bodies) acquire(ctx context.Context, n int64) bool {
	if b.budget.TryAcquire(n) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, budgetWait)
	defer cancel()
	return b.budget.Acquire(ctx, n) == nil
}

// readAll reads at most limit bytes. More than that, unless the rest is known to
// be none of our business, is errOversized.
func readAll(buf []byte, from io.Reader, limit, announced int64) ([]byte, error) {
	if announced > 0 && int64(cap(buf)) < min(announced, limit) {
		buf = make([]byte, 0, min(announced, limit))
	}
	for {
		if int64(len(buf)) >= limit {
			if announced >= 0 {
				return buf, nil
			}
			var more [1]byte
			if n, _ := io.ReadFull(from, more[:]); n > 0 {
				return buf, errOversized
			}
			return buf, nil
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := from.Read(buf[len(buf):min(int64(cap(buf)), limit)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
}
