package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/elbridge/elbridge/pkg/podevent"
)

const (
	// maxEachPages bounds a list at twice what 250,000 pods take, as a page may
	// hold fewer pods than its limit.
	maxEachPages = 1000
	// pageTimeout bounds one page: half of what kube-apiserver gives a request
	// (--request-timeout, 60 s). 500 pods take seconds where it is slow.
	pageTimeout = 30 * time.Second
)

// Scope is one LIST and WATCH of pods.
type Scope struct {
	Namespace     string // "" is all of them
	LabelSelector string // "" is every pod
}

// String writes the scope for a log line.
func (s Scope) String() string {
	switch {
	case s.Namespace == "" && s.LabelSelector == "":
		return "all pods"
	case s.Namespace == "":
		return "pods with " + s.LabelSelector
	case s.LabelSelector == "":
		return "pods of namespace " + s.Namespace
	default:
		return "pods of namespace " + s.Namespace + " with " + s.LabelSelector
	}
}

// ErrExpired: the revision is compacted; only a new list can go on.
var ErrExpired = errors.New("resource version is compacted")

// Each lists pods page by page as of one revision, the current one, calls each
// for every pod as it comes (the pod is the callee's to keep), and returns that
// revision. It never keeps more than one pod; the time that each takes is the
// page's. Whatever fails fails the list, whatever each has been called with by
// then (I8); a list that grew too old is ErrExpired. Other errors are those of Pods.
func (c *Client) Each(ctx context.Context, s Scope, each func(*podevent.Pod)) (resourceVersion string, err error) {
	l, err := c.connected(ctx)
	if err != nil {
		return "", c.classify("connecting", err)
	}
	p := pages{of: l.streams, namespace: s.Namespace, options: metav1.ListOptions{LabelSelector: s.LabelSelector}, max: maxEachPages, timeout: pageTimeout}
	err = p.read(ctx, func(a about) error {
		switch {
		case a.resourceVersion == "":
			return fmt.Errorf("%w: a page without a resourceVersion", ErrUnreachable)
		case resourceVersion == "":
			resourceVersion = a.resourceVersion
		case resourceVersion != a.resourceVersion: // goes on inconsistently
			return fmt.Errorf("%w: it began at %s, a page is of %s", ErrExpired, resourceVersion, a.resourceVersion)
		}
		return nil
	}, func(i Inspection) { each(i.Pod) })
	if err != nil {
		return "", c.classifyStream("listing "+s.String(), err)
	}
	return resourceVersion, nil
}

// classifyStream is classify where 410 has a class of its own.
func (c *Client) classifyStream(doing string, err error) error {
	switch {
	case errors.Is(err, ErrExpired):
		return fmt.Errorf("cluster %s: %s: %w", c.name, doing, err)
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return fmt.Errorf("cluster %s: %s: %w: %w", c.name, doing, ErrExpired, err)
	}
	return c.classify(doing, err)
}
