package token

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
)

// FuzzParse: no token makes the verifier panic, and what it lets through to
// STS names an STS host and the one action.
func FuzzParse(f *testing.F) {
	f.Add("https://sts.eu-west-1.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Algorithm=AWS4-HMAC-SHA256" +
		"&X-Amz-Credential=a&X-Amz-Date=20260102T030405Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host%3Bx-k8s-aws-id&X-Amz-Signature=00")
	f.Add("https://sts.amazonaws.com@evil.example/")
	v := &Verifier{Clock: core.NewFakeClock(time.Date(2026, 1, 2, 3, 5, 0, 0, time.UTC))}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := v.parse(prefix + base64.RawURLEncoding.EncodeToString([]byte(text)))
		if err != nil {
			return
		}
		q := u.Query()
		if u.Scheme != "https" || !stsHost(u.Hostname()) || u.Port() != "" || q.Get("Action")+q.Get("action")+q.Get("ACTION") == "" && len(q) > 9 {
			t.Errorf("let through: %s", u)
		}
	})
}

func TestSTSHosts(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"sts.amazonaws.com": true, "sts.eu-west-1.amazonaws.com": true, "sts.ap-southeast-2.amazonaws.com": true, "sts-fips.us-east-1.amazonaws.com": true,
		"sts-fips.eu-west-1.amazonaws.com": false, "sts.eu-west-1.api.aws": false, "sts.cn-north-1.amazonaws.com.cn": false, "sts.amazonaws.com:443": false,
		"sts.evil.example": false, "xsts.eu-west-1.amazonaws.com": false, "127.0.0.1": false, "": false,
	} {
		if got := stsHost(host); got != want {
			t.Errorf("stsHost(%q) = %v, want %v", host, got, want)
		}
	}
}
