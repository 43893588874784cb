package cluster_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/elbridge/elbridge/pkg/cluster"
)

// presigned is the URL in a request's token.
func presigned(t *testing.T, r *http.Request) *url.URL {
	t.Helper()
	encoded, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer k8s-aws-v1.")
	if !ok {
		t.Fatalf("Authorization %q", r.Header.Get("Authorization"))
	}
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestToken(t *testing.T) {
	s := newServer(t, func(*http.Request) any { return pod("web-0") })
	tests := map[string]struct{ region, host string }{
		"the function's own region": {"", "sts.eu-west-1.amazonaws.com"},
		"the cluster's":             {"us-east-2", "sts.us-east-2.amazonaws.com"},
		"China":                     {"cn-north-1", "sts.cn-north-1.amazonaws.com.cn"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
			t.Setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:9")
			w := newWorld(s)
			elsewhere := "http://127.0.0.1:9"
			d := &cluster.Dialer{AWS: aws.Config{Region: "eu-west-1", BaseEndpoint: &elsewhere, Credentials: w}, EKS: w, Now: w.Now}
			c := d.Client(cluster.Config{Name: "prod", EKS: &cluster.EKS{Name: "prod-eks", Region: tt.region}})
			s.asked()
			if _, err := c.Pod(t.Context(), "ingress", "web-0"); err != nil {
				t.Fatal(err)
			}
			u := presigned(t, s.requests()[0])
			q := u.Query()
			if u.Scheme != "https" || u.Host != tt.host || u.Path != "/" {
				t.Errorf("signed for %s://%s%s, want https://%s/ whatever the override", u.Scheme, u.Host, u.Path, tt.host)
			}
			if q.Get("Action") != "GetCallerIdentity" || q.Get("X-Amz-Expires") != "60" || q.Get("X-Amz-Security-Token") == "" {
				t.Errorf("query %v, want GetCallerIdentity with X-Amz-Expires 60 and the session token", q)
			}
			if !slices.Contains(strings.Split(q.Get("X-Amz-SignedHeaders"), ";"), "x-k8s-aws-id") {
				t.Errorf("signed headers %s, want x-k8s-aws-id among them", q.Get("X-Amz-SignedHeaders"))
			}
			for name := range q { // one more than these, and it is refused
				if !slices.Contains([]string{"Action", "Version", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-Security-Token", "X-Amz-Signature", "X-Amz-SignedHeaders"}, name) {
					t.Errorf("query parameter %s", name)
				}
			}
		})
	}
}

func TestTokenAge(t *testing.T) {
	tests := map[string]struct {
		life  time.Duration // of the credentials
		steps string        // "+d" time passes, "=" the token is the same, "!" it is another
	}{
		"P100 kept for less than 10 min":           {0, "= +9m59s = +1s ! +9m59s = +1s !"},
		"P101 a freeze of hours":                   {0, "= +7h ! ="},
		"P101 ends with the credentials behind it": {4 * time.Minute, "= +3m59s = +1s ! +3m59s = +1s !"},
		"long-lived credentials don't stretch it":  {6 * time.Hour, "= +10m !"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(*http.Request) any { return pod("web-0") })
			w := newWorld(s)
			w.life = tt.life
			c := w.client()
			ask := func() string {
				if _, err := c.Pod(t.Context(), "ingress", "web-0"); err != nil {
					t.Fatal(err)
				}
				all := s.requests()
				return all[len(all)-1].Header.Get("Authorization")
			}
			last := ask()
			for i, step := range strings.Fields(tt.steps) {
				if d, ok := strings.CutPrefix(step, "+"); ok {
					wait, err := time.ParseDuration(d)
					if err != nil {
						t.Fatal(err)
					}
					w.pass(wait)
					continue
				}
				now := ask()
				if (now == last) != (step == "=") {
					t.Fatalf("step %d, %s: same token: %v", i, step, now == last)
				}
				last = now
			}
		})
	}
}

func TestUnauthorizedRenewsOnce_P100(t *testing.T) {
	tests := map[string]struct {
		refusals int // 401s before the first success
		requests int
		err      error
	}{
		"accepted":            {0, 1, nil},
		"once":                {1, 2, nil},
		"again and again":     {99, 2, cluster.ErrUnauthorized},
		"for two, one a call": {2, 2, cluster.ErrUnauthorized},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			left := tt.refusals
			s := newServer(t, func(*http.Request) any {
				if left > 0 {
					left--
					return status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, 0)
				}
				return pod("web-0")
			})
			w := newWorld(s)
			_, err := w.client().Pod(t.Context(), "ingress", "web-0")
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			all := s.requests()
			if len(all) != tt.requests {
				t.Fatalf("%d requests, want %d", len(all), tt.requests)
			}
			if len(all) == 2 && all[0].Header.Get("Authorization") == all[1].Header.Get("Authorization") {
				t.Error("the second request has the first one's token")
			}
		})
	}
}
