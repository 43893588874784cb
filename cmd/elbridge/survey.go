package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/explain"
	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// An account may ask ELB 10 times a second, with a bucket of 40, whoever asks: the
// registrar and resync live on that too. Commands take half of it at most.
const (
	describesPerSecond = 5
	describesAtOnce    = 20
	// factsCalls are the calls behind one groupReader.Facts.
	factsCalls = 4
	// tagsAtOnce are the groups whose tags one call reads.
	tagsAtOnce = 20
)

func newPace() *rate.Limiter { return rate.NewLimiter(describesPerSecond, describesAtOnce) }

// groupLister reads all groups of an account and region.
type groupLister interface {
	List(ctx context.Context) ([]targetgroup.Listed, error)
	TagsOf(ctx context.Context, arns []string) (map[string]map[string]string, error)
}

// surveyor reads many groups with few calls: those of the bus's own account and
// region from one listing, the others one by one.
type surveyor struct {
	home   groupLister
	from   func(*binding.Binding) groupReader
	busARN string
	pace   *rate.Limiter
}

// surveyed is what is known of groups.
type surveyed struct {
	byRef map[string]explain.Group // those that bindings name, by lint.Ref
	all   []lint.Group             // of the bus's account and region; with tags if all were asked for
	// unread says what could not be read; missed that it may be of groups that
	// nobody names.
	unread []error
	missed bool
}

// facts reads what bindings name, without targets. With all, the tags of every
// group are read.
func (s *surveyor) facts(ctx context.Context, bs []binding.Binding, all bool) (*surveyed, error) {
	if err := s.pace.Wait(ctx); err != nil {
		return nil, err
	}
	out := &surveyed{byRef: map[string]explain.Group{}}
	listed, err := s.home.List(ctx)
	if err != nil {
		out.miss("target groups were not read", err)
	}
	for _, l := range listed {
		out.all = append(out.all, lint.Group{Group: l.Group, Name: l.Name, DeregistrationDelay: -1})
	}
	var away []binding.Binding
	var at []*binding.Binding
	for i := range bs {
		b := &bs[i]
		all = all || len(b.Group.Tags) > 0 && s.isHome(b)
		if s.isHome(b) {
			at = append(at, b)
		} else {
			away = append(away, *b)
		}
	}
	if err := s.tags(ctx, out, at, all); err != nil {
		return nil, err
	}
	for _, b := range at {
		g := lint.Group{Problem: lint.Unread}
		if err != nil {
			g.Detail = err.Error()
		} else {
			g = out.find(b.Group)
		}
		out.byRef[lint.Ref(b.Group)] = explain.Group{Group: g}
	}
	others, unread := pacedGroups(ctx, away, s.from, false, s.pace)
	for ref, g := range others {
		out.byRef[ref] = g
	}
	if unread != nil {
		out.unread = append(out.unread, unread)
	}
	return out, ctx.Err()
}

// isHome reports whether the binding's group is in the listing, if it exists.
func (s *surveyor) isHome(b *binding.Binding) bool {
	if b.RoleARN != "" {
		return false
	}
	ours, theirs := strings.Split(s.busARN, ":"), strings.Split(b.Group.ARN, ":")
	return b.Group.ARN == "" || len(ours) > 4 && len(theirs) > 4 && ours[3] == theirs[3] && ours[4] == theirs[4]
}

// tags reads the tags of the groups that bindings name, or of all.
func (s *surveyor) tags(ctx context.Context, out *surveyed, bs []*binding.Binding, all bool) error {
	named := map[string]bool{}
	for _, b := range bs {
		named[b.Group.ARN] = true
		named["name:"+b.Group.Name] = true
	}
	var at []int
	for i, g := range out.all {
		if all || named[g.ARN] || named["name:"+g.Name] {
			at = append(at, i)
		}
	}
	for chunk := range slices.Chunk(at, tagsAtOnce) {
		arns := make([]string, len(chunk))
		for i, j := range chunk {
			arns[i] = out.all[j].ARN
		}
		if err := s.pace.Wait(ctx); err != nil {
			return err
		}
		tags, err := s.home.TagsOf(ctx, arns)
		if err != nil {
			out.miss("tags of target groups were not read", err)
			for _, j := range chunk {
				out.all[j].Problem, out.all[j].Detail = lint.Unread, err.Error()
			}
			continue
		}
		for _, j := range chunk {
			if out.all[j].Tags = tags[out.all[j].ARN]; out.all[j].Tags == nil {
				out.all[j].Tags = map[string]string{} // they are known: there are none
			}
		}
	}
	return nil
}

// miss notes what could not be read of the groups of the account, each cause once.
func (s *surveyed) miss(what string, err error) {
	s.missed = true
	err = fmt.Errorf("%s: %w", what, err)
	if !slices.ContainsFunc(s.unread, func(e error) bool { return e.Error() == err.Error() }) {
		s.unread = append(s.unread, err)
	}
}

// find returns the one group that ref names, or what is wrong with it.
func (s *surveyed) find(ref binding.GroupRef) lint.Group {
	var found []lint.Group
	for _, g := range s.all {
		is := ref.ARN == g.ARN
		switch {
		case ref.Name != "":
			is = ref.Name == g.Name
		case len(ref.Tags) > 0 && g.Problem == lint.Unread: // it may be this one
			return lint.Group{Problem: lint.Unread, Detail: g.Detail}
		case len(ref.Tags) > 0:
			is = carries(g.Tags, ref.Tags)
		}
		if is {
			found = append(found, g)
		}
	}
	switch len(found) {
	case 1:
		return found[0]
	case 0:
		if len(ref.Tags) == 0 {
			return lint.Group{Problem: lint.NotFound}
		}
	}
	return lint.Group{Problem: lint.Ambiguous, Detail: fmt.Sprintf("%d groups carry the tags", len(found))}
}

func carries(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// targets reads the targets of the groups that bindings name and that are wanted
// (all if wanted is nil). A group that can't be read keeps nobody from the others.
func (s *surveyor) targets(ctx context.Context, of *surveyed, bs []binding.Binding, wanted map[string]bool) error {
	var g errgroup.Group
	g.SetLimit(groupReads)
	var mu sync.Mutex
	known := map[string]explain.Group{}
	asked := map[string]bool{}
	for i := range bs {
		b := &bs[i]
		read := of.byRef[lint.Ref(b.Group)]
		if read.Problem != lint.Known || asked[read.ARN] || wanted != nil && !wanted[read.ARN] {
			continue
		}
		asked[read.ARN] = true
		g.Go(func() error {
			if err := s.pace.Wait(ctx); err != nil {
				return err
			}
			targets, err := s.from(b).Health(ctx, read.Group.Group)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, targetgroup.ErrNotFound): // deleted since the list
				read.Group = lint.Group{Problem: lint.NotFound}
			case err != nil:
				of.unread = append(of.unread, fmt.Errorf("target group %s was not read: %w", read.Name, err))
				read.Problem, read.Detail = lint.Unread, err.Error()
			default:
				read.Targets, read.Drained = targets, len(targets) == 0
			}
			known[read.ARN] = read
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for ref, r := range of.byRef {
		if read, ok := known[r.ARN]; ok && r.Problem == lint.Known {
			of.byRef[ref] = read
		}
	}
	slices.SortFunc(of.unread, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return ctx.Err()
}
