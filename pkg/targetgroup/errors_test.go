package targetgroup_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

var allClasses = []error{targetgroup.ErrNotFound, targetgroup.ErrInvalidTarget, targetgroup.ErrQuota, targetgroup.ErrThrottled, targetgroup.ErrDenied, targetgroup.ErrUnavailable}

func TestErrorClasses(t *testing.T) {
	tests := map[error]string{ // class -> codes
		targetgroup.ErrNotFound:      "TargetGroupNotFound",
		targetgroup.ErrInvalidTarget: "InvalidTarget ValidationError TooManyRegistrationsForTargetId",
		targetgroup.ErrQuota:         "TooManyTargets",
		targetgroup.ErrThrottled:     "Throttling ThrottlingException ThrottledException RequestLimitExceeded TooManyRequestsException RequestThrottled SlowDown",
		targetgroup.ErrDenied: "AccessDenied AccessDeniedException UnauthorizedOperation InvalidClientTokenId UnrecognizedClientException SignatureDoesNotMatch " +
			"ExpiredToken ExpiredTokenException MissingAuthenticationToken IncompleteSignature AuthFailure",
		targetgroup.ErrUnavailable: "HealthUnavailable InternalFailure InternalError ServiceUnavailable SomethingNew",
	}
	for class, codes := range tests {
		for code := range strings.FieldsSeq(codes) {
			refuse := func(url.Values) string { return "!" + code + ": as told" }
			s := &service{answer: map[string]func(url.Values) string{}}
			for _, action := range []string{"RegisterTargets", "DeregisterTargets", "DescribeTargetHealth", "DescribeTargetGroups", "DescribeTags"} {
				s.answer[action] = refuse
			}
			c := serve(t, s)
			ks := keys("10.64.1.7", 1)
			_, health := c.Health(t.Context(), web)
			_, describe := c.Describe(t.Context(), binding.GroupRef{ARN: webARN})
			_, tags := c.Tags(t.Context(), webARN)
			for what, err := range map[string]error{
				"Register": c.Register(t.Context(), web, ks, "").Err(), "Deregister": c.Deregister(t.Context(), web, ks).Err(),
				"Health": health, "Describe": describe, "Tags": tags,
			} {
				for _, other := range allClasses {
					if errors.Is(err, other) != errors.Is(class, other) {
						t.Errorf("%s, %s: %v; want class %q alone", what, code, err, class)
					}
				}
				if api, ok := errors.AsType[smithy.APIError](err); !ok || api.ErrorCode() != code {
					t.Errorf("%s, %s: the SDK's error is not in the chain of %v", what, code, err)
				}
			}
		}
	}
}

// The SDK's own budget for retries may be spent: what ELB said still counts.
func TestThrottledWithoutRetriesLeft_P058(t *testing.T) {
	s := &service{answer: map[string]func(url.Values) string{"DescribeTargetHealth": func(url.Values) string { return "!Throttling: Rate exceeded" }}}
	cfg := s.config(t)
	cfg.RetryMaxAttempts = 2
	cfg.Retryer = func() aws.Retryer { return broke{} }
	c := (&targetgroup.Accounts{AWS: cfg}).For(&binding.Binding{Group: binding.GroupRef{ARN: webARN}})
	if _, err := c.Health(t.Context(), web); !errors.Is(err, targetgroup.ErrThrottled) {
		t.Errorf("%v, want ErrThrottled", err)
	}
}

func TestAccounts(t *testing.T) {
	var assumed []url.Values
	denied := false
	s := &service{}
	s.answer = map[string]func(url.Values) string{
		"AssumeRole": func(v url.Values) string {
			assumed = append(assumed, v)
			if denied {
				return "!AccessDenied: not you"
			}
			return "<Credentials><AccessKeyId>ASIAX</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration></Credentials>"
		},
		"DescribeTargetHealth": func(url.Values) string { return "" },
	}
	accounts := &targetgroup.Accounts{AWS: s.config(t)}
	of := func(role, id, region string) *targetgroup.Client {
		return accounts.For(&binding.Binding{RoleARN: role, ExternalID: id,
			Group: binding.GroupRef{ARN: "arn:aws:elasticloadbalancing:" + region + ":444455556666:targetgroup/web/0123456789abcdef"}})
	}
	const role = "arn:aws:iam::444455556666:role/targets"
	if first, second := of(role, "a", "eu-west-1"), of(role, "a", "eu-west-1"); first != second {
		t.Error("the same account has two clients")
	}
	seen := map[*targetgroup.Client]bool{of("", "", "eu-west-1"): true, of("", "", "us-east-1"): true, of(role, "", "eu-west-1"): true, of(role, "a", "eu-west-1"): true}
	if len(seen) != 4 {
		t.Error("two roles, external ids or regions share a client")
	}
	if accounts.For(&binding.Binding{Group: binding.GroupRef{Name: "web"}}) == nil {
		t.Error("no client for a group by name")
	}

	c := of(role, "a", "eu-west-1")
	for range 2 {
		if _, err := c.Health(t.Context(), web); err != nil {
			t.Fatal(err)
		}
	}
	if len(assumed) != 1 || assumed[0].Get("RoleArn") != role || assumed[0].Get("ExternalId") != "a" {
		t.Errorf("the role was assumed by %v, want once, with the external id", assumed)
	}

	denied = true
	k := claim.Key{ID: "10.64.1.7", Port: 8080}
	if err := of(role, "b", "eu-west-1").Register(t.Context(), web, []claim.Key{k}, "").Failed[k]; !errors.Is(err, targetgroup.ErrDenied) {
		t.Errorf("a role that can't be assumed: %v, want ErrDenied", err)
	}
}

// broke is a retryer that would like to try again and may not.
type broke struct{ aws.NopRetryer }

func (broke) IsErrorRetryable(error) bool { return true }
func (broke) MaxAttempts() int            { return 2 }
func (broke) GetRetryToken(context.Context, error) (func(error) error, error) {
	return nil, errors.New("retry quota exceeded")
}
