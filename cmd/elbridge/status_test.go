package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/audit"
	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/targetevent"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

var midday = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// told is an audit log of events, by detail.
type told struct {
	events []audit.Event
	err    error
	asked  []audit.Query
}

func (l *told) Events(_ context.Context, q audit.Query) ([]audit.Event, error) {
	l.asked = append(l.asked, q)
	var out []audit.Event
	for _, e := range l.events {
		if slices.Contains(q.DetailTypes, e.DetailType) && !e.Time.Before(q.From) && !e.Time.After(q.To) {
			out = append(out, e)
		}
	}
	if q.Limit > 0 && len(out) > q.Limit {
		out = out[len(out)-q.Limit:]
	}
	return out, l.err
}

func (l *told) add(t *testing.T, at time.Time, detailType string, detail any) {
	t.Helper()
	text, err := json.Marshal(detail)
	if err != nil {
		t.Fatal(err)
	}
	l.events = append(l.events, audit.Event{ID: "e", DetailType: detailType, Time: at, Detail: text})
}

// beat, round and change are events of so many minutes before midday.
func (l *told) beat(t *testing.T, cluster, instance string, minutes, queued int) *told {
	t.Helper()
	at := midday.Add(-time.Duration(minutes) * time.Minute)
	l.add(t, at, podevent.DetailTypeWebhookHeartbeat, podevent.WebhookHeartbeat{Schema: 1, Cluster: cluster, At: at, QueueDepth: queued, Webhook: podevent.Webhook{Version: "1", Instance: instance}})
	return l
}

func (l *told) round(t *testing.T, minutes int) *told {
	t.Helper()
	at := midday.Add(-time.Duration(minutes) * time.Minute)
	l.add(t, at, targetevent.DetailTypeResyncCompleted, targetevent.ResyncCompleted{Schema: 1, RunID: "run-1", Round: 7, At: at})
	return l
}

func (l *told) change(t *testing.T, minutes int, would bool, id string) *told {
	t.Helper()
	at := midday.Add(-time.Duration(minutes) * time.Minute)
	l.add(t, at, targetevent.DetailTypeTargetsChanged, targetevent.TargetsChanged{Schema: 1, TargetGroup: groupARN, WouldDo: would, At: at,
		Cause: targetevent.Cause{Kind: targetevent.Hint, EventID: id}, Registered: []targetevent.Key{{ID: "10.64.1.1", Port: 80, Pod: "ingress/a", Reason: "IPAssigned"}}})
	return l
}

func speaking(t *testing.T) *told {
	return (&told{}).beat(t, "prod", "a", 1, 0).round(t, 5).change(t, 3, false, "pod-event")
}

// agreeing is a place whose group is as its rule has it.
func agreeing() *place {
	p := somewhere().ruled("web | " + webGroup)
	p.health[groupARN] = map[claim.Key]plan.Target{{ID: "10.64.1.1", Port: 80}: {Health: plan.Healthy}, {ID: "10.64.1.2", Port: 80}: {Health: plan.Initial}}
	return p
}

func TestStatus(t *testing.T) {
	const other = "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/old/0123456789abcdef"
	group := func(p *place, name, arn string, tags map[string]string, targets int) *place {
		p.groups[name] = targetgroup.Facts{Group: claim.Group{ARN: arn, Type: claim.IP, Family: claim.IPv4, Port: 80}, Name: name, Tags: tags}
		p.health[arn] = map[claim.Key]plan.Target{}
		for i := range targets {
			p.health[arn][claim.Key{ID: "10.64.9." + string(rune('1'+i)), Port: 80}] = plan.Target{Health: plan.Healthy}
		}
		return p
	}
	ours := map[string]string{binding.OwnerTag: busARN}
	type setting struct {
		p      *place
		log    *told
		busTag string
		podsOf string // "none" reads no cluster
	}
	tests := map[string]struct {
		make func(*testing.T) setting
		exit int
		want []string
		not  []string
	}{
		"all right": {func(t *testing.T) setting { return setting{p: agreeing(), log: speaking(t)} }, 0,
			[]string{"bus elbridge: all is right", "1 rule, 1 binding (1 enabled); pods of cluster prod", "changed last: 3m0s ago, group web: 1 registered, 0 deregistered, 0 failed: pod event IPAssigned pod-event, pod ingress/a",
				"webhook of prod: heard 1m0s ago", "resync: heard 5m0s ago, round 7 of run run-1"}, []string{"GROUP"}},
		"missing and extra": {func(t *testing.T) setting {
			return setting{p: somewhere().ruled("web | " + webGroup), log: speaking(t)}
		}, 2,
			[]string{"not right: 1 of 1 group", "web 2 1 1 0 1 1 0 unhealthy-unclaimed 1"}, nil},
		"I9 held": {func(t *testing.T) setting {
			p := agreeing()
			p.health[groupARN][claim.Key{ID: "10.64.1.8", Port: 80}] = plan.Target{Health: plan.Healthy}
			p.health[groupARN][claim.Key{ID: "10.64.1.9", Port: 80}] = plan.Target{Health: plan.Healthy}
			return setting{p: p, log: speaking(t)}
		}, 2, []string{"held: 2 targets of group web, plan ", "no second witness, and more than the limit would go", "let them go: elbridge resync --group " + groupARN + " --approve "}, nil},
		"frozen, so approval is no help": {func(t *testing.T) setting {
			return setting{p: somewhere().ruled("web | " + webGroup), log: speaking(t), busTag: "at noon by me"}
		}, 2, []string{"removals frozen", "frozen: bus elbridge: at noon by me", "held: 1 target of group web, plan ", "removals are frozen"}, []string{"let them go"}},
		"a group is frozen": {func(t *testing.T) setting {
			p := agreeing()
			p.groups["web"].Tags[binding.FreezeTag] = "at noon by me"
			return setting{p: p, log: speaking(t)}
		}, 2, []string{"frozen: group web: at noon by me"}, nil},
		"a rule is broken": {func(t *testing.T) setting {
			return setting{p: agreeing().ruled("web | "+webGroup, `bad | "port":0`), log: speaking(t)}
		}, 2, []string{"2 rule faults", "covers nothing: rule bad"}, nil},
		"P053 a group is gone": {func(t *testing.T) setting {
			return setting{p: agreeing().ruled("web | "+webGroup, `gone | "targetGroup":{"name":"gone"}`), log: speaking(t)}
		}, 2, []string{"1 of 2 groups", "gone - - - - - - - target group not found"}, nil},
		"I8 ours, and no rule's": {func(t *testing.T) setting {
			return setting{p: group(agreeing(), "old", other, ours, 2), log: speaking(t)}
		}, 2,
			[]string{"1 unbound group", "no rule names group old, which is ours and holds 2 targets"}, nil},
		"ours, and empty": {func(t *testing.T) setting {
			return setting{p: group(agreeing(), "old", other, ours, 0), log: speaking(t)}
		}, 0, []string{"all is right"}, nil},
		"I18 somebody's": {func(t *testing.T) setting {
			return setting{p: group(agreeing(), "old", other, nil, 2), log: speaking(t)}
		}, 0, []string{"all is right"}, nil},
		"I19 only watched": {func(t *testing.T) setting {
			return setting{p: somewhere().ruled("web | " + webGroup + `,"mode":"observe"`), log: speaking(t)}
		}, 2, []string{"(1 observe)", "web 2 1 1 0 0 0 0 2 in mode observe"}, nil},
		"I8 no cluster": {func(t *testing.T) setting { return setting{p: agreeing(), log: speaking(t), podsOf: "none"} }, 0,
			[]string{"nothing is wrong in what was read", "pods of cluster -", "not known: no cluster was given"}, []string{"GROUP", "held:", "all is right"}},
		"I8 another cluster too": {func(t *testing.T) setting {
			return setting{p: somewhere().ruled("web | " + webGroup + ` | "cluster":["prod","dev"]`), log: speaking(t).beat(t, "dev", "a", 1, 0)}
		}, 2, []string{"web 2 1 1 0 2 - - not known: the pods of cluster dev were not read"}, []string{"held:"}},
		"a silent webhook": {func(t *testing.T) setting {
			return setting{p: agreeing(), log: (&told{}).beat(t, "prod", "a", 8, 0).round(t, 5)}
		}, 2, []string{"1 silent webhook", "webhook of prod: heard 8m0s ago, 0 queued, 0 dropped: silent", "changed last: nothing"}, nil},
		"no webhook at all": {func(t *testing.T) setting { return setting{p: agreeing(), log: (&told{}).round(t, 5)} }, 2,
			[]string{"webhook of prod: silent: not heard in the last 10 min"}, nil},
		"a webhook that just started": {func(t *testing.T) setting {
			log := (&told{}).round(t, 5)
			log.add(t, midday.Add(-time.Minute), podevent.DetailTypeWebhookStarted, podevent.WebhookStarted{Schema: 1, Cluster: "prod", At: midday.Add(-time.Minute)})
			return setting{p: agreeing(), log: log}
		}, 0, []string{"all is right", "webhook of prod: heard 1m0s ago, 0 queued"}, nil},
		"one of two webhook pods is gone": {func(t *testing.T) setting {
			return setting{p: agreeing(), log: speaking(t).beat(t, "prod", "b", 8, 5)}
		}, 0, []string{"heard 1m0s ago, 0 queued"}, nil},
		"a silent resync": {func(t *testing.T) setting {
			return setting{p: agreeing(), log: (&told{}).beat(t, "prod", "a", 1, 0).round(t, 45)}
		}, 2,
			[]string{"silent resync", "resync: heard 45m0s ago", "silent"}, nil},
		"no resync at all": {func(t *testing.T) setting { return setting{p: agreeing(), log: (&told{}).beat(t, "prod", "a", 1, 0)} }, 2,
			[]string{"resync: silent: no round in the last 60 min"}, nil},
		"I19 what was made, not what would be": {func(t *testing.T) setting {
			return setting{p: agreeing(), log: (&told{}).beat(t, "prod", "a", 1, 0).round(t, 5).change(t, 9, false, "made").change(t, 2, true, "would")}
		}, 0, []string{"changed last: 9m0s ago"}, nil},
		"no log": {func(*testing.T) setting { return setting{p: agreeing(), log: &told{err: audit.ErrNoLog}} }, 0,
			[]string{"nothing is wrong in what was read", "not known: what changed last and what is silent: no audit log"}, []string{": silent"}},
		"a log of which only the newest fits": {func(t *testing.T) setting {
			log := speaking(t)
			log.err = audit.ErrIncomplete
			return setting{p: agreeing(), log: log}
		}, 1, []string{"changed last: 3m0s ago", "webhook of prod: heard 1m0s ago", "resync: heard 5m0s ago", "not known: more of the audit log than is read at once"}, nil},
		"a log that is not read": {func(*testing.T) setting { return setting{p: agreeing(), log: &told{err: audit.ErrDenied}} }, 1, []string{"nothing is wrong in what was read"}, []string{": silent"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := tt.make(t)
			l := s.p.living()
			l.log = s.log
			l.bus = func(context.Context) (busFacts, error) {
				return busFacts{arn: busARN, tags: map[string]string{binding.FreezeTag: s.busTag}}, nil
			}
			o := livingFlags("table")
			o.cluster.name = "prod"
			if s.podsOf == "none" {
				l.pods = nil
			}
			r, unread, err := o.status(context.Background(), l, midday)
			if err != nil {
				t.Fatal(err)
			}
			if got := exitOf(r.exit(unread)); got != tt.exit {
				t.Errorf("exit %d (%v), want %d", got, unread, tt.exit)
			}
			var out bytes.Buffer
			if err := write(&out, "table", r, r.table); err != nil {
				t.Fatal(err)
			}
			var lines []string
			for line := range strings.Lines(out.String()) {
				lines = append(lines, strings.Join(strings.Fields(line), " "))
			}
			said := strings.Join(lines, "\n")
			for _, want := range tt.want {
				if !strings.Contains(said, want) {
					t.Errorf("said\n%s\nwant %q in it", said, want)
				}
			}
			for _, not := range tt.not {
				if strings.Contains(said, not) {
					t.Errorf("said\n%s\nwant no %q in it", said, not)
				}
			}
		})
	}
}

func TestStatus_Unread_I8(t *testing.T) {
	p := agreeing()
	l := p.living()
	l.survey.from = func(*binding.Binding) groupReader { return unhealthyPlace{p} }
	r, unread, err := livingFlags("table").status(context.Background(), l, midday)
	if err != nil || !errors.Is(unread, targetgroup.ErrThrottled) {
		t.Fatalf("unread %v, error %v, want ErrThrottled", unread, err)
	}
	if g := r.Groups[0]; g.Right || g.Extra != nil || g.Missing != 0 || !strings.Contains(g.Problem, "not read") {
		t.Errorf("group %+v", g)
	}
	p.denied = targetgroup.ErrDenied
	r, unread, err = livingFlags("table").status(context.Background(), p.living(), midday)
	if err != nil || !errors.Is(unread, targetgroup.ErrDenied) {
		t.Errorf("error %v, unread %v, want ErrDenied", err, unread)
	}
	if len(r.Groups) != 1 || r.Groups[0].Right || len(r.Unbound) > 0 || len(r.Notes) == 0 {
		t.Errorf("said %+v", r)
	}
}

// The log is asked three times, each time for a bounded stretch.
func TestStatus_Queries(t *testing.T) {
	l, log := agreeing().living(), speaking(t)
	l.log = log
	if _, _, err := livingFlags("table").status(context.Background(), l, midday); err != nil {
		t.Fatal(err)
	}
	if len(log.asked) != 3 {
		t.Fatalf("asked %d times", len(log.asked))
	}
	for _, q := range log.asked {
		if back := midday.Sub(q.From); back > defaultSince || back > time.Hour && q.Limit == 0 {
			t.Errorf("query %+v", q)
		}
	}
}

// A bus with more faults than a screen holds is told in one screen.
func TestStatus_OneScreen(t *testing.T) {
	p := agreeing()
	var rules []string
	for i := range 200 {
		rules = append(rules, "r"+string(rune('a'+i%26))+strings.Repeat("x", i/26)+` | "targetGroup":{"name":"g`+strings.Repeat("x", i%30)+`"}`, "b"+string(rune('a'+i%26))+strings.Repeat("y", i/26)+` | "port":0`)
	}
	l := p.ruled(rules...).living()
	l.log = speaking(t)
	r, _, err := livingFlags("table").status(context.Background(), l, midday)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := write(&out, "table", r, r.table); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n > 40 || len(r.Groups) != 30 || len(r.Invalid) < 200 {
		t.Errorf("%d lines of %d groups and %d faults:\n%s", n, len(r.Groups), len(r.Invalid), out.String())
	}
}
