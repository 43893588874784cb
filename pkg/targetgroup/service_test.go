package targetgroup_test

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

const webARN = "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/web/0123456789abcdef"

var web = claim.Group{ARN: webARN, Type: claim.IP, Family: claim.IPv4, Port: 8080}

// fault is an ELB error: "Code" or "Code: message". HealthUnavailable and what
// begins with Internal have the status 500, the others 400.
type fault string

// service speaks ELB's protocol to the unmodified SDK, and holds the targets of
// one group by ELB's rules: a call is carried out whole or refused whole.
type service struct {
	mu      sync.Mutex
	held    map[string]string                  // "id:port" -> zone
	calls   []string                           // "RegisterTargets 200"
	bad     map[string]fault                   // by id
	room    int                                // targets of the group; 0 is no limit
	full    netip.Prefix                       // a zone without room
	outside []netip.Prefix                     // of the VPC
	asks    string                             // the words by which a zone is asked for
	answer  map[string]func(url.Values) string // by action: a body, or "!Code: message"
}

func serve(t *testing.T, s *service) *targetgroup.Client {
	t.Helper()
	return targetgroup.New(elb.NewFromConfig(s.config(t)))
}

func (s *service) config(t *testing.T) aws.Config {
	t.Helper()
	s.held = map[string]string{}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return aws.Config{Region: "eu-west-1", BaseEndpoint: &srv.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "secret", "")}
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := r.ParseForm(); err != nil {
		panic(err)
	}
	action := r.Form.Get("Action")
	var body string
	switch do := s.answer[action]; {
	case do != nil:
		s.calls = append(s.calls, action)
		body = do(r.Form)
	case action == "RegisterTargets":
		body = s.register(members(r.Form))
	case action == "DeregisterTargets":
		body = s.deregister(members(r.Form))
	default:
		panic("unexpected " + action)
	}
	if body == "cut" {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "text/xml")
	if text, refused := strings.CutPrefix(body, "!"); refused {
		code, message, _ := strings.Cut(text, ": ")
		status := http.StatusBadRequest
		if code == "HealthUnavailable" || strings.HasPrefix(code, "Internal") {
			status = http.StatusInternalServerError
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, "<ErrorResponse><Error><Code>%s</Code><Message>%s</Message></Error><RequestId>1</RequestId></ErrorResponse>", code, escape(message))
		return
	}
	fmt.Fprintf(w, "<%[1]sResponse><%[1]sResult>%[2]s</%[1]sResult></%[1]sResponse>", action, body)
}

func escape(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		panic(err)
	}
	return b.String()
}

type member struct{ id, port, zone string }

func members(f url.Values) []member {
	var out []member
	for i := 1; ; i++ {
		at := "Targets.member." + strconv.Itoa(i) + "."
		if !f.Has(at + "Id") {
			return out
		}
		out = append(out, member{f.Get(at + "Id"), f.Get(at + "Port"), f.Get(at + "AvailabilityZone")})
	}
}

func (s *service) register(ms []member) string {
	s.calls = append(s.calls, fmt.Sprint("RegisterTargets ", len(ms)))
	grows := 0
	for _, m := range ms {
		addr := netip.MustParseAddr(m.id)
		if refusal := s.bad[m.id]; refusal != "" {
			return "!" + string(refusal)
		}
		outside := false
		for _, p := range s.outside {
			outside = outside || p.Contains(addr)
		}
		switch {
		case outside && m.zone == "":
			return "!ValidationError: " + fmt.Sprintf(s.asks, m.id)
		case !outside && m.zone != "":
			return "!ValidationError: The IP address '" + m.id + "' is within the VPC, and cannot have its Availability Zone overridden"
		case s.full.IsValid() && s.full.Contains(addr):
			return "!TooManyTargets: of the zone"
		}
		if _, held := s.held[m.id+":"+m.port]; !held {
			grows++
		}
	}
	if s.room > 0 && len(s.held)+grows > s.room {
		return "!TooManyTargets: of the group"
	}
	for _, m := range ms {
		s.held[m.id+":"+m.port] = m.zone
	}
	return ""
}

func (s *service) deregister(ms []member) string {
	s.calls = append(s.calls, fmt.Sprint("DeregisterTargets ", len(ms)))
	for _, m := range ms {
		if refusal := s.bad[m.id]; refusal != "" {
			return "!" + string(refusal)
		}
	}
	for _, m := range ms {
		delete(s.held, m.id+":"+m.port)
	}
	return ""
}

// zonesOf lists what is held as "10.1.0.1=all", the zone left out where it is none.
func (s *service) zonesOf(ks []claim.Key) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, k := range ks {
		text := k.ID
		switch zone, held := s.held[k.String()]; {
		case !held:
			text += " absent"
		case zone != "":
			text += "=" + zone
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// take returns the calls since the last take.
func (s *service) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.calls
	s.calls = nil
	return out
}

// missing returns those of ks that are not held.
func (s *service) missing(ks []claim.Key) []claim.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []claim.Key
	for _, k := range ks {
		if _, held := s.held[k.String()]; !held {
			out = append(out, k)
		}
	}
	return out
}

// keys returns n keys from first on, as "10.64.1.0"; ports are 8080.
func keys(first string, n int) []claim.Key {
	out := make([]claim.Key, n)
	for i, a := 0, netip.MustParseAddr(first); i < n; i, a = i+1, a.Next() {
		out[i] = claim.Key{ID: a.String(), Port: 8080}
	}
	return out
}
