package cloud_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/elbridge/elbridge/local/cloud/core"
	eleks "github.com/elbridge/elbridge/local/cloud/eks"
)

func (w *world) cluster(t *testing.T, name string) {
	t.Helper()
	if err := w.Clusters.Put(eleks.Cluster{Name: name, Account: alice.Account, Region: region, Endpoint: "https://127.0.0.1:6443", CA: []byte("PEM"), Version: "1.37",
		Access: map[string]eleks.AccessEntry{
			"arn:aws:iam::111122223333:role/registrar": {Username: "elbridge:{{SessionName}}", Groups: []string{"elbridge:registrar"}},
			alice.ARN: {Groups: []string{"elbridge:readers"}},
		}}); err != nil {
		t.Fatal(err)
	}
}

// mint makes a token as a client does: presigned for the regional host, with
// the cluster's name as a signed header.
func mint(t *testing.T, w *world, cluster, host, expires string, extra ...string) string {
	t.Helper()
	cfg := w.config()
	cfg.BaseEndpoint = nil
	query := func(stack *middleware.Stack) error {
		return stack.Build.Add(middleware.BuildMiddlewareFunc("query", func(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
			q := in.Request.(*smithyhttp.Request).URL.Query()
			if expires != "" {
				q.Set("X-Amz-Expires", expires)
			}
			for i := 0; i+1 < len(extra); i += 2 {
				q.Set(extra[i], extra[i+1])
			}
			in.Request.(*smithyhttp.Request).URL.RawQuery = q.Encode()
			return next.HandleBuild(ctx, in)
		}), middleware.After)
	}
	client := sts.NewFromConfig(cfg, func(o *sts.Options) {
		if host != "" {
			o.BaseEndpoint = &host
		}
		o.APIOptions = append(o.APIOptions, query)
		if cluster != "" {
			o.APIOptions = append(o.APIOptions, smithyhttp.SetHeaderValue("x-k8s-aws-id", cluster))
		}
	})
	r, err := sts.NewPresignClient(client).PresignGetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil {
		t.Fatal(err)
	}
	return "k8s-aws-v1." + base64.RawURLEncoding.EncodeToString([]byte(r.URL))
}

// change rewrites the URL in a token.
func change(t *testing.T, token string, do func(u *url.URL, q url.Values)) string {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, "k8s-aws-v1."))
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	do(u, q)
	u.RawQuery = q.Encode()
	return "k8s-aws-v1." + base64.RawURLEncoding.EncodeToString([]byte(u.String()))
}

type tokenStatus struct {
	Authenticated bool
	User          struct {
		Username string
		Groups   []string
	}
	Error string
}

func (w *world) review(t *testing.T, cluster, token string) tokenStatus {
	t.Helper()
	in, err := json.Marshal(map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": map[string]string{"token": token}})
	if err != nil {
		t.Fatal(err)
	}
	_, body := w.control(t, "POST", "/_local/clusters/"+cluster+"/token", string(in))
	var out struct{ Status tokenStatus }
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return out.Status
}

func TestGoodTokens(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.cluster(t, "local")
	tests := map[string]struct {
		as           core.Principal
		user, groups string
	}{
		"role, by its session": {robot, "elbridge:run-1", "elbridge:registrar"},
		"user":                 {alice, alice.ARN, "elbridge:readers"},
	}
	for name, tt := range tests {
		got := w.review(t, "local", mint(t, w.by(tt.as), "local", "", "60"))
		if !got.Authenticated || got.User.Username != tt.user || strings.Join(got.User.Groups, " ") != tt.groups {
			t.Errorf("%s: %+v, want %s in %s", name, got, tt.user, tt.groups)
		}
	}
}

func TestBadTokensAreRefused_P103(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.cluster(t, "local")
	w.cluster(t, "prod")
	r := w.by(robot)
	good := mint(t, r, "local", "", "60")
	thief := robot
	thief.SecretAccessKey = "guess"
	set := func(name, value string) string {
		return change(t, good, func(_ *url.URL, q url.Values) { q.Set(name, value) })
	}
	at := func(do func(u *url.URL)) string { return change(t, good, func(u *url.URL, _ url.Values) { do(u) }) }
	ago := func(d time.Duration) string {
		return set("X-Amz-Date", time.Now().UTC().Add(-d).Format("20060102T150405Z"))
	}
	tests := map[string]struct{ token, cluster, want string }{
		"another cluster's":               {mint(t, r, "prod", "", "60"), "local", "SignatureDoesNotMatch"},
		"cluster that does not exist":     {mint(t, r, "none", "", "60"), "none", "no cluster"},
		"no access entry":                 {mint(t, w.by(other), "local", "", "60"), "local", "no access entry"},
		"wrong secret":                    {mint(t, w.by(thief), "local", "", "60"), "local", "SignatureDoesNotMatch"},
		"cluster's name not signed":       {mint(t, r, "", "", "60"), "local", "x-k8s-aws-id"},
		"no X-Amz-Expires":                {mint(t, r, "local", "", ""), "local", "X-Amz-Expires"},
		"X-Amz-Expires of 901":            {mint(t, r, "local", "", "901"), "local", "X-Amz-Expires"},
		"signed for the local endpoint":   {mint(t, r, "local", w.url, "60"), "local", "scheme"},
		"host with a port":                {mint(t, r, "local", "https://sts.eu-west-1.amazonaws.com:443", "60"), "local", "host"},
		"host of somebody else":           {mint(t, r, "local", "https://sts.eu-west-1.amazonaws.com.evil.example", "60"), "local", "host"},
		"dual-stack host":                 {mint(t, r, "local", "https://sts.eu-west-1.api.aws", "60"), "local", "host"},
		"fips host outside the US":        {mint(t, r, "local", "https://sts-fips.eu-west-1.amazonaws.com", "60"), "local", "host"},
		"another action, signed":          {mint(t, r, "local", "", "60", "Action", "GetSessionToken"), "local", "action"},
		"extra parameter, signed":         {mint(t, r, "local", "", "60", "Extra", "1"), "local", "not allowed"},
		"parameter twice in another case": {mint(t, r, "local", "", "60", "ACTION", "GetCallerIdentity"), "local", "more than once"},
		"signature tampered with":         {set("X-Amz-Signature", strings.Repeat("0", 64)), "local", "SignatureDoesNotMatch"},
		"other region in the scope": {change(t, good, func(_ *url.URL, q url.Values) {
			q.Set("X-Amz-Credential", strings.Replace(q.Get("X-Amz-Credential"), "eu-west-1", "eu-west-2", 1))
		}), "local", "SignatureDoesNotMatch"},
		"path":           {at(func(u *url.URL) { u.Path = "/x" }), "local", "path"},
		"over 4096":      {"k8s-aws-v1." + strings.Repeat("a", 4096), "local", "4096"},
		"no prefix":      {strings.TrimPrefix(good, "k8s-aws-v1."), "local", "does not begin"},
		"padded":         {good + "=", "local", "base64"},
		"P101 expired":   {ago(16 * time.Minute), "local", "ago"},
		"date rewritten": {ago(time.Minute), "local", "SignatureDoesNotMatch"},
		"empty":          {"", "local", "does not begin"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := w.review(t, tt.cluster, tt.token)
			if got.Authenticated || !strings.Contains(got.Error, tt.want) {
				t.Errorf("%+v, want it refused with %q", got, tt.want)
			}
		})
	}
}

// A token lives 15 minutes whatever its X-Amz-Expires says.
func TestTokenOutlivesItsExpires_P100(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.cluster(t, "local")
	if got := w.review(t, "local", mint(t, w.by(robot), "local", "", "0")); !got.Authenticated {
		t.Errorf("X-Amz-Expires=0: %+v, want it accepted", got)
	}
}

func TestDescribeCluster(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.cluster(t, "prod")
	w.cluster(t, "local")
	name := "local"
	c := must[*eks.DescribeClusterOutput](t)(w.eks().DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: &name})).Cluster
	ca, err := base64.StdEncoding.DecodeString(*c.CertificateAuthority.Data)
	if err != nil || string(ca) != "PEM" || *c.Endpoint != "https://127.0.0.1:6443" || c.Status != "ACTIVE" || *c.Version != "1.37" ||
		*c.Arn != "arn:aws:eks:eu-west-1:111122223333:cluster/local" || c.KubernetesNetworkConfig.IpFamily != "ipv4" || !c.CreatedAt.Equal(w.clock.Now()) {
		t.Errorf("cluster %+v, CA %q (%v)", c, ca, err)
	}
	if got := must[*eks.ListClustersOutput](t)(w.eks().ListClusters(t.Context(), &eks.ListClustersInput{})).Clusters; strings.Join(got, " ") != "local prod" {
		t.Errorf("clusters %v", got)
	}
	for where, elsewhere := range map[string]*world{"account": w.by(other), "region": w.at("us-east-1")} {
		if _, err := elsewhere.eks().DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: &name}); code(err) != "ResourceNotFoundException" {
			t.Errorf("from another %s: %v, want ResourceNotFoundException", where, err)
		}
	}
}
