package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"pgregory.net/rapid"
)

// What the SDK's signer signs verifies, and no longer with another body,
// secret or path.
func TestSignaturesOfTheSDK(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zA-Z0-9 /+=&%äé~*().:,;_-]{0,12}`)
		body := text.Draw(t, "body")
		target := "https://sts.eu-west-1.amazonaws.com/" + url.PathEscape(text.Draw(t, "path")) + "?" + url.Values{text.Draw(t, "k"): {text.Draw(t, "v"), text.Draw(t, "w")}}.Encode()
		r, err := http.NewRequestWithContext(context.Background(), rapid.SampledFrom([]string{"GET", "POST"}).Draw(t, "method"), target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-K8s-Aws-Id", "  "+text.Draw(t, "header")+"  ")
		sum := sha256.Sum256([]byte(body))
		creds := aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret", SessionToken: rapid.SampledFrom([]string{"", "a/b+c="}).Draw(t, "token")}
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		if rapid.Bool().Draw(t, "presigned") {
			signed, headers, err := v4.NewSigner().PresignHTTP(context.Background(), creds, r, hex.EncodeToString(sum[:]), "sts", "eu-west-1", at)
			if err != nil {
				t.Fatal(err)
			}
			if r.URL, err = url.Parse(signed); err != nil {
				t.Fatal(err)
			}
			r.Header = headers
		} else if err := v4.NewSigner().SignHTTP(context.Background(), creds, r, hex.EncodeToString(sum[:]), "sts", "eu-west-1", at); err != nil {
			t.Fatal(err)
		}
		r.Host = "sts.eu-west-1.amazonaws.com"
		s, err := parseSignature(r)
		if err != nil || s == nil {
			t.Fatalf("parse: %v", err)
		}
		if s.token != creds.SessionToken || s.region != "eu-west-1" || s.service != "sts" || !s.at.Equal(at) {
			t.Fatalf("signature %+v", s)
		}
		if !s.verify(r, []byte(body), "secret") {
			t.Fatalf("refused: %s", s.canonicalRequest(r, []byte(body)))
		}
		if s.verify(r, []byte(body+"x"), "secret") || s.verify(r, []byte(body), "secreT") {
			t.Fatal("accepted with another body or secret")
		}
		r.URL.Path += "x"
		r.URL.RawPath = ""
		if s.verify(r, []byte(body), "secret") {
			t.Fatal("accepted with another path")
		}
	})
}

// FuzzSignature: whatever a request says about its signature, parsing and
// verifying end without a panic, and nothing made up verifies.
func FuzzSignature(f *testing.F) {
	f.Add("AWS4-HMAC-SHA256 Credential=AKID/20260102/eu-west-1/sts/aws4_request, SignedHeaders=host;x-amz-date, Signature=00", "20260102T030405Z", "")
	f.Add("", "", "X-Amz-Signature=0&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a/20260102/r/s/aws4_request&X-Amz-Date=20260102T030405Z&X-Amz-SignedHeaders=host")
	f.Fuzz(func(t *testing.T, authorization, date, query string) {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.URL.RawQuery = query
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		r.Header.Set("X-Amz-Date", date)
		s, err := parseSignature(r)
		if err != nil || s == nil {
			return
		}
		if s.verify(r, nil, "a secret that nobody knows") {
			t.Errorf("verified: %+v", s)
		}
	})
}
