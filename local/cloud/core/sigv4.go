package core

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	sigAlgorithm = "AWS4-HMAC-SHA256"
	sigTime      = "20060102T150405Z"
	maxClockSkew = 15 * time.Minute
	maxPresigned = 7 * 24 * time.Hour
	unsignedBody = "UNSIGNED-PAYLOAD"
)

// signature is what a request says about who signed it, and how.
type signature struct {
	accessKey     string
	date          string // yyyymmdd of the credential scope
	region        string
	service       string
	signedHeaders []string
	value         string // hex
	at            time.Time
	token         string
	presigned     bool
	expires       time.Duration // presigned only
}

// parseSignature reads the Authorization header or a presigned query. A
// request without either gives nil.
func parseSignature(r *http.Request) (*signature, error) {
	if header := r.Header.Get("Authorization"); header != "" {
		return parseHeader(r, header)
	}
	q := r.URL.Query()
	if q.Get("X-Amz-Signature") == "" {
		return nil, nil
	}
	s := &signature{presigned: true, value: q.Get("X-Amz-Signature"), token: q.Get("X-Amz-Security-Token"),
		signedHeaders: strings.Split(q.Get("X-Amz-SignedHeaders"), ";")}
	if q.Get("X-Amz-Algorithm") != sigAlgorithm {
		return nil, fmt.Errorf("algorithm %q, want %s", q.Get("X-Amz-Algorithm"), sigAlgorithm)
	}
	if err := s.scope(q.Get("X-Amz-Credential")); err != nil {
		return nil, err
	}
	if err := s.time(q.Get("X-Amz-Date")); err != nil {
		return nil, err
	}
	s.expires = maxClockSkew // STS accepts a presigned URL without a lifetime
	if text := q.Get("X-Amz-Expires"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || time.Duration(n)*time.Second > maxPresigned {
			return nil, fmt.Errorf("X-Amz-Expires %q, want seconds from 0 to %d", text, int(maxPresigned/time.Second))
		}
		s.expires = time.Duration(n) * time.Second
	}
	return s, nil
}

func parseHeader(r *http.Request, header string) (*signature, error) {
	rest, ok := strings.CutPrefix(header, sigAlgorithm+" ")
	if !ok {
		return nil, fmt.Errorf("authorization header does not begin with %s", sigAlgorithm)
	}
	part := map[string]string{}
	for _, field := range strings.Split(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		part[name] = value
	}
	if part["Signature"] == "" || part["SignedHeaders"] == "" {
		return nil, fmt.Errorf("authorization header has no Signature or no SignedHeaders")
	}
	s := &signature{value: part["Signature"], token: r.Header.Get("X-Amz-Security-Token"),
		signedHeaders: strings.Split(part["SignedHeaders"], ";")}
	if err := s.scope(part["Credential"]); err != nil {
		return nil, err
	}
	return s, s.time(r.Header.Get("X-Amz-Date"))
}

// scope reads AKID/20260102/eu-west-1/sts/aws4_request.
func (s *signature) scope(credential string) error {
	p := strings.Split(credential, "/")
	if len(p) != 5 || p[4] != "aws4_request" {
		return fmt.Errorf("credential %q, want key/date/region/service/aws4_request", credential)
	}
	s.accessKey, s.date, s.region, s.service = p[0], p[1], p[2], p[3]
	return nil
}

func (s *signature) time(text string) error {
	at, err := time.Parse(sigTime, text)
	if err != nil {
		return fmt.Errorf("X-Amz-Date %q, want the form %s", text, sigTime)
	}
	if !strings.HasPrefix(text, s.date) {
		return fmt.Errorf("date %s in the credential scope, %s in X-Amz-Date: want them equal", s.date, text)
	}
	s.at = at
	return nil
}

// verify recomputes the signature of r, whose body has been read.
func (s *signature) verify(r *http.Request, body []byte, secret string) bool {
	if !slices.Contains(s.signedHeaders, "host") {
		return false
	}
	request := sha256.Sum256([]byte(s.canonicalRequest(r, body)))
	scope := strings.Join([]string{s.date, s.region, s.service, "aws4_request"}, "/")
	toSign := strings.Join([]string{sigAlgorithm, s.at.Format(sigTime), scope, hex.EncodeToString(request[:])}, "\n")
	key := []byte("AWS4" + secret)
	for _, part := range []string{s.date, s.region, s.service, "aws4_request", toSign} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return hmac.Equal([]byte(hex.EncodeToString(key)), []byte(s.value))
}

func (s *signature) canonicalRequest(r *http.Request, body []byte) string {
	headers := slices.Clone(s.signedHeaders)
	slices.Sort(headers)
	var lines strings.Builder
	for _, name := range headers {
		lines.WriteString(name + ":" + headerValue(r, name) + "\n")
	}
	return strings.Join([]string{r.Method, canonicalPath(r.URL), canonicalQuery(r.URL.RawQuery), lines.String(),
		strings.Join(headers, ";"), s.payloadHash(r, body)}, "\n")
}

func (s *signature) payloadHash(r *http.Request, body []byte) string {
	sum := sha256.Sum256(body)
	actual := hex.EncodeToString(sum[:])
	if r.Header.Get("X-Amz-Content-Sha256") == unsignedBody {
		return unsignedBody
	}
	return actual // a client that states another hash than the body has fails here
}

func headerValue(r *http.Request, name string) string {
	switch name {
	case "host":
		return r.Host
	case "content-length":
		return strconv.FormatInt(r.ContentLength, 10)
	}
	values := r.Header.Values(name)
	clean := make([]string, len(values))
	for i, v := range values {
		clean[i] = strings.Join(strings.Fields(v), " ")
	}
	return strings.Join(clean, ",")
}

// canonicalPath escapes the path as it was sent once more, as every service
// but S3 does.
func canonicalPath(u *url.URL) string {
	path := u.EscapedPath()
	if path == "" {
		return "/"
	}
	return awsEscape(path, true)
}

func canonicalQuery(raw string) string {
	type pair struct{ name, value string }
	var pairs []pair
	for _, part := range strings.Split(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name, value = reescape(name), reescape(value)
		if name != "X-Amz-Signature" {
			pairs = append(pairs, pair{name, value})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return strings.Compare(a.value, b.value)
	})
	out := make([]string, len(pairs))
	for i, p := range pairs {
		out[i] = p.name + "=" + p.value
	}
	return strings.Join(out, "&")
}

func reescape(s string) string {
	plain, err := url.QueryUnescape(s)
	if err != nil {
		plain = s
	}
	return awsEscape(plain, false)
}

// awsEscape escapes all but the unreserved characters of RFC 3986.
func awsEscape(s string, keepSlash bool) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9',
			c == '-', c == '_', c == '.', c == '~', keepSlash && c == '/':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
