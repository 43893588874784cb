package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	tokenPrefix = "k8s-aws-v1." //nolint:gosec // what every token begins with
	// clusterHeader binds a token to one cluster: it is signed.
	clusterHeader = "x-k8s-aws-id"
	// presignExpires is what aws-iam-authenticator's own client sends; a token
	// without it is refused. It does not limit the token's life.
	presignExpires = "60"
	// tokenLife: a verifier accepts a token for 15 minutes from X-Amz-Date; one
	// third is kept in hand for clocks and for calls under way (P100, P101).
	tokenLife = 10 * time.Minute
)

// token is a bearer token with the moment from which it is not used any more.
type token struct {
	value   string
	expires time.Time
}

// tokens mints EKS bearer tokens. Minting is signing: it needs no network but
// what the credentials themselves need.
type tokens struct {
	presign func(ctx context.Context) (string, error)
	creds   aws.CredentialsProvider
	now     func() time.Time

	mu      sync.Mutex
	current token
}

// newTokens returns a source of tokens for the cluster. They are signed for the
// regional STS host whatever endpoint override is set: the API server's side
// accepts no other.
func newTokens(cfg aws.Config, region, eksName string, now func() time.Time) *tokens {
	client := sts.NewFromConfig(cfg, func(o *sts.Options) {
		o.Region = region
		o.BaseEndpoint = new("https://sts." + region + "." + dnsSuffix(region))
	})
	presigner := sts.NewPresignClient(client, func(o *sts.PresignOptions) {
		o.ClientOptions = append(o.ClientOptions, func(o *sts.Options) {
			o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue(clusterHeader, eksName), addExpires)
		})
		o.Presigner = v4.NewSigner()
	})
	return &tokens{creds: cfg.Credentials, now: now, presign: func(ctx context.Context) (string, error) {
		r, err := presigner.PresignGetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if err != nil {
			return "", err
		}
		return tokenPrefix + base64.RawURLEncoding.EncodeToString([]byte(r.URL)), nil
	}}
}

// dnsSuffix is the partition's domain.
func dnsSuffix(region string) string {
	if len(region) > 3 && region[:3] == "cn-" {
		return "amazonaws.com.cn"
	}
	return "amazonaws.com"
}

// addExpires puts X-Amz-Expires into the query before it is signed.
func addExpires(stack *middleware.Stack) error {
	return stack.Build.Add(middleware.BuildMiddlewareFunc("elbridgeTokenExpires",
		func(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
			if r, ok := in.Request.(*smithyhttp.Request); ok {
				q := r.URL.Query()
				q.Set("X-Amz-Expires", presignExpires)
				r.URL.RawQuery = q.Encode()
			}
			return next.HandleBuild(ctx, in)
		}), middleware.After)
}

// get returns a token that is good for some minutes at least. After a freeze it
// is the wall clock that decides.
func (t *tokens) get(ctx context.Context, renew bool) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now().Round(0) // wall clock: the monotonic one stands still in a freeze
	if !renew && t.current.value != "" && now.Before(t.current.expires) {
		return t.current.value, nil
	}
	v, err := t.presign(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: minting a token: %w", ErrUnauthorized, err)
	}
	expires := now.Add(tokenLife)
	if t.creds != nil { // a token dies with the session credentials behind it
		if c, err := t.creds.Retrieve(ctx); err == nil && c.CanExpire && c.Expires.Before(expires) {
			expires = c.Expires
		}
	}
	t.current = token{value: v, expires: expires}
	return v, nil
}

// bearer adds the token to each request, and on 401 tries once with a new one:
// the API server's answer may rest on credentials that ended in a freeze.
type bearer struct {
	tokens *tokens
	next   http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.send(r, false)
	if err != nil || res.StatusCode != http.StatusUnauthorized || r.Body != nil {
		return res, err
	}
	_ = res.Body.Close()
	return b.send(r, true)
}

func (b bearer) send(r *http.Request, renew bool) (*http.Response, error) {
	v, err := b.tokens.get(r.Context(), renew)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+v)
	return b.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the transport below, to close its idle
// connections.
func (b bearer) WrappedRoundTripper() http.RoundTripper { return b.next }
