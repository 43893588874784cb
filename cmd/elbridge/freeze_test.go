package main

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sts"
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
