package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

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
// for every pod (the pod is the callee's to keep), and returns that revision. It
// never keeps more than one page. Any page that fails fails the list, whatever
// each has been called with by then (I8); a list that grew too old is
// ErrExpired. Other errors are those of Pods.
func (c *Client) Each(ctx context.Context, s Scope, each func(*podevent.Pod)) (resourceVersion string, err error) {
	l, err := c.connected(ctx)
	if err != nil {
		return "", c.classify("connecting", err)
	}
	doing := "listing " + s.String()
	o := metav1.ListOptions{LabelSelector: s.LabelSelector, Limit: pageSize}
	for range maxEachPages {
		page, err := c.eachPage(ctx, l.streams, s.Namespace, o)
		if err != nil {
			return "", c.classifyStream(doing, err)
		}
		switch {
		case page.ResourceVersion == "":
			return "", fmt.Errorf("cluster %s: %s: %w: a page without a resourceVersion", c.name, doing, ErrUnreachable)
		case resourceVersion == "":
			resourceVersion = page.ResourceVersion
		case resourceVersion != page.ResourceVersion: // goes on inconsistently
			return "", fmt.Errorf("cluster %s: %s: %w: it began at %s, a page is of %s", c.name, doing, ErrExpired, resourceVersion, page.ResourceVersion)
		}
		for i := range page.Items {
			each(translate(&page.Items[i]))
		}
		if page.Continue == "" { // a page may hold fewer than its limit, even none
			return resourceVersion, nil
		}
		o.Continue = page.Continue
	}
	return "", fmt.Errorf("cluster %s: %s: %w: more than %d pages of %d", c.name, doing, ErrUnreachable, maxEachPages, pageSize)
}

func (c *Client) eachPage(ctx context.Context, r *rest.RESTClient, namespace string, o metav1.ListOptions) (*corev1.PodList, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	l := &corev1.PodList{}
	return l, c.page(ctx, r, namespace, o, l)
}

// classifyStream is classify where 410 has a class of its own.
func (c *Client) classifyStream(doing string, err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return fmt.Errorf("cluster %s: %s: %w: %w", c.name, doing, ErrExpired, err)
	}
	return c.classify(doing, err)
}
