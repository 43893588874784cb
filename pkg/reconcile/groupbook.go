package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

const (
	// groupMaxAge: type, family and port of a group never change; which group a
	// name or tags mean may.
	groupMaxAge = time.Minute
	// notFoundMaxAge: that a group is not there is remembered for a moment, so that a
	// rule with a wrong one does not spend the account's rate message by message.
	notFoundMaxAge = 3 * time.Second
	// maxRemembered bounds each of the memories here; forgetting costs one call.
	maxRemembered = 4096
)

// GroupBook remembers what groups are.
type GroupBook struct {
	now func() time.Time
	mu  sync.Mutex
	m   map[string]groupEntry
}

type groupEntry struct {
	g    claim.Group
	err  error // that it is not there
	read time.Time
}

// NewGroupBook returns an empty book.
func NewGroupBook(now func() time.Time) *GroupBook { return &GroupBook{now: now} }

// Get returns the group that the binding names, from memory or from api, which is
// that of the binding's account.
func (b *GroupBook) Get(ctx context.Context, api Groups, bind *binding.Binding) (claim.Group, error) {
	id := fmt.Sprint(bind.Group.ARN, bind.Group.Name, bind.Group.Tags, bind.RoleARN) // a map prints sorted
	b.mu.Lock()
	e, known := b.m[id]
	b.mu.Unlock()
	age := b.now().Sub(e.read)
	if known && (e.err == nil && age < groupMaxAge || e.err != nil && age < notFoundMaxAge) {
		return e.g, e.err
	}
	g, err := api.Describe(ctx, bind.Group)
	if err != nil && !errors.Is(err, targetgroup.ErrNotFound) {
		return claim.Group{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.m == nil || len(b.m) >= maxRemembered {
		b.m = map[string]groupEntry{}
	}
	b.m[id] = groupEntry{g, err, b.now()}
	return g, err
}

// Forget drops a group after it proved gone.
func (b *GroupBook) Forget(arn string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.m, func(_ string, e groupEntry) bool { return e.g.ARN == arn })
}
