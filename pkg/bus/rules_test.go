package bus_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
)

const (
	busARN = "arn:aws:events:eu-west-1:111122223333:event-bus/elbridge"
	noRule = "!ResourceNotFoundException: Rule web does not exist on EventBus elbridge."
	noBus  = "!ResourceNotFoundException: Event bus elbridge does not exist."
)

// lists answers each call with the next page: JSON without NextToken, which is
// added to all but the last, or "!Code: message", or "cut".
type lists struct {
	t     *testing.T
	pages []string
	calls atomic.Int32
}

func (l *lists) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct {
		EventBusName, Rule, Name, ResourceARN, NextToken string
		Limit                                            int
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		panic(err)
	}
	action := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AWSEvents.")
	if paged := strings.HasPrefix(action, "List") && action != "ListTagsForResource"; paged && in.Limit != 100 {
		l.t.Errorf("%s with a limit of %d, want the API's maximum", action, in.Limit)
	}
	if action != "ListTagsForResource" && in.EventBusName != busARN {
		l.t.Errorf("%s on bus %q: without its name it means another", action, in.EventBusName)
	}
	n := int(l.calls.Add(1))
	if want := fmt.Sprint("after-", n-1); n > 1 && in.NextToken != want {
		l.t.Errorf("%s with token %q, want %q", action, in.NextToken, want)
	}
	page := l.pages[min(n, len(l.pages))-1]
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if page == "cut" {
		panic(http.ErrAbortHandler)
	}
	if text, refused := strings.CutPrefix(page, "!"); refused {
		code, message, _ := strings.Cut(text, ": ")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"__type":%q,"message":%q}`, code, message)
		return
	}
	if n < len(l.pages) {
		page = strings.TrimSuffix(page, "}") + fmt.Sprintf(`,"NextToken":"after-%d"}`, n)
	}
	fmt.Fprint(w, page)
}

func rulesOf(t *testing.T, pages ...string) (*bus.Rules, *lists) {
	t.Helper()
	l := &lists{t: t, pages: pages}
	srv := httptest.NewServer(l)
	t.Cleanup(srv.Close)
	return bus.NewRules(eventbridge.New(eventbridge.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(srv.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIA", "secret", ""),
	}), busARN), l
}

// fates of paged reads, for rules ("Rules", by Name) and targets ("Targets", by Id).
var fates = map[string]struct {
	pages []string // names, or "!fault"
	want  string
	fails bool
	err   error // its class, if it has one
}{
	"none":                        {[]string{""}, "", false, nil},
	"one page":                    {[]string{"a b"}, "a b", false, nil},
	"several, also empty ones":    {[]string{"a b", "", "c", ""}, "a b c", false, nil},
	"I8 the first page fails":     {[]string{"!ThrottlingException: Rate exceeded"}, "", true, nil},
	"I8 the last page fails":      {[]string{"a", "b", "!InternalException: oops"}, "", true, nil},
	"I8 the connection breaks":    {[]string{"a", "cut"}, "", true, nil},
	"I8 the bus does not exist":   {[]string{noBus}, "", true, bus.ErrNoBus},
	"the rule is deleted":         {[]string{noRule}, "", true, bus.ErrNotFound},
	"the rule goes between pages": {[]string{"a", noRule}, "", true, bus.ErrNotFound},
}

func TestPagedReads(t *testing.T) {
	kinds := map[string]struct {
		field, id string
		read      func(*bus.Rules) ([]string, error)
	}{
		"rules": {"Rules", "Name", func(r *bus.Rules) (out []string, err error) {
			rules, err := r.List(t.Context())
			for _, rule := range rules {
				out = append(out, rule.Name)
			}
			return out, err
		}},
		"targets": {"Targets", "Id", func(r *bus.Rules) (out []string, err error) {
			targets, err := r.Targets(t.Context(), "web")
			for _, target := range targets {
				out = append(out, target.ID)
			}
			return out, err
		}},
	}
	for kind, k := range kinds {
		for name, tt := range fates {
			t.Run(kind+" "+name, func(t *testing.T) {
				var pages []string
				for _, p := range tt.pages {
					if p == "cut" || strings.HasPrefix(p, "!") {
						pages = append(pages, p)
						continue
					}
					var items []string
					for id := range strings.FieldsSeq(p) {
						items = append(items, fmt.Sprintf(`{%q:%q}`, k.id, id))
					}
					pages = append(pages, fmt.Sprintf(`{%q:[%s]}`, k.field, strings.Join(items, ",")))
				}
				r, l := rulesOf(t, pages...)
				got, err := k.read(r)
				if strings.Join(got, " ") != tt.want || (err != nil) != tt.fails || tt.fails && got != nil {
					t.Errorf("read %q, error %v; want %q", got, err, tt.want)
				}
				for _, class := range []error{bus.ErrNotFound, bus.ErrNoBus} {
					if errors.Is(err, class) != errors.Is(tt.err, class) {
						t.Errorf("error %v, want class %v", err, tt.err)
					}
				}
				if n := int(l.calls.Load()); n != len(pages) {
					t.Errorf("%d calls for %d pages", n, len(pages))
				}
			})
		}
		t.Run(kind+" without end", func(t *testing.T) {
			r, l := rulesOf(t, make([]string, 1000)...)
			for i := range l.pages {
				l.pages[i] = fmt.Sprintf(`{%q:[]}`, k.field)
			}
			if got, err := k.read(r); err == nil || got != nil || l.calls.Load() != 100 {
				t.Errorf("read %q after %d pages, error %v; want none after 100", got, l.calls.Load(), err)
			}
		})
	}
}

func TestRule(t *testing.T) {
	text := `{"Arn":"arn:aws:events:eu-west-1:111122223333:rule/elbridge/web","Name":"web","EventBusName":"elbridge","State":"DISABLED","EventPattern":"{\"source\":[\"elbridge\"]}"`
	want := binding.Rule{ARN: "arn:aws:events:eu-west-1:111122223333:rule/elbridge/web", Name: "web", Bus: "elbridge", State: "DISABLED", Pattern: `{"source":["elbridge"]}`}
	r, _ := rulesOf(t, text+"}")
	if got, err := r.Rule(t.Context(), "web"); err != nil || got != want {
		t.Errorf("one rule: %+v, error %v; want %+v", got, err, want)
	}
	r, _ = rulesOf(t, `{"Rules":[`+text+`,"ScheduleExpression":"rate(1 minute)"}]}`)
	want.ScheduleExpression = "rate(1 minute)"
	if got, err := r.List(t.Context()); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("of a list: %+v, error %v; want %+v", got, err, want)
	}
	for answer, class := range map[string]error{noRule: bus.ErrNotFound, noBus: bus.ErrNoBus} {
		r, _ = rulesOf(t, answer)
		if _, err := r.Rule(t.Context(), "web"); !errors.Is(err, class) {
			t.Errorf("%s: %v, want %v", answer, err, class)
		}
	}
}

func TestTargets(t *testing.T) {
	r, _ := rulesOf(t, `{"Targets":[
		{"Id":"1","Arn":"arn:q","InputTransformer":{"InputPathsMap":{"a":"$.b"},"InputTemplate":"{}"}},
		{"Id":"2","Arn":"arn:q","Input":"{\"x\":1}"},
		{"Id":"3","Arn":"arn:q","InputPath":"$.detail"}]}`)
	got, err := r.Targets(t.Context(), "web")
	want := []binding.Target{
		{ID: "1", ARN: "arn:q", Transformer: &binding.Transformer{PathsMap: map[string]string{"a": "$.b"}, Template: "{}"}},
		{ID: "2", ARN: "arn:q", Input: `{"x":1}`},
		{ID: "3", ARN: "arn:q", InputPath: "$.detail"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, error %v; want %+v", got, err, want)
	}
}

func TestTagsOfTheBus(t *testing.T) {
	r, _ := rulesOf(t, `{"Tags":[{"Key":"elbridge:freeze","Value":"yes"},{"Key":"empty","Value":""}]}`)
	got, err := r.Tags(t.Context(), busARN)
	if want := map[string]string{"elbridge:freeze": "yes", "empty": ""}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, error %v; want %v", got, err, want)
	}
	r, _ = rulesOf(t, "!AccessDeniedException: no")
	if got, err := r.Tags(t.Context(), busARN); err == nil || got != nil {
		t.Errorf("I8: got %v, error %v; want no answer", got, err)
	}
}
