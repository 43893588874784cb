package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/elbridge/elbridge/pkg/binding"
)

// thing carries tags, and may fail to write.
type thing struct {
	tags   map[string]string
	failed map[string]error // by key
	done   []string
}

func (th *thing) ARN() string { return busARN }

func (th *thing) Tags(context.Context) (map[string]string, error) { return maps.Clone(th.tags), nil }

func (th *thing) Set(_ context.Context, key, value string) error {
	if err := th.failed[key]; err != nil {
		return err
	}
	th.tags[key] = value
	th.done = append(th.done, "set "+key)
	return nil
}

func (th *thing) Remove(_ context.Context, key string) error {
	if err := th.failed[key]; err != nil {
		return err
	}
	delete(th.tags, key)
	th.done = append(th.done, "remove "+key)
	return nil
}

func TestFreeze(t *testing.T) {
	for name, tt := range map[string]struct {
		tag        string // before
		un, dryRun bool
		want, text string // tag afterwards, and what is said
	}{
		"frozen":                    {want: "note", text: busARN + " is frozen: note\n"},
		"frozen before":             {tag: "kim", want: "kim", text: " is frozen already: kim\n"},
		"a tag that stops nothing":  {tag: "false", want: "note", text: " is frozen: note\n"},
		"would freeze":              {dryRun: true, text: " would be frozen: note\n"},
		"would freeze, but it is":   {tag: "kim", dryRun: true, want: "kim", text: " is frozen already: kim\n"},
		"not frozen any more":       {tag: "kim", un: true, text: " is not frozen any more; it was: kim\n"},
		"was not frozen":            {un: true, text: " is not frozen\n"},
		"was not frozen by a false": {tag: "false", un: true, want: "false", text: " is not frozen\n"},
		"would unfreeze":            {tag: "kim", un: true, dryRun: true, want: "kim", text: " would not be frozen any more; it is: kim\n"},
	} {
		t.Run(name, func(t *testing.T) {
			th := &thing{tags: map[string]string{}}
			if tt.tag != "" {
				th.tags["elbridge:freeze"] = tt.tag
			}
			do := freeze
			if tt.un {
				do = unfreeze
			}
			f, err := do(context.Background(), th, "note", tt.dryRun)
			if err != nil {
				t.Fatal(err)
			}
			if got := th.tags["elbridge:freeze"]; got != tt.want {
				t.Errorf("the tag says %q, want %q", got, tt.want)
			}
			if f.Changed != (len(th.done) > 0) {
				t.Errorf("changed %t after %v", f.Changed, th.done)
			}
			if tt.un && f.Changed && th.tags["elbridge:unfrozen"] != "note" {
				t.Errorf("nothing says who let removals go on: %v", th.tags)
			}
			var out bytes.Buffer
			if err := write(&out, "text", f, f.text); err != nil || !strings.HasSuffix(out.String(), tt.text) {
				t.Errorf("said %q (%v), want %q", out.String(), err, tt.text)
			}
		})
	}
}

// A failure between two writes leaves removals stopped.
func TestUnfreeze_HalfWay(t *testing.T) {
	broken := errors.New("broken")
	for _, key := range []string{"elbridge:unfrozen", "elbridge:freeze"} {
		th := &thing{tags: map[string]string{"elbridge:freeze": "kim"}, failed: map[string]error{key: broken}}
		if _, err := unfreeze(context.Background(), th, "note", false); !errors.Is(err, broken) {
			t.Errorf("%s fails: error %v", key, err)
		}
		if th.tags["elbridge:freeze"] != "kim" {
			t.Errorf("%s fails, and removals go on", key)
		}
	}
}

type identity struct {
	arn *string
	err error
}

func (i identity) GetCallerIdentity(context.Context, *sts.GetCallerIdentityInput, ...func(*sts.Options)) (*sts.GetCallerIdentityOutput, error) {
	return &sts.GetCallerIdentityOutput{Arn: i.arn}, i.err
}

func TestCallerARN(t *testing.T) {
	if got, err := callerARN(context.Background(), identity{arn: new("arn:kim")}); got != "arn:kim" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for name, api := range map[string]identity{"nobody": {}, "refused": {err: errors.New("expired")}} {
		if got, err := callerARN(context.Background(), api); err == nil || !strings.Contains(err.Error(), "STS") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// Who stops removals needs no answer of STS: the note has no name then.
func TestSignature(t *testing.T) {
	for name, tt := range map[string]struct {
		api  stsAPI
		note string
	}{
		"named":       {identity{arn: new("arn:kim")}, "at 2026-11-30T12:00:00Z by arn:kim : why not"},
		"refused":     {identity{err: errors.New("denied")}, "at 2026-11-30T12:00:00Z by unknown: STS did not say who : why not"},
		"nobody":      {identity{}, "at 2026-11-30T12:00:00Z by unknown: STS did not say who : why not"},
		"unreachable": {unreachable{}, "at 2026-11-30T12:00:00Z by unknown: STS did not say who : why not"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			who := signature(context.Background(), tt.api, &stderr)
			if got := binding.Note(who, "why not", time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)); got != tt.note {
				t.Errorf("the note is %q, want %q", got, tt.note)
			}
			if warned := strings.Contains(stderr.String(), "STS"); warned != (name != "named") {
				t.Errorf("said %q", stderr.String())
			}
		})
	}
}

// unreachable answers nothing until nobody waits any more.
type unreachable struct{}

func (unreachable) GetCallerIdentity(ctx context.Context, _ *sts.GetCallerIdentityInput, _ ...func(*sts.Options)) (*sts.GetCallerIdentityOutput, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return nil, errors.New("the call would hang")
	}
	return nil, context.DeadlineExceeded
}

// The whole commands, against an AWS of which only STS is broken.
func TestFreezeAdopt_WithoutSTS(t *testing.T) {
	var wrote []string
	answers := map[string]string{
		"AWSEvents.DescribeEventBus": `{"Name":"elbridge","Arn":"` + busARN + `"}`,
		"AWSEvents.TagResource":      `{}`,
		"AWSEvents.UntagResource":    `{}`,
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		what := r.Header.Get("X-Amz-Target")
		form, _ := url.ParseQuery(string(body)) // JSON has no Action
		switch action := form.Get("Action"); {
		case what == "AWSEvents.TagResource", action == "AddTags":
			wrote = append(wrote, string(body))
		}
		switch {
		case answers[what] != "":
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			_, err = io.WriteString(w, answers[what])
		case form.Get("Action") == "DescribeTargetGroups":
			_, err = io.WriteString(w, `<DescribeTargetGroupsResponse><DescribeTargetGroupsResult><TargetGroups><member><TargetGroupArn>`+groupARN+`</TargetGroupArn></member></TargetGroups></DescribeTargetGroupsResult></DescribeTargetGroupsResponse>`)
		case form.Get("Action") == "DescribeTags":
			_, err = io.WriteString(w, `<DescribeTagsResponse><DescribeTagsResult><TagDescriptions/></DescribeTagsResult></DescribeTagsResponse>`)
		case form.Get("Action") == "AddTags":
			_, err = io.WriteString(w, `<AddTagsResponse><AddTagsResult/></AddTagsResponse>`)
		default: // STS
			w.WriteHeader(http.StatusForbidden)
			_, err = io.WriteString(w, `<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>an SCP says no</Message></Error></ErrorResponse>`)
		}
		if err != nil {
			t.Error(err)
		}
	}))
	defer srv.Close()
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": srv.URL, "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"} {
		t.Setenv(name, value)
	}
	for _, tt := range []struct{ args, listed, said string }{
		{"freeze --reason incident", `{"Tags":[]}`, "is frozen"},
		{"unfreeze --reason over", `{"Tags":[{"Key":"elbridge:freeze","Value":"kim"}]}`, "is not frozen any more"},
		{"adopt web --reason moved", `{"Tags":[]}`, "owns"},
	} {
		wrote = nil
		answers["AWSEvents.ListTagsForResource"] = tt.listed
		cmd := root()
		var out, stderr bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&stderr)
		cmd.SetArgs(strings.Fields(tt.args))
		if err := cmd.ExecuteContext(context.Background()); err != nil || !strings.Contains(out.String(), tt.said) {
			t.Errorf("%s: %v, said %q", tt.args, err, out.String())
		}
		if !strings.Contains(stderr.String(), "the note will not say who wrote it") {
			t.Errorf("%s: stderr says %q", tt.args, stderr.String())
		}
		if text, _ := url.QueryUnescape(strings.Join(wrote, "")); !strings.Contains(text, "by unknown: STS did not say who") {
			t.Errorf("%s: wrote %q", tt.args, text)
		}
	}
}
