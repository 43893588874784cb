package admission_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// step is one act on a pod and what the webhook is asked about it.
type step struct {
	what string
	act  func(context.Context) error
	want string // as line writes it; "" if the API server holds it back
	code int32  // of the refusal, 0 for none
}

// tell does the steps in order; later ones build on earlier ones.
func tell(t *testing.T, r *recorder, namespace string, steps []step) {
	t.Helper()
	for _, s := range steps {
		before := r.count()
		err := s.act(t.Context())
		if got := r.since(before, namespace); got != s.want {
			t.Errorf("%s: the webhook is asked %q, want %q", s.what, got, s.want)
		}
		if got := code(err); got != s.code {
			t.Errorf("%s: answered with status %d, want %d: %v", s.what, got, s.code, err)
		}
	}
}

// code is the HTTP status of an API error, 0 for no error.
func code(err error) int32 {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &status):
		return status.Status().Code
	}
	return http.StatusTeapot // no answer of the API server at all
}

// teller makes acts on one pod.
type teller struct {
	api  *api
	path string
}

func (p teller) status(s string) func(context.Context) error {
	return func(ctx context.Context) error { return p.api.patch(ctx, p.path+"/status", `{"status":`+s+`}`) }
}

func (p teller) metadata(m string) func(context.Context) error {
	return func(ctx context.Context) error { return p.api.patch(ctx, p.path, `{"metadata":`+m+`}`) }
}

func (p teller) delete(options string, params ...string) func(context.Context) error {
	return func(ctx context.Context) error { return p.api.delete(ctx, p.path, options, params...) }
}

func (p teller) evict(options string) func(context.Context) error {
	return func(ctx context.Context) error { return p.api.evict(ctx, p.path, options) }
}
