package cloud_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/elbridge/elbridge/local/cloud/core"
	elsts "github.com/elbridge/elbridge/local/cloud/sts"
)

func TestWrongSignatures(t *testing.T) {
	t.Parallel()
	w := start(t)
	calls := map[string]func(w *world) error{
		"events": func(w *world) error {
			_, err := w.events().ListRules(t.Context(), &eventbridge.ListRulesInput{})
			return err
		},
		"sqs": func(w *world) error { _, err := w.sqs().ListQueues(t.Context(), &sqs.ListQueuesInput{}); return err },
		"eks": func(w *world) error {
			_, err := w.eks().ListClusters(t.Context(), &eks.ListClustersInput{})
			return err
		},
		"sts": func(w *world) error {
			_, err := w.sts().GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
			return err
		},
	}
	unknown, wrongSecret, wrongToken := alice, alice, robot
	unknown.AccessKeyID, wrongSecret.SecretAccessKey, wrongToken.SessionToken = "AKIANOBODY", "guess", "guess"
	invalidToken := map[string]string{"events": "UnrecognizedClientException", "eks": "UnrecognizedClientException", "sts": "InvalidClientTokenId", "sqs": "InvalidClientTokenId"}
	mismatch := map[string]string{"events": "InvalidSignatureException", "eks": "InvalidSignatureException", "sts": "SignatureDoesNotMatch", "sqs": "SignatureDoesNotMatch"}
	for service, call := range calls {
		for name, tt := range map[string]struct {
			as   core.Principal
			want string
		}{
			"right": {alice, ""}, "right, temporary": {robot, ""},
			"unknown key": {unknown, invalidToken[service]}, "wrong token": {wrongToken, invalidToken[service]}, "wrong secret": {wrongSecret, mismatch[service]},
		} {
			if got := code(call(w.by(tt.as))); got != tt.want {
				t.Errorf("%s, %s: error %q, want %q", service, name, got, tt.want)
			}
		}
	}
}

// raw sends a request for GetCallerIdentity that change has tampered with
// after it was signed.
func (w *world) raw(t *testing.T, signedFor, body string, at time.Time, change func(*http.Request)) (int, string) {
	t.Helper()
	r := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/", strings.NewReader(body)))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	sum := sha256.Sum256([]byte(body))
	creds := aws.Credentials{AccessKeyID: alice.AccessKeyID, SecretAccessKey: alice.SecretAccessKey}
	if err := v4.NewSigner().SignHTTP(context.WithoutCancel(t.Context()), creds, r, hex.EncodeToString(sum[:]), signedFor, region, at); err != nil {
		t.Fatal(err)
	}
	change(r)
	resp := must[*http.Response](t)(http.DefaultClient.Do(r))
	defer resp.Body.Close()
	return resp.StatusCode, string(must[[]byte](t)(io.ReadAll(resp.Body)))
}

func TestTamperedRequests(t *testing.T) {
	t.Parallel()
	w := start(t)
	const body = "Action=GetCallerIdentity&Version=2011-06-15"
	now := time.Now()
	tests := map[string]struct {
		service string
		at      time.Time
		change  func(*http.Request)
		want    string // part of the answer
	}{
		"nothing": {"sts", now, func(*http.Request) {}, "<Arn>" + alice.ARN + "</Arn>"},
		"body": {"sts", now, func(r *http.Request) {
			r.Body = io.NopCloser(bytes.NewReader([]byte(strings.Replace(body, "2011", "2012", 1))))
		}, "SignatureDoesNotMatch"},
		"query":  {"sts", now, func(r *http.Request) { r.URL.RawQuery = "a=b" }, "SignatureDoesNotMatch"},
		"header": {"sts", now, func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, "SignatureDoesNotMatch"},
		"host":   {"sts", now, func(r *http.Request) { r.Host = "sts.amazonaws.com" }, "SignatureDoesNotMatch"},
		"date": {"sts", now, func(r *http.Request) {
			r.Header.Set("X-Amz-Date", now.UTC().Add(time.Second).Format("20060102T150405Z"))
		}, "SignatureDoesNotMatch"},
		"no signature":  {"sts", now, func(r *http.Request) { r.Header.Del("Authorization") }, "MissingAuthenticationToken"},
		"half of it":    {"sts", now, func(r *http.Request) { r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=x") }, "IncompleteSignature"},
		"other service": {"events", now, func(*http.Request) {}, "UnknownOperationException"},
		"old":           {"sts", now.Add(-16 * time.Minute), func(*http.Request) {}, "Signature expired"},
		"from tomorrow": {"sts", now.Add(24 * time.Hour), func(*http.Request) {}, "Signature not yet current"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, answer := w.raw(t, tt.service, body, tt.at, tt.change)
			if !strings.Contains(answer, tt.want) || (status == http.StatusOK) != (name == "nothing") {
				t.Errorf("%d %s\nwant %s in it", status, answer, tt.want)
			}
		})
	}
}

func TestIdentityAndRoles(t *testing.T) {
	t.Parallel()
	w := start(t)
	const role = "arn:aws:iam::444455556666:role/path/spoke"
	w.STS.AddRole(elsts.Role{ARN: role, ExternalID: "secret-handshake", Trusted: []string{alice.Account}})
	assume := func(w *world, externalID *string) (*sts.AssumeRoleOutput, error) {
		return w.sts().AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: aws.String(role), RoleSessionName: aws.String("registrar"), ExternalId: externalID})
	}
	if _, err := assume(w, nil); code(err) != "AccessDenied" {
		t.Errorf("without external id: %v, want AccessDenied", err)
	}
	if _, err := assume(w.by(other), aws.String("secret-handshake")); code(err) != "AccessDenied" {
		t.Errorf("from an account that is not trusted: %v, want AccessDenied", err)
	}
	out := must[*sts.AssumeRoleOutput](t)(assume(w.by(robot), aws.String("secret-handshake")))
	session := core.Principal{AccessKeyID: *out.Credentials.AccessKeyId, SecretAccessKey: *out.Credentials.SecretAccessKey, SessionToken: *out.Credentials.SessionToken}
	who := must[*sts.GetCallerIdentityOutput](t)(w.by(session).sts().GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{}))
	if *who.Arn != "arn:aws:sts::444455556666:assumed-role/spoke/registrar" || *who.Account != "444455556666" || *who.Arn != *out.AssumedRoleUser.Arn {
		t.Errorf("the session is %s in %s", *who.Arn, *who.Account)
	}
	if left := time.Until(*out.Credentials.Expiration); left < 59*time.Minute || left > time.Hour {
		t.Errorf("credentials expire in %v, want an hour", left)
	}
}
