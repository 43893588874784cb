package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// A group that a rule which covers nothing may mean is in doubt: nothing is said
// to be lost there, as resync removes nothing from it.
func TestObserveReport_Maybe_I8(t *testing.T) {
	const api = "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/api/0123456789abcdef"
	for name, tt := range map[string]struct {
		rule  string // beside that of web
		doubt string // "" if there is none
	}{
		"no other rule":                 {},
		"a faulty one of the group":     {rule: `bad | ` + webGroup + `,"port":0`, doubt: "a faulty rule may mean it: rule bad"},
		"one that names it by name":     {rule: `bad | "targetGroup":{"name":"web"},"port":0`, doubt: "a faulty rule may mean it: rule bad"},
		"a faulty one of another group": {rule: `bad | "targetGroup":"` + api + `","port":0`},
		"a name that only begins so":    {rule: `bad | "targetGroup":{"name":"web-2"},"port":0`},
		"tags that it shares":           {rule: `tags | "targetGroup":{"tags":{"team":"a"}}`, doubt: "rule tags may mean it: "},
		"tags that it has not":          {rule: `tags | "targetGroup":{"tags":{"team":"b"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			rules := []string{"web | " + webGroup}
			if tt.rule != "" {
				rules = append(rules, tt.rule)
			}
			p := somewhere().ruled(rules...)
			for name, team := range map[string]string{"api": "a", "one": "b", "two": "b"} {
				p.groups[name] = targetgroup.Facts{Group: claim.Group{ARN: strings.Replace(api, "api", name, 1), Type: claim.IP, Family: claim.IPv4, Port: 80}, Name: name, Tags: map[string]string{"team": team}}
			}
			p.groups["web"].Tags["team"] = "a"
			o := livingFlags("table")
			o.cluster.name = "prod"
			r, _, err := o.observeReport(context.Background(), p.living(), true)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, b := range r.Bindings {
				if b.Name != "web" {
					continue
				}
				found = true
				if doubts := strings.Join(b.Unknown, "; "); (doubts == "") != (tt.doubt == "") || !strings.Contains(doubts, tt.doubt) {
					t.Errorf("doubts %q, want %q", doubts, tt.doubt)
				}
				if (len(b.Deregister)+len(b.Held) == 0) != (tt.doubt != "") {
					t.Errorf("deregisters %v, holds %v, in doubt: %t", b.Deregister, b.Held, tt.doubt != "")
				}
			}
			if !found {
				t.Errorf("nothing is said of web: %+v", r.Bindings)
			}
		})
	}
}

// A pull request that mends a faulty rule says what it loses: it was held until now.
func TestPlan_Mended_I8(t *testing.T) {
	p := somewhere().ruled("web | "+webGroup, `bad | `+webGroup+`,"port":0`)
	o := &planOptions{livingOptions: *livingFlags("table"), live: true}
	o.cluster.name = "prod"
	o.rulesOf = func(context.Context, string) (ruleReader, error) { return p, nil }
	path := filepath.Join(t.TempDir(), "NEW")
	if err := os.WriteFile(path, []byte(planHead+entryOf("web", groupARN, "    minTargets: 0\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	r, unread, err := o.plan(context.Background(), nil, "bus", path, func(context.Context) (*living, error) { return p.living(), nil })
	if err != nil || unread != nil || len(r.Groups) != 1 {
		t.Fatal(r, unread, err)
	}
	if g := r.Groups[0]; !g.Known() || g.Lose != 1 || g.Lost[0].ID != "10.64.1.9" {
		t.Errorf("%+v, want 10.64.1.9 lost", g)
	}
}
