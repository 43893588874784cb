package targetgroup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/elbridge/elbridge/pkg/claim"
)

const (
	// isolationCalls bounds what one Register or Deregister may spend on finding
	// refused targets and free room, beside its chunks: the account has 4 such
	// calls a second. One bad target of 200 takes 16, three about 36.
	isolationCalls = 48
	// callsPerChunk: a chunk may have to be sent with the other choice of zone.
	callsPerChunk = 2
	// maxFull is after how many single targets that a quota refused the group
	// counts as full. It is more than one since some quotas are a zone's own.
	maxFull = 3
)

// run sends keys in chunks; an empty list sends nothing (P011), and one chunk's
// failure doesn't stop the next. A block that is refused for some target's sake
// is halved. A block that is refused by a quota is sent in smaller ones.
func run(ctx context.Context, ks []claim.Key, send func(context.Context, []claim.Key) (int, error)) Result {
	w := work{blocks: slices.Collect(slices.Chunk(ks, chunkSize)), limit: chunkSize, result: Result{Failed: map[claim.Key]error{}}}
	calls := callsPerChunk*len(w.blocks) + isolationCalls
	for {
		block := w.next()
		if block == nil {
			return w.result
		}
		if w.result.Calls >= calls {
			w.fail(block, w.untried())
			continue
		}
		n, err := send(ctx, block)
		w.result.Calls += n
		w.settle(block, err)
	}
}

// work is what is still to be sent.
type work struct {
	blocks [][]claim.Key // a queue
	// halves of refused blocks come after blocks, and the latest first: however
	// many targets are bad, each run tells some of them apart.
	halves [][]claim.Key
	limit  int   // targets in one call
	full   int   // single targets refused by a quota
	quota  error // the last refusal by a quota
	result Result
}

// next takes the next block, cut to the limit, or nil at the end.
func (w *work) next() []claim.Key {
	if len(w.blocks) == 0 {
		n := len(w.halves)
		if n == 0 {
			return nil
		}
		w.blocks, w.halves = append(w.blocks, w.halves[n-1]), w.halves[:n-1]
	}
	block := w.blocks[0]
	if len(block) > w.limit {
		w.blocks[0] = block[w.limit:]
		return block[:w.limit]
	}
	w.blocks = w.blocks[1:]
	return block
}

func (w *work) settle(block []claim.Key, err error) {
	switch {
	case err == nil:
		w.limit = min(2*w.limit, chunkSize)
	case errors.Is(err, ErrInvalidTarget) && len(block) > 1:
		w.halves = append(w.halves, block[len(block)/2:], block[:len(block)/2])
	case errors.Is(err, ErrQuota):
		w.quota = err
		w.shrink(block)
	default:
		w.fail(block, err)
	}
}

// shrink has the next blocks be half as large, and taken from elsewhere first:
// another zone may have room.
func (w *work) shrink(block []claim.Key) {
	if len(block) > 1 {
		w.limit = len(block) / 2
		w.blocks = append(w.blocks, block)
		return
	}
	w.fail(block, w.quota)
	if w.full++; w.full < maxFull {
		return
	}
	for _, rest := range slices.Concat(w.blocks, w.halves) {
		w.fail(rest, w.quota)
	}
	w.blocks, w.halves = nil, nil
}

// untried is the error of keys whose turn did not come. They may be good ones.
func (w *work) untried() error {
	if w.quota != nil {
		return w.quota
	}
	return fmt.Errorf("%w: refused together with others, and not told apart within %d calls", ErrUnavailable, w.result.Calls)
}

func (w *work) fail(block []claim.Key, err error) {
	for _, k := range block {
		w.result.Failed[k] = err
	}
}
