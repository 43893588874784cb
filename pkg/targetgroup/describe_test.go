package targetgroup_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

func arnOf(name string) string {
	return "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/" + name + "/0123456789abcdef"
}

// groups answers for target groups, in pages of the given size.
type groups struct {
	names []string
	tags  map[string]string // "a=b c=d" by name
	page  int
	gone  string // deleted between the list and the reading of tags
	fails string // a page of this first name fails with Throttling
	pages []string
}

func (g *groups) describe(v url.Values) string {
	name := v.Get("Names.member.1")
	if arn := v.Get("TargetGroupArns.member.1"); arn != "" {
		name = strings.Split(arn, "/")[1]
	}
	if name == "" {
		g.pages = append(g.pages, v.Get("PageSize"))
		return g.list(v.Get("Marker"))
	}
	if !slices.Contains(g.names, name) {
		return "!TargetGroupNotFound: One or more target groups not found"
	}
	return "<TargetGroups>" + shapes([]string{name}) + "</TargetGroups>"
}

func (g *groups) list(marker string) string {
	at, _ := strconv.Atoi(strings.TrimPrefix(marker, "empty")) // "" is 0
	if at > 0 && !strings.HasPrefix(marker, "empty") {
		return fmt.Sprintf("<TargetGroups></TargetGroups><NextMarker>empty%d</NextMarker>", at) // a page without groups
	}
	rest := g.names[at:]
	if len(rest) > 0 && rest[0] == g.fails {
		return "!Throttling: Rate exceeded"
	}
	if len(rest) <= g.page {
		return "<TargetGroups>" + shapes(rest) + "</TargetGroups>"
	}
	return fmt.Sprintf("<TargetGroups>%s</TargetGroups><NextMarker>%d</NextMarker>", shapes(rest[:g.page]), at+g.page)
}

func shapes(names []string) string {
	out := ""
	for _, n := range names {
		out += "<member><TargetGroupArn>" + arnOf(n) + "</TargetGroupArn><Port>8080</Port><TargetType>ip</TargetType><IpAddressType>ipv4</IpAddressType></member>"
	}
	return out
}

func (g *groups) tagsOf(v url.Values) string {
	out := ""
	n := 1
	for ; v.Has("ResourceArns.member." + strconv.Itoa(n)); n++ {
		arn := v.Get("ResourceArns.member." + strconv.Itoa(n))
		name := strings.Split(arn, "/")[1]
		if name == g.gone {
			return "!TargetGroupNotFound: One or more target groups not found"
		}
		out += "<member><ResourceArn>" + arn + "</ResourceArn><Tags>"
		for _, kv := range strings.Fields(g.tags[name]) {
			k, v, _ := strings.Cut(kv, "=")
			out += "<member><Key>" + k + "</Key><Value>" + v + "</Value></member>"
		}
		out += "</Tags></member>"
	}
	if n-1 > 20 {
		return "!ValidationError: at most 20 resources"
	}
	return "<TagDescriptions>" + out + "</TagDescriptions>"
}

func (g *groups) serve(t *testing.T) (*targetgroup.Client, *service) {
	t.Helper()
	s := &service{answer: map[string]func(url.Values) string{"DescribeTargetGroups": g.describe, "DescribeTags": g.tagsOf}}
	return serve(t, s), s
}

func many(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("g%03d", i)
	}
	return out
}

func TestDescribe(t *testing.T) {
	tags := func(kv ...string) binding.GroupRef {
		ref := binding.GroupRef{Tags: map[string]string{}}
		for _, s := range kv {
			k, v, _ := strings.Cut(s, "=")
			ref.Tags[k] = v
		}
		return ref
	}
	tests := map[string]struct {
		groups groups
		ref    binding.GroupRef
		want   string // name
		err    error
	}{
		"by ARN":                       {groups{names: []string{"web"}}, binding.GroupRef{ARN: arnOf("web")}, "web", nil},
		"by ARN, gone (P053)":          {groups{names: []string{"web"}}, binding.GroupRef{ARN: arnOf("api")}, "", targetgroup.ErrNotFound},
		"by name":                      {groups{names: []string{"web"}}, binding.GroupRef{Name: "web"}, "web", nil},
		"by name, none":                {groups{names: []string{"web"}}, binding.GroupRef{Name: "api"}, "", targetgroup.ErrNotFound},
		"by tags":                      {groups{names: many(3), page: 9, tags: map[string]string{"g001": "app=web"}}, tags("app=web"), "g001", nil},
		"by tags, all must be there":   {groups{names: many(3), page: 9, tags: map[string]string{"g001": "app=web", "g002": "app=web tier=a x=y"}}, tags("app=web", "tier=a"), "g002", nil},
		"by tags, another value":       {groups{names: many(3), page: 9, tags: map[string]string{"g001": "app=api"}}, tags("app=web"), "", targetgroup.ErrAmbiguous},
		"by tags, none":                {groups{names: many(3), page: 9}, tags("app=web"), "", targetgroup.ErrAmbiguous},
		"by tags, no groups at all":    {groups{page: 9}, tags("app=web"), "", targetgroup.ErrAmbiguous},
		"by tags, several":             {groups{names: many(3), page: 9, tags: map[string]string{"g001": "app=web", "g002": "app=web"}}, tags("app=web"), "", targetgroup.ErrAmbiguous},
		"by tags, on the last page":    {groups{names: many(45), page: 10, tags: map[string]string{"g044": "app=web"}}, tags("app=web"), "g044", nil},
		"by tags, on pages apart":      {groups{names: many(45), page: 10, tags: map[string]string{"g001": "app=web", "g044": "app=web"}}, tags("app=web"), "", targetgroup.ErrAmbiguous},
		"a page fails: no answer":      {groups{names: many(45), page: 10, fails: "g040", tags: map[string]string{"g001": "app=web"}}, tags("app=web"), "", targetgroup.ErrThrottled},
		"another goes meanwhile":       {groups{names: many(45), page: 10, gone: "g030", tags: map[string]string{"g001": "app=web"}}, tags("app=web"), "", targetgroup.ErrUnavailable},
		"more pages than there can be": {groups{names: many(45), page: 1, tags: map[string]string{"g001": "app=web"}}, tags("app=web"), "", targetgroup.ErrUnavailable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, s := tt.groups.serve(t)
			g, err := c.Describe(t.Context(), tt.ref)
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			want := claim.Group{ARN: arnOf(tt.want), Type: claim.IP, Family: claim.IPv4, Port: 8080}
			if err == nil && g != want {
				t.Errorf("got %+v, want %+v", g, want)
			}
			for _, size := range tt.groups.pages {
				if size != "400" {
					t.Errorf("a page of %s, want the API's maximum", size)
				}
			}
			if n := len(s.take()); n > 30 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

func TestDescribeTellsWhatTheGroupIs(t *testing.T) {
	tests := map[string]struct {
		xml  string
		want claim.Group
	}{
		"ip, ipv6":             {"<Port>443</Port><TargetType>ip</TargetType><IpAddressType>ipv6</IpAddressType>", claim.Group{ARN: webARN, Type: claim.IP, Family: claim.IPv6, Port: 443}},
		"instance":             {"<Port>80</Port><TargetType>instance</TargetType><IpAddressType>ipv4</IpAddressType>", claim.Group{ARN: webARN, Type: claim.Instance, Family: claim.IPv4, Port: 80}},
		"lambda, without port": {"<TargetType>lambda</TargetType>", claim.Group{ARN: webARN, Type: "lambda", Family: claim.IPv4}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := serve(t, &service{answer: map[string]func(url.Values) string{"DescribeTargetGroups": func(url.Values) string {
				return "<TargetGroups><member><TargetGroupArn>" + webARN + "</TargetGroupArn>" + tt.xml + "</member></TargetGroups>"
			}}})
			if g, err := c.Describe(t.Context(), binding.GroupRef{ARN: webARN}); err != nil || g != tt.want {
				t.Errorf("got %+v, error %v; want %+v", g, err, tt.want)
			}
		})
	}
}

func TestTags(t *testing.T) {
	g := groups{names: []string{"web"}, tags: map[string]string{"web": "elbridge:owner=bus empty="}}
	c, _ := g.serve(t)
	tags, err := c.Tags(t.Context(), arnOf("web"))
	if err != nil || len(tags) != 2 || tags["elbridge:owner"] != "bus" {
		t.Errorf("tags %v, error %v", tags, err)
	}
	g.gone = "web"
	if _, err := c.Tags(t.Context(), arnOf("web")); !errors.Is(err, targetgroup.ErrNotFound) {
		t.Errorf("of a group that went: %v, want ErrNotFound", err)
	}
}

func TestHealth(t *testing.T) {
	target := func(id, port, state, reason string) string {
		p := ""
		if port != "" { // of the others ELB has a zone as well
			p = "<Port>" + port + "</Port><AvailabilityZone>eu-west-1a</AvailabilityZone>"
		}
		return "<member><Target><Id>" + id + "</Id>" + p + "</Target><TargetHealth><State>" + state +
			"</State><Reason>" + reason + "</Reason></TargetHealth></member>"
	}
	all := "<TargetHealthDescriptions>" + target("10.64.1.7", "9000", "healthy", "") + target("10.64.1.7", "", "initial", "Elb.RegistrationInProgress") +
		target("10.64.1.8", "8080", "draining", "Target.DeregistrationInProgress") + target("10.64.1.9", "8080", "unhealthy.draining", "") + "</TargetHealthDescriptions>"
	c := serve(t, &service{answer: map[string]func(url.Values) string{"DescribeTargetHealth": func(url.Values) string { return all }}})
	got, err := c.Health(t.Context(), web)
	if err != nil {
		t.Fatal(err)
	}
	want := map[claim.Key]plan.Target{
		{ID: "10.64.1.7", Port: 9000}: {Health: plan.Healthy, Zone: "eu-west-1a"},
		{ID: "10.64.1.7", Port: 8080}: {Health: plan.Initial, Reason: "Elb.RegistrationInProgress"}, // the group's own port
		{ID: "10.64.1.8", Port: 8080}: {Health: plan.Draining, Reason: "Target.DeregistrationInProgress", Zone: "eu-west-1a"},
		{ID: "10.64.1.9", Port: 8080}: {Health: plan.UnhealthyDraining, Zone: "eu-west-1a"},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// An answer that is not whole is an error, and no answer looks like a group
// without targets.
func TestHealthOnDoubt_I8(t *testing.T) {
	tests := map[string]struct {
		body string
		want error
	}{
		"HealthUnavailable":      {"!HealthUnavailable: try later", targetgroup.ErrUnavailable},
		"throttled (P058)":       {"!Throttling: Rate exceeded", targetgroup.ErrThrottled},
		"internal error":         {"!InternalFailure: oops", targetgroup.ErrUnavailable},
		"the group is gone":      {"!TargetGroupNotFound: gone", targetgroup.ErrNotFound},
		"connection cut":         {"cut", targetgroup.ErrUnavailable},
		"answer cut in the list": {"<TargetHealthDescriptions><member><Target><Id>10.64.1.7</Id></Target></member>", targetgroup.ErrUnavailable},
		"none":                   {"<TargetHealthDescriptions></TargetHealthDescriptions>", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := serve(t, &service{answer: map[string]func(url.Values) string{"DescribeTargetHealth": func(url.Values) string { return tt.body }}})
			got, err := c.Health(t.Context(), web)
			if !errors.Is(err, tt.want) || (got == nil) != (tt.want != nil) {
				t.Errorf("got %v, error %v; want %v", got, err, tt.want)
			}
		})
	}
}
