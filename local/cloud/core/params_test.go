package core_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/elbridge/elbridge/local/cloud/core"
)

func TestParams(t *testing.T) {
	t.Parallel()
	form, err := url.ParseQuery("Arn=a&Targets.member.10.Id=j&Targets.member.2.Id=b&Targets.member.2.Port=80&Names.member.1=x&Names.member.2=y&Matcher.HttpCode=200&N=7&Bad=x")
	if err != nil {
		t.Fatal(err)
	}
	p := core.Params(form)
	targets := p.Members("Targets")
	if len(targets) != 2 || targets[0].Get("Id") != "b" || targets[0].Get("Port") != "80" || targets[1].Get("Id") != "j" {
		t.Errorf("Members %v: want b, then j", targets)
	}
	if got := p.Strings("Names"); !slices.Equal(got, []string{"x", "y"}) {
		t.Errorf("Strings %v", got)
	}
	if got := p.Struct("Matcher").Get("HttpCode"); got != "200" {
		t.Errorf("Struct %q", got)
	}
	if n, err := p.Int("N"); err != nil || *n != 7 {
		t.Errorf("Int %v %v", n, err)
	}
	if n, err := p.Int("None"); err != nil || n != nil {
		t.Errorf("Int of nothing %v %v", n, err)
	}
	if _, err := p.Int("Bad"); err == nil {
		t.Error("Int of a word gave no error")
	}
	if !p.Has("Arn") || !p.Has("Targets") || p.Has("Target") || p.Has("None") {
		t.Error("Has: want Arn and Targets, not Target and None")
	}
}

// Pages, put together, are the names.
func TestPage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := slices.Compact(slices.Sorted(slices.Values(rapid.SliceOf(rapid.StringMatching(`[a-c./]{1,3}`)).Draw(t, "names"))))
		limit := rapid.SampledFrom([]string{"", "1", "2", "7"}).Draw(t, "limit")
		var got []string
		for token, first := "", true; first || token != ""; first = false {
			page, next, err := core.Page(names, limit, 5+5, token)
			if err != nil {
				t.Fatal(err)
			}
			got, token = append(got, page...), next
		}
		if !slices.Equal(got, names) && len(got)+len(names) > 0 {
			t.Fatalf("pages %v, names %v", got, names)
		}
	})
	for _, bad := range []struct{ limit, token string }{{"0", ""}, {"11", ""}, {"x", ""}, {"", "!"}} {
		if _, _, err := core.Page([]string{"a"}, bad.limit, 10, bad.token); err == nil || !strings.Contains(err.Error(), "want") && !strings.Contains(err.Error(), "not one") {
			t.Errorf("limit %q, token %q: %v", bad.limit, bad.token, err)
		}
	}
}
