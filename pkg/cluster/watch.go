package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/elbridge/elbridge/pkg/podevent"
)

const (
	// watchFor and as much again at random is how long the API server is asked to
	// keep a stream, as client-go's reflector does: streams move on to new API
	// servers, and not all at once.
	watchFor = 5 * time.Minute
	// openTimeout bounds the time from the request to the answer's header: the API
	// server writes it at once, or waits 3 s for its cache to know the revision.
	openTimeout = 10 * time.Second
	// silenceMax is how long a stream may say nothing. kube-apiserver sends a
	// bookmark about each minute; two of them may be late.
	silenceMax = 150 * time.Second
)

// ErrSilent: a stream that said nothing, not even a bookmark, for too long.
var ErrSilent = errors.New("stream is silent")

// ChangeKind says what a Change tells.
type ChangeKind string

// The kinds of changes.
const (
	// Opened: the API server took the stream up. It comes once, first.
	Opened ChangeKind = "Opened"
	// Changed: the pod is new in the scope, or is another than before (ADDED, MODIFIED).
	Changed ChangeKind = "Changed"
	// Gone: the pod is in the scope no more (DELETED). Where the scope has a label
	// selector, it may live on with other labels: only a GET tells. The pod is as
	// it was in the scope last.
	Gone ChangeKind = "Gone"
	// Bookmark: nothing happened up to this revision.
	Bookmark ChangeKind = "Bookmark"
)

// Change is one event of a stream.
type Change struct {
	Kind            ChangeKind
	Pod             *podevent.Pod // nil but for Changed and Gone; the callee's to keep
	ResourceVersion string        // from which another Watch can go on
}

// Watch calls on for every change in the scope after resourceVersion, one after
// the other, until the stream ends: nil where the API server ended it, as it
// does after some minutes; ErrExpired, ErrSilent, ErrUnauthorized or
// ErrUnreachable; the context's error if that ends. What on was told of by then
// has happened.
func (c *Client) Watch(ctx context.Context, s Scope, resourceVersion string, on func(Change)) error {
	l, err := c.connected(ctx)
	if err != nil {
		return c.classify("connecting", err)
	}
	doing := "watching " + s.String()
	err = c.watch(ctx, l.streams, s, resourceVersion, on)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("cluster %s: %s: %w", c.name, doing, ctx.Err())
	case errors.Is(err, ErrSilent):
		closeIdle(l) // whoever is at the other end may be gone
		return fmt.Errorf("cluster %s: %s: %w", c.name, doing, err)
	default:
		return c.classifyStream(doing, err)
	}
}

// watch reads one stream. A watchdog ends it by its context, which also ends a
// read that waits; so there is no goroutine.
func (c *Client) watch(ctx context.Context, r *rest.RESTClient, s Scope, resourceVersion string, on func(Change)) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer func() { // the reason, not that the context ended
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
	}()
	dog := time.AfterFunc(openTimeout, func() {
		cancel(fmt.Errorf("%w: no answer within %s", ErrUnreachable, openTimeout))
	})
	body, err := openWatch(ctx, r, s, resourceVersion)
	dog.Stop()
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	frames := newFrames(body)
	on(Change{Kind: Opened, ResourceVersion: resourceVersion})
	dog = time.AfterFunc(c.silence, func() { cancel(fmt.Errorf("%w for %s", ErrSilent, c.silence)) })
	defer dog.Stop()
	for {
		dog.Reset(c.silence) // the time that on takes is not the stream's
		kind, pod, err := frames.next()
		dog.Stop()
		if err == io.EOF { //nolint:errorlint // next's own: between two frames
			return nil
		}
		if err != nil {
			return err
		}
		change, err := changeOf(kind, pod)
		if err != nil {
			return err
		}
		on(change)
	}
}

func openWatch(ctx context.Context, r *rest.RESTClient, s Scope, resourceVersion string) (io.ReadCloser, error) {
	keep := watchFor + rand.N(watchFor)
	req := r.Get().Namespace(s.Namespace).Resource("pods").MaxRetries(maxRetries).SetHeader("Accept", streamType).
		Param("watch", "true").Param("allowWatchBookmarks", "true").
		Param("resourceVersion", resourceVersion).Param("timeoutSeconds", strconv.Itoa(int(keep.Seconds())))
	if s.LabelSelector != "" {
		req.Param("labelSelector", s.LabelSelector)
	}
	return req.Stream(ctx)
}

func changeOf(kind watch.EventType, p *podevent.Pod) (Change, error) {
	switch kind {
	case watch.Added, watch.Modified:
		return Change{Kind: Changed, Pod: p, ResourceVersion: p.ResourceVersion}, nil
	case watch.Deleted:
		return Change{Kind: Gone, Pod: p, ResourceVersion: p.ResourceVersion}, nil
	case watch.Bookmark:
		return Change{Kind: Bookmark, ResourceVersion: p.ResourceVersion}, nil
	default: // also an error that comes with a pod
		return Change{}, fmt.Errorf("%s of a pod in a stream of pods", kind)
	}
}
