package resync

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/reconcile"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

const (
	// listingMaxAge: type, family and port of a group never change, which group a
	// name means may; that a group is gone its targets' reading shows.
	listingMaxAge = 5 * time.Minute
	// listingPause is the least time between two listings for a group that is not
	// there: one that was just made is found in the round after.
	listingPause = 15 * time.Second
)

// directory knows what groups there are: one listing of an account and region in
// the place of a call for each group. Only bindings by tags are described one by
// one.
type directory struct {
	now  func() time.Time
	tags *reconcile.GroupBook

	mu       sync.Mutex
	accounts map[string]*listing
}

// listing is the groups of one account and region as one role sees them.
type listing struct {
	mu     sync.Mutex // held while it is read, so that it is read once
	read   time.Time
	byARN  map[string]claim.Group
	byName map[string]claim.Group
}

func newDirectory(now func() time.Time) *directory {
	return &directory{now: now, tags: reconcile.NewGroupBook(now), accounts: map[string]*listing{}}
}

// group returns what a binding names. Errors: targetgroup.ErrNotFound,
// ErrAmbiguous, or that it could not be found out.
func (d *directory) group(ctx context.Context, api Groups, b *binding.Binding) (claim.Group, error) {
	if len(b.Group.Tags) > 0 {
		return d.tags.Get(ctx, api, b)
	}
	l := d.listing(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	g, known := l.find(b.Group)
	age := d.now().Sub(l.read)
	if known && age < listingMaxAge {
		return g, nil
	}
	if known || age >= listingPause {
		if err := l.readAll(ctx, api, d.now()); err != nil {
			return claim.Group{}, err
		}
		g, known = l.find(b.Group)
	}
	if !known {
		return claim.Group{}, fmt.Errorf("%w: %s%s", targetgroup.ErrNotFound, b.Group.ARN, b.Group.Name)
	}
	return g, nil
}

// all returns every group that the account of b has, of the same listing.
func (d *directory) all(ctx context.Context, api Groups, b *binding.Binding) ([]claim.Group, error) {
	l := d.listing(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.read.IsZero() || d.now().Sub(l.read) >= listingMaxAge {
		if err := l.readAll(ctx, api, d.now()); err != nil {
			return nil, err
		}
	}
	out := make([]claim.Group, 0, len(l.byARN))
	for _, g := range l.byARN {
		out = append(out, g)
	}
	return out, nil
}

func (d *directory) listing(b *binding.Binding) *listing {
	region := ""
	if parts := strings.Split(b.Group.ARN, ":"); len(parts) > 3 {
		region = parts[3]
	}
	key := strings.Join([]string{b.RoleARN, b.ExternalID, region}, "\x00")
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.accounts[key]
	if l == nil {
		l = &listing{}
		d.accounts[key] = l // as many as the bindings have roles
	}
	return l
}

// forget drops what is remembered of groups after one proved gone.
func (d *directory) forget(b *binding.Binding, arn string) {
	d.tags.Forget(arn)
	l := d.listing(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	if g, known := l.byARN[arn]; known {
		delete(l.byARN, arn)
		for name, other := range l.byName {
			if other.ARN == g.ARN {
				delete(l.byName, name)
			}
		}
		l.read = d.now().Add(-listingPause) // it may have been made anew: look now
	}
}

// stale has the groups of the binding's account listed anew when they are asked
// for next.
func (d *directory) stale(b *binding.Binding) {
	l := d.listing(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read = time.Time{}
}

func (l *listing) find(ref binding.GroupRef) (claim.Group, bool) {
	if ref.ARN != "" {
		g, ok := l.byARN[ref.ARN]
		return g, ok
	}
	g, ok := l.byName[ref.Name]
	return g, ok
}

func (l *listing) readAll(ctx context.Context, api Groups, now time.Time) error {
	groups, err := api.List(ctx)
	if err != nil {
		return err
	}
	l.read, l.byARN, l.byName = now, make(map[string]claim.Group, len(groups)), make(map[string]claim.Group, len(groups))
	for _, g := range groups {
		l.byARN[g.ARN], l.byName[g.Name] = g.Group, g.Group
	}
	return nil
}

// notThere reports whether an error says that a binding names no group, or not
// exactly one: it covers nothing, and nothing more is to be found out.
func notThere(err error) bool {
	return errors.Is(err, targetgroup.ErrNotFound) || errors.Is(err, targetgroup.ErrAmbiguous)
}
