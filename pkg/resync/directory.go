package resync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

const (
	// listingMaxAge: type, family and port of a group never change, which group a
	// name means may; that a group is gone its targets' reading shows. While
	// listings fail, the last one goes on serving ARNs and names.
	listingMaxAge = 5 * time.Minute
	// listingPause is the least time between two listings for a group that is not
	// there, or after one that failed: one that was just made is found in the round
	// after, and an account that refuses us is not asked for each of its bindings.
	listingPause = 15 * time.Second
	// tagsMaxAge is how old tags may be that say which group a binding means.
	tagsMaxAge = time.Minute
	// tagsShare is the part of our share of the rate that the reading of all tags of
	// an account may take: 3,000 groups, ELB's quota of a region, are 150 calls.
	tagsShare = 0.25
)

// directory knows what groups there are: one listing of an account and region in
// the place of a call for each group, and one reading of all its tags where a
// binding names its group by them.
type directory struct {
	now       func() time.Time
	region    string  // our own, which names and tags mean
	perSecond float64 // calls that may be made; 0: as many as one likes

	mu       sync.Mutex
	accounts map[string]*listing
}

// listing is the groups of one account and region as one role sees them.
type listing struct {
	mu     sync.Mutex // held while it is read, so that it is read once
	read   time.Time
	byARN  map[string]claim.Group
	byName map[string]claim.Group
	groups attempt

	tags     map[string]map[string]string // by ARN; nil: never read
	tagsRead time.Time
	tagging  attempt
}

// attempt is the last time that something was read, or was to be.
type attempt struct {
	at  time.Time
	err error
}

// due reports whether it may be tried again.
func (a attempt) due(now time.Time) bool {
	age := now.Sub(a.at)
	return age >= listingPause || age < 0
}

func newDirectory(now func() time.Time) *directory {
	return &directory{now: now, accounts: map[string]*listing{}}
}

// found is the group that a binding names. late is why it was taken from an older
// reading than it should be, or nil.
type found struct {
	claim.Group
	late error
}

// group returns what a binding names. Errors: targetgroup.ErrNotFound, an
// *ambiguous, or that it could not be found out.
func (d *directory) group(ctx context.Context, api Groups, b *binding.Binding) (found, error) {
	l := d.listing(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(b.Group.Tags) > 0 {
		return d.tagged(ctx, api, l, b.Group)
	}
	g, known := l.find(b.Group)
	if !known || d.old(l) {
		l.readAll(ctx, api, d.now())
		g, known = l.find(b.Group)
	}
	switch {
	case known && d.old(l):
		return found{g, l.groups.err}, nil
	case known:
		return found{Group: g}, nil
	case ctx.Err() != nil:
		return found{}, ctx.Err()
	case l.groups.err != nil:
		return found{}, l.groups.err
	}
	return found{}, fmt.Errorf("%w: %s%s", targetgroup.ErrNotFound, b.Group.ARN, b.Group.Name)
}

// old reports whether the account is to be listed again.
func (d *directory) old(l *listing) bool {
	return l.read.IsZero() || d.now().Sub(l.read) >= listingMaxAge
}

// tagged returns the one group that carries all of its tags. Old tags serve additions
// for as long as a listing does while they can't be read.
func (d *directory) tagged(ctx context.Context, api Groups, l *listing, ref binding.GroupRef) (found, error) {
	if l.tags == nil || d.now().Sub(l.tagsRead) >= d.tagsPeriod(len(l.byARN)) {
		l.readTags(ctx, api, d.now())
	}
	age := d.now().Sub(l.tagsRead)
	if l.tags == nil || l.tagging.err != nil && age >= listingMaxAge {
		return found{}, errors.Join(l.tagging.err, ctx.Err())
	}
	var arns []string
	for arn := range l.byARN {
		if tags, read := l.tags[arn]; read && ref.Carried(tags) {
			arns = append(arns, arn)
		}
	}
	if len(arns) != 1 {
		slices.Sort(arns)
		return found{}, &ambiguous{arns: arns}
	}
	return found{l.byARN[arns[0]], l.tagging.err}, nil
}

// tagsPeriod is the time between two readings of all tags of so many groups.
func (d *directory) tagsPeriod(groups int) time.Duration {
	if d.perSecond <= 0 {
		return tagsMaxAge
	}
	calls := float64(groups/tagsACall + 1)
	return max(tagsMaxAge, time.Duration(calls/d.perSecond/tagsShare*float64(time.Second)))
}

// ambiguous is that tags are those of no group, or of several.
type ambiguous struct{ arns []string }

// maxNamed bounds how many groups an error names.
const maxNamed = 3

func (e *ambiguous) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%v: %d carry the tags %s", targetgroup.ErrAmbiguous, len(e.arns), strings.Join(e.arns[:min(len(e.arns), maxNamed)], ", ")))
}

func (e *ambiguous) Unwrap() error { return targetgroup.ErrAmbiguous }

// all returns every group that the account of b has, of the same listing.
func (d *directory) all(ctx context.Context, api Groups, b *binding.Binding) ([]claim.Group, error) {
	l := d.listing(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	if d.old(l) {
		l.readAll(ctx, api, d.now())
	}
	if d.old(l) {
		return nil, errors.Join(l.groups.err, ctx.Err())
	}
	return slices.Collect(maps.Values(l.byARN)), nil
}

func (d *directory) listing(b *binding.Binding) *listing {
	region := ""
	if parts := strings.Split(b.Group.ARN, ":"); len(parts) > 3 && parts[3] != d.region {
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
	l := d.listing(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	g, known := l.byARN[arn]
	if !known {
		return
	}
	delete(l.byARN, arn)
	delete(l.tags, arn)
	maps.DeleteFunc(l.byName, func(_ string, other claim.Group) bool { return other.ARN == g.ARN })
	l.groups.at = time.Time{} // it may have been made anew: look now
}

// stale has the groups of the binding's account listed anew when they are asked
// for next.
func (d *directory) stale(b *binding.Binding) {
	l := d.listing(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read, l.groups.at = time.Time{}, time.Time{}
}

func (l *listing) find(ref binding.GroupRef) (claim.Group, bool) {
	if ref.ARN != "" {
		g, ok := l.byARN[ref.ARN]
		return g, ok
	}
	g, ok := l.byName[ref.Name]
	return g, ok
}

// readAll lists the groups, unless that was tried a moment ago. What was known
// stays if it fails; a run's end is no failure.
func (l *listing) readAll(ctx context.Context, api Groups, now time.Time) {
	if !l.groups.due(now) {
		return
	}
	groups, err := api.List(ctx)
	if ctx.Err() != nil {
		return
	}
	l.groups = attempt{now, err}
	if err != nil {
		return
	}
	l.read, l.byARN, l.byName = now, make(map[string]claim.Group, len(groups)), make(map[string]claim.Group, len(groups))
	for _, g := range groups {
		l.byARN[g.ARN], l.byName[g.Name] = g.Group, g.Group
	}
}

// readTags reads the groups and the tags of all of them.
func (l *listing) readTags(ctx context.Context, api Groups, now time.Time) {
	if !l.tagging.due(now) {
		return
	}
	l.readAll(ctx, api, now)
	tags, err := map[string]map[string]string(nil), l.groups.err
	if err == nil {
		tags, err = api.TagsOf(ctx, slices.Sorted(maps.Keys(l.byARN)))
	}
	if ctx.Err() != nil {
		return
	}
	if l.tagging = (attempt{now, err}); err == nil {
		l.tags, l.tagsRead = make(map[string]map[string]string, len(tags)), now
		maps.Copy(l.tags, tags)
		return
	}
	l.groups.at = time.Time{} // a group that went meanwhile is not to be asked for again
}

// notThere reports whether an error says that a binding names no group, or not
// exactly one: it covers nothing, and nothing more is to be found out.
func notThere(err error) bool {
	return errors.Is(err, targetgroup.ErrNotFound) || errors.Is(err, targetgroup.ErrAmbiguous)
}
