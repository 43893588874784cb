package targetgroup

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
)

// answers is a service that gives one answer, without a network.
type answers struct {
	status int
	body   []byte
	cut    error // ends the body
	closed int
}

func (a *answers) Do(*http.Request) (*http.Response, error) {
	body := io.Reader(bytes.NewReader(a.body))
	if a.cut != nil {
		body = io.MultiReader(body, failed{a.cut})
	}
	return &http.Response{StatusCode: a.status, Header: http.Header{}, Body: &reread{body, closer(func() { a.closed++ })}}, nil
}

type closer func()

func (c closer) Close() error { c(); return nil }

func (a *answers) client() *elb.Client {
	return elb.NewFromConfig(aws.Config{Region: "eu-west-1", BaseEndpoint: new("http://elb.invalid"), HTTPClient: a, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "secret", "")})
}

// sdkOnly leaves the reading to the SDK.
type sdkOnly struct{ *elb.Client }

func (s sdkOnly) DescribeTargetHealth(ctx context.Context, in *elb.DescribeTargetHealthInput, _ ...func(*elb.Options)) (*elb.DescribeTargetHealthOutput, error) {
	return s.Client.DescribeTargetHealth(ctx, in)
}

var shop = claim.Group{ARN: "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/shop/0123456789abcdef", Type: claim.IP, Family: claim.IPv4, Port: 8080}

// both reads an answer as Health does, and as it would by the SDK alone.
func both(t testing.TB, body []byte) (lean, sdk map[claim.Key]plan.Target, leanErr, sdkErr error) {
	t.Helper()
	a := &answers{status: http.StatusOK, body: body}
	lean, leanErr = New(a.client()).Health(t.Context(), shop)
	if a.closed != 1 {
		t.Errorf("the body was closed %d times, want once", a.closed)
	}
	sdk, sdkErr = New(sdkOnly{a.client()}).Health(t.Context(), shop)
	return lean, sdk, leanErr, sdkErr
}

// elements are what an answer is made of.
type elements struct {
	XMLName xml.Name `xml:"DescribeTargetHealthResponse"`
	Space   string   `xml:"xmlns,attr,omitempty"`
	Members []member `xml:"DescribeTargetHealthResult>TargetHealthDescriptions>member"`
	Request string   `xml:"ResponseMetadata>RequestId"`
}

type member struct {
	Port     string   `xml:"HealthCheckPort,omitempty"`
	Target   *subject `xml:"Target"`
	Health   *state   `xml:"TargetHealth"`
	Anomaly  *anomaly `xml:"AnomalyDetection"`
	Override *state   `xml:"AdministrativeOverride"`
}

type subject struct {
	ID   string  `xml:"Id"`
	Port *int    `xml:"Port"`
	Zone *string `xml:"AvailabilityZone"`
	Quic string  `xml:"QuicServerId,omitempty"`
}

type state struct {
	Description string `xml:",omitempty"`
	Reason      string `xml:",omitempty"`
	State       string
}

type anomaly struct{ MitigationInEffect, Result string }

// render writes n random targets as the service does; odd also puts what has to
// be escaped into texts.
func render(r *rand.Rand, n int, odd bool) []byte {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	e := elements{Space: pick("", "http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/"), Request: "c534f810-f389-11e5-9192-3fff33344cfa"}
	for i := range n {
		m := member{Port: pick("", "8080", "traffic-port"), Target: &subject{ID: fmt.Sprintf("10.%d.%d.%d", r.IntN(256), i/256, i%256)}}
		if r.IntN(8) > 0 {
			m.Target.Port = new(1 + r.IntN(65535))
		}
		if r.IntN(3) > 0 {
			m.Target.Zone = new(pick("eu-west-1a", "eu-west-1b", "all", ""))
		}
		if r.IntN(16) > 0 {
			m.Health = &state{State: pick("healthy", "unhealthy", "initial", "draining", "unused", "unavailable", "unhealthy.draining", "novel"),
				Reason:      pick("", "", "Target.FailedHealthChecks", "Target.DeregistrationInProgress", "Elb.InternalError"),
				Description: pick("", "Health checks failed with these codes: [502]", "Target deregistration is in progress")}
		}
		if r.IntN(4) == 0 {
			m.Anomaly = &anomaly{"no", "normal"}
		}
		if r.IntN(4) == 0 {
			m.Override = &state{State: "no_override", Reason: "AdministrativeOverride.NoOverride", Description: "No override is currently active on target"}
		}
		if odd {
			m.Target.Zone = new(pick("a&b", `"`, "<", ">", "'", "\n", "é", "\u2028", "]]>"))
		}
		e.Members = append(e.Members, m)
	}
	var out bytes.Buffer
	out.WriteString(pick("", `<?xml version="1.0"?>`, xml.Header, `<?xml version="1.0" encoding="UTF-8"?>`))
	enc := xml.NewEncoder(&out)
	if r.IntN(2) == 0 {
		enc.Indent("", "  ")
	}
	if err := enc.Encode(e); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// what is what Health asks of a description.
func what(d types.TargetHealthDescription) string {
	text := "no target"
	if d.Target != nil {
		text = fmt.Sprintf("%q %d %v", aws.ToString(d.Target.Id), aws.ToInt32(d.Target.Port), d.Target.AvailabilityZone != nil)
		text += fmt.Sprint(d.Target.Id != nil, d.Target.Port != nil) + aws.ToString(d.Target.AvailabilityZone)
	}
	if d.TargetHealth != nil {
		text += fmt.Sprintf(" %q %q", d.TargetHealth.State, d.TargetHealth.Reason)
	}
	return text
}

func same(a, b []types.TargetHealthDescription) bool {
	if len(a) != len(b) || (a == nil) != (b == nil) {
		return false
	}
	for i := range a {
		if what(a[i]) != what(b[i]) {
			return false
		}
	}
	return true
}

// sdkRead is what the SDK reads in an answer.
func sdkRead(t testing.TB, body []byte) ([]types.TargetHealthDescription, error) {
	t.Helper()
	a := &answers{status: http.StatusOK, body: body}
	out, err := a.client().DescribeTargetHealth(t.Context(), &elb.DescribeTargetHealthInput{TargetGroupArn: &shop.ARN})
	if err != nil {
		return nil, err
	}
	return out.TargetHealthDescriptions, nil
}

func TestLeanReadsAsTheSDKDoes(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 18))
		body := render(r, r.IntN(40), false)
		all, ok := scanHealth(body)
		if want, err := sdkRead(t, body); err != nil || !same(all, want) || !ok && len(want) > 0 {
			t.Fatalf("seed %d: read %v, and %d targets; the SDK %d, error %v\n%s", seed, ok, len(all), len(want), err, body)
		}
	}
}

func TestLeanReadsEmptyElements(t *testing.T) {
	for _, within := range []string{"<TargetHealthDescriptions/>", "<TargetHealthDescriptions><member/><other><Target/><TargetHealth/></other></TargetHealthDescriptions>",
		"<TARGETHEALTHDESCRIPTIONS>\n<member><target><ID/><availabilityzone/></target></member>\r\n</TARGETHEALTHDESCRIPTIONS>"} {
		body := []byte("<DescribeTargetHealthResponse><DescribeTargetHealthResult>" + within + "</DescribeTargetHealthResult><ResponseMetadata/></DescribeTargetHealthResponse>\n")
		all, ok := scanHealth(body)
		if want, err := sdkRead(t, body); err != nil || !ok || !same(all, want) {
			t.Errorf("%s: read %v, %v; the SDK %v, error %v", within, ok, all, want, err)
		}
	}
}

// What has to be escaped, and what is written in any other way than the service's,
// the SDK reads: the answer is the same.
func TestLeanLeavesTheRestToTheSDK(t *testing.T) {
	whole := string(render(rand.New(rand.NewPCG(1, 1)), 3, false))
	tests := map[string]string{
		"comment":            strings.Replace(whole, "<member>", "<!-- one --><member>", 1),
		"CDATA":              strings.Replace(whole, "<Id>10", "<Id><![CDATA[10]]>", 1),
		"attribute":          strings.Replace(whole, "<Target>", `<Target kind="ip">`, 1),
		"prefix":             strings.NewReplacer("<Id>", "<e:Id>", "</Id>", "</e:Id>").Replace(whole),
		"reference":          strings.Replace(whole, "<Id>10.", "<Id>&#49;0.", 1),
		"nested":             strings.Replace(whole, "<Target>", "<Target><More><Deep><Id>1</Id></Deep></More>", 1),
		"nested id":          strings.Replace(whole, "<Id>", "<Id><Id></Id></Id><Id>", 1),
		"two ids":            strings.Replace(whole, "<Id>", "<Id>10.9.9.9</Id><Id>", 1),
		"two targets":        strings.Replace(whole, "<Target>", "<Target><Id>10.9.9.9</Id></Target><Target>", 1),
		"two lists":          strings.Replace(whole, "<TargetHealthDescriptions>", "<TargetHealthDescriptions></TargetHealthDescriptions><TargetHealthDescriptions>", 1),
		"text between":       strings.Replace(whole, "<member>", "text<member>", 1),
		"no port":            strings.Replace(whole, "<Port>", "<Port>x", 1),
		"empty port":         strings.Replace(whole, "<Id>", "<Port></Port><Id>", 1),
		"port too large":     strings.Replace(whole, "<Port>", "<Port>9999999999", 1),
		"other name":         strings.Replace(whole, "</Id>", "</ID>", 1),
		"other encoding":     `<?xml version="1.0" encoding="latin1"?>` + whole,
		"doctype":            "<!DOCTYPE x>" + whole,
		"junk after the end": whole + "<",
		"no list":            "<DescribeTargetHealthResponse><DescribeTargetHealthResult></DescribeTargetHealthResult></DescribeTargetHealthResponse>",
		"no result":          "<DescribeTargetHealthResponse></DescribeTargetHealthResponse>",
		"another answer":     "<html><body>502</body></html>",
	}
	for seed := range uint64(20) {
		tests[fmt.Sprint("odd texts ", seed)] = string(render(rand.New(rand.NewPCG(seed, 2)), 3, true))
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			if all, ok := scanHealth([]byte(body)); ok {
				t.Errorf("read as %d targets, want it to be left to the SDK", len(all))
			}
			lean, sdk, leanErr, sdkErr := both(t, []byte(body))
			if !reflect.DeepEqual(lean, sdk) || fmt.Sprint(leanErr) != fmt.Sprint(sdkErr) {
				t.Errorf("got %v, error %v; by the SDK %v, error %v", lean, leanErr, sdk, sdkErr)
			}
		})
	}
}

// An answer cut off anywhere is an error, or still has every target: it never
// becomes a smaller set.
func TestLeanNeverShortens_I8(t *testing.T) {
	whole := bytes.TrimRight(render(rand.New(rand.NewPCG(3, 3)), 4, false), "\n")
	end := bytes.LastIndex(whole, []byte("</DescribeTargetHealthResult>")) + len("</DescribeTargetHealthResult>")
	for n := range len(whole) {
		if _, ok := scanHealth(whole[:n]); ok {
			t.Fatalf("%d of %d bytes were read as a whole answer", n, len(whole))
		}
		got, _, err, _ := both(t, whole[:n])
		if n < end && (err == nil || got != nil) || n >= end && len(got) != 4 { // by the SDK: it has the whole result
			t.Errorf("%d of %d bytes: %d targets, error %v", n, len(whole), len(got), err)
		}
	}
	if got, _, err, _ := both(t, whole); err != nil || len(got) != 4 {
		t.Errorf("all of it: %d targets, error %v", len(got), err)
	}
}

func TestLeanFailures_I8(t *testing.T) {
	whole := render(rand.New(rand.NewPCG(4, 4)), 4, false)
	tests := map[string]*answers{
		"reading fails at the end":    {status: 200, body: whole, cut: io.ErrUnexpectedEOF},
		"reading fails midway":        {status: 200, body: whole[:len(whole)/2], cut: io.ErrUnexpectedEOF},
		"no bytes":                    {status: 200}, // no error to the SDK
		"an error with a list in it":  {status: 500, body: whole},
		"an error of a whole service": {status: 503, body: []byte("<html>")},
	}
	for name, a := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := New(a.client()).Health(t.Context(), shop)
			_, want := New(sdkOnly{a.client()}).Health(t.Context(), shop)
			if got != nil || err == nil || want != nil && err.Error() != want.Error() {
				t.Errorf("got %v, error %v; want the SDK's, %v", got, err, want)
			}
			if a.closed != 2 {
				t.Errorf("two bodies were closed %d times", a.closed)
			}
		})
	}
}

// A body larger than what is read leanly is the SDK's, whole.
func TestLeanLarge(t *testing.T) {
	long := `<Description>` + strings.Repeat("x", maxLean) + `</Description>`
	body := strings.Replace(string(render(rand.New(rand.NewPCG(5, 5)), 4, false)), "<Id>", long+"<Id>", 1)
	lean, sdk, leanErr, sdkErr := both(t, []byte(body))
	if leanErr != nil || sdkErr != nil || len(lean) != 4 || !reflect.DeepEqual(lean, sdk) {
		t.Errorf("got %d targets, error %v; by the SDK %d, error %v", len(lean), leanErr, len(sdk), sdkErr)
	}
}

// TestLeanIsInPlace fails when the SDK's step has another name: then all is
// right, and slow.
func TestLeanIsInPlace(t *testing.T) {
	a := &answers{status: http.StatusOK, body: render(rand.New(rand.NewPCG(6, 6)), 100, false)}
	lean, sdk := New(a.client()), New(sdkOnly{a.client()})
	count := func(c *Client) float64 {
		return testing.AllocsPerRun(10, func() {
			if _, err := c.Health(t.Context(), shop); err != nil {
				t.Fatal(err)
			}
		})
	}
	if l, s := count(lean), count(sdk); l > s/3 {
		t.Errorf("%.0f allocations, and %.0f by the SDK alone", l, s)
	}
}

func FuzzLean(f *testing.F) {
	for seed := range uint64(6) {
		f.Add(render(rand.New(rand.NewPCG(seed, 7)), int(seed), seed%2 == 1))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		all, ok := scanHealth(body)
		if !ok {
			return
		}
		if want, err := sdkRead(t, body); err != nil || !same(all, want) {
			t.Errorf("read %d targets; the SDK %d, error %v", len(all), len(want), err)
		}
	})
}

// BenchmarkHealth is the reading of a group of 500 targets over HTTP, by the SDK
// alone and leanly.
func BenchmarkHealth(b *testing.B) {
	body := render(rand.New(rand.NewPCG(8, 8)), 500, false)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	defer srv.Close()
	api := elb.NewFromConfig(aws.Config{Region: "eu-west-1", BaseEndpoint: &srv.URL, Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "secret", "")})
	for name, c := range map[string]*Client{"sdk": New(sdkOnly{api}), "lean": New(api)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := c.Health(b.Context(), shop); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
