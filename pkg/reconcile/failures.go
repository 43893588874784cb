package reconcile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// failureClasses are what errors of changes are told apart by: their texts have ids
// of requests in them.
var failureClasses = []error{targetgroup.ErrNotFound, targetgroup.ErrInvalidTarget, targetgroup.ErrQuota, targetgroup.ErrThrottled, targetgroup.ErrDenied}

func classOf(err error) string {
	for _, class := range failureClasses {
		if errors.Is(err, class) {
			return class.Error()
		}
	}
	return targetgroup.ErrUnavailable.Error() // as all others, whatever is behind them
}

// news returns the failures that are to be told of: the same keys that fail in the
// same way, round after round, once a witness window.
func (h *Hands) news(w *Work, op operation, failed []failure) []failure {
	byClass := map[string][]failure{}
	for _, f := range failed {
		byClass[classOf(f.err)] = append(byClass[classOf(f.err)], f)
	}
	var out []failure
	for class, fs := range byClass {
		keys := make([]string, len(fs))
		for i, f := range fs {
			keys[i] = f.Key.String()
		}
		slices.Sort(keys)
		id := sha256.Sum256([]byte(strings.Join(append([]string{w.Group.ARN, op.verb, class}, keys...), "\x00")))
		if h.told.once(fmt.Sprintf("failed %x", id), h.Now()) {
			out = append(out, fs...)
		}
	}
	slices.SortFunc(out, func(a, b failure) int { return claim.Compare(a.Key, b.Key) })
	return out
}
