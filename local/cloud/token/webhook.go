package token

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/elbridge/elbridge/local/cloud/eks"
)

// review is a TokenReview of authentication.k8s.io/v1, as far as it matters.
type review struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       *spec  `json:"spec,omitempty"`
	Status     status `json:"status"`
}

type spec struct {
	Token string `json:"token"`
}

type status struct {
	Authenticated bool   `json:"authenticated"`
	User          *user  `json:"user,omitempty"`
	Error         string `json:"error,omitempty"`
}

type user struct {
	Username string              `json:"username"`
	UID      string              `json:"uid"`
	Groups   []string            `json:"groups,omitempty"`
	Extra    map[string][]string `json:"extra,omitempty"`
}

// Webhook answers the TokenReviews of the cluster that the path names
// ({name}). find returns the cluster; its access entries say who a principal is.
func Webhook(v *Verifier, find func(name string) (eks.Cluster, bool), log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in review
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&in); err != nil || in.Kind != "TokenReview" || in.Spec == nil {
			http.Error(w, "want a TokenReview of authentication.k8s.io/v1", http.StatusBadRequest)
			return
		}
		out := review{APIVersion: in.APIVersion, Kind: in.Kind} // v1 and v1beta1 are alike
		name := r.PathValue("name")
		who, err := identify(r.Context(), v, find, in.Spec.Token, name)
		if err != nil {
			out.Status.Error = err.Error()
			log.Info("token refused", "cluster", name, "err", err)
		} else {
			out.Status = status{Authenticated: true, User: who}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out) // an API server that left needs no answer
	})
}

func identify(ctx context.Context, v *Verifier, find func(string) (eks.Cluster, bool), token, name string) (*user, error) {
	cluster, ok := find(name)
	if !ok {
		return nil, fmt.Errorf("%w: there is no cluster %q", ErrRefused, name)
	}
	arn, err := v.Verify(ctx, token, name)
	if err != nil {
		return nil, err
	}
	entry, ok := cluster.Identity(arn)
	if !ok {
		return nil, fmt.Errorf("%w: %s has no access entry in cluster %s", ErrRefused, arn, name)
	}
	return &user{Username: entry.Username, UID: "aws-iam-authenticator:" + arn, Groups: entry.Groups,
		Extra: map[string][]string{"arn": {arn}}}, nil
}
