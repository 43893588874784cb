// Package token reviews the bearer tokens of EKS clusters as
// aws-iam-authenticator does: a token is a presigned GetCallerIdentity URL, and
// who presents it is whoever STS says signed it, for this cluster. The URL names
// the regional STS host; the call is made to the local STS instead.
package token

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
)

const (
	prefix        = "k8s-aws-v1."
	clusterHeader = "x-k8s-aws-id"
	maxToken      = 4096             // bytes
	lifetime      = 15 * time.Minute // from X-Amz-Date, whatever X-Amz-Expires says
	maxExpires    = 900              // seconds
	dateForm      = "20060102T150405Z"
)

// ErrRefused is the class of all reasons to refuse a token.
var ErrRefused = errors.New("token refused")

// Verifier checks tokens.
type Verifier struct {
	Clock core.Clock
	// STS carries the call of GetCallerIdentity out; it has to reach the local
	// STS whatever host the request names.
	STS http.RoundTripper
}

// Verify returns the ARN of who made the token for the cluster.
func (v *Verifier) Verify(ctx context.Context, token, cluster string) (arn string, err error) {
	u, err := v.parse(token)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrRefused, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrRefused, err)
	}
	r.Header.Set(clusterHeader, cluster)
	r.Header.Set("Accept", "application/json")
	answer, err := v.STS.RoundTrip(r) // a transport follows no redirects
	if err != nil {
		return "", fmt.Errorf("asking STS who made the token: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err != nil {
		return "", fmt.Errorf("reading STS's answer: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%w: STS answered %d: %s", ErrRefused, answer.StatusCode, body)
	}
	var identity struct {
		GetCallerIdentityResponse struct {
			GetCallerIdentityResult struct{ Arn string }
		}
	}
	if err := json.Unmarshal(body, &identity); err != nil {
		return "", fmt.Errorf("%w: STS's answer is not JSON: %w", ErrRefused, err)
	}
	if arn = identity.GetCallerIdentityResponse.GetCallerIdentityResult.Arn; arn == "" {
		return "", fmt.Errorf("%w: STS gave no ARN: %s", ErrRefused, body)
	}
	return arn, nil
}

// parse checks all that can be seen without STS.
func (v *Verifier) parse(token string) (*url.URL, error) {
	if len(token) > maxToken {
		return nil, fmt.Errorf("%d bytes, want at most %d", len(token), maxToken)
	}
	encoded, ok := strings.CutPrefix(token, prefix)
	if !ok {
		return nil, fmt.Errorf("it does not begin with %s", prefix)
	}
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("it is not base64url without padding: %w", err)
	}
	u, err := url.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("it is not a URL: %w", err)
	}
	switch {
	case u.Scheme != "https":
		return nil, fmt.Errorf("scheme %q, want https", u.Scheme)
	case !stsHost(u.Host):
		return nil, fmt.Errorf("host %q is not one of STS", u.Host)
	case u.Path != "/":
		return nil, fmt.Errorf("path %q, want /", u.Path)
	case u.User != nil || u.Fragment != "":
		return nil, errors.New("the URL has a user or a fragment")
	}
	return u, v.checkQuery(u.RawQuery)
}

var hostForm = regexp.MustCompile(`^sts(-fips)?\.([a-z]{2}(-[a-z]+)+-\d)\.amazonaws\.com$`)

// stsHost says whether host is the global or a regional endpoint of the aws
// partition. FIPS endpoints are in the United States only.
func stsHost(host string) bool {
	if host == "sts.amazonaws.com" {
		return true
	}
	m := hostForm.FindStringSubmatch(host)
	return m != nil && (m[1] == "" || strings.HasPrefix(m[2], "us-"))
}

var allowed = []string{"action", "version", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires",
	"x-amz-security-token", "x-amz-signature", "x-amz-signedheaders"}

func (v *Verifier) checkQuery(raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	value := map[string]string{}
	for name, values := range query {
		lower := strings.ToLower(name)
		if _, twice := value[lower]; twice || len(values) != 1 {
			return fmt.Errorf("query parameter %q is there more than once", name)
		}
		if !slices.Contains(allowed, lower) {
			return fmt.Errorf("query parameter %q is not allowed", name)
		}
		value[lower] = values[0]
	}
	if value["action"] != "GetCallerIdentity" {
		return fmt.Errorf("action %q, want GetCallerIdentity", value["action"])
	}
	if !slices.Contains(strings.Split(strings.ToLower(value["x-amz-signedheaders"]), ";"), clusterHeader) {
		return fmt.Errorf("signed headers %q, want %s among them", value["x-amz-signedheaders"], clusterHeader)
	}
	if n, err := strconv.Atoi(value["x-amz-expires"]); err != nil || n < 0 || n > maxExpires {
		return fmt.Errorf("X-Amz-Expires %q, want a number from 0 to %d", value["x-amz-expires"], maxExpires)
	}
	return v.checkDate(value["x-amz-date"])
}

func (v *Verifier) checkDate(text string) error {
	at, err := time.Parse(dateForm, text)
	if err != nil {
		return fmt.Errorf("X-Amz-Date %q, want the form %s", text, dateForm)
	}
	if now := v.Clock.Now(); now.After(at.Add(lifetime)) {
		return fmt.Errorf("X-Amz-Date %s is more than %v ago", text, lifetime)
	}
	return nil
}
