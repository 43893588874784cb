package cluster

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// pages is one LIST, page by page.
type pages struct {
	of        *rest.RESTClient
	namespace string
	options   metav1.ListOptions
	max       int
	timeout   time.Duration // of one page
}

// read calls told for each page before its pods, and each for every pod. It keeps
// one pod at a time. An error means that the list isn't whole (I8).
func (p pages) read(ctx context.Context, told func(about) error, each func(Inspection)) error {
	in, next := newObjects(), ""
	for range p.max {
		err := p.page(ctx, next, in, func(a about) error {
			next = a.next
			return told(a)
		}, each)
		if err != nil || next == "" { // a page may hold fewer than its limit, even none
			return err
		}
	}
	return fmt.Errorf("%w: more than %d pages of %d", ErrUnreachable, p.max, pageSize)
}

func (p pages) page(ctx context.Context, next string, in *objects, told func(about) error, each func(Inspection)) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	req := p.of.Get().Namespace(p.namespace).Resource("pods").MaxRetries(maxRetries).Param("limit", fmt.Sprint(pageSize))
	for name, value := range map[string]string{"labelSelector": p.options.LabelSelector, "fieldSelector": p.options.FieldSelector, "continue": next} {
		if value != "" {
			req.Param(name, value)
		}
	}
	body, err := req.Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	return in.list(body, told, each)
}
