package histories_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/bus"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

const (
	account  = "111122223333"
	region   = "eu-west-1"
	busARN   = "arn:aws:events:eu-west-1:111122223333:event-bus/elbridge"
	queueARN = "arn:aws:sqs:eu-west-1:111122223333:registrar"
	webARN   = "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/web/0123456789abcdef"
	apiARN   = "arn:aws:elasticloadbalancing:eu-west-1:111122223333:targetgroup/api/fedcba9876543210"
)

const (
	startTime = 5 * time.Second  // a target becomes healthy after so long
	deadTime  = 10 * time.Second // and unhealthy, where nobody answers
	drainTime = 25 * time.Second // and is gone after it was deregistered: longer than a round's interval
)

// group is a target group.
type group struct {
	arn     string
	targets map[claim.Key]plan.Health
	since   map[claim.Key]time.Time // when it came to its health
	sick    map[claim.Key]bool      // it answers, and not as it should
	tags    map[string]string
	quota   int
	deleted bool
}

func newGroup(arn string) *group {
	return &group{arn: arn, targets: map[claim.Key]plan.Health{}, since: map[claim.Key]time.Time{}, sick: map[claim.Key]bool{},
		tags: map[string]string{binding.OwnerTag: busARN}, quota: 1000}
}

func (g *group) set(k claim.Key, h plan.Health) { g.targets[k], g.since[k] = h, time.Now() }

func short(arn string) string {
	if arn == webARN {
		return "web"
	}
	return "api"
}

// move lets health checks and draining go on: what lives at an address answers
// them, until it is gone.
func (s *sim) move() {
	if !s.plan.resync() {
		return // there a history says when
	}
	for _, g := range s.groups {
		for k, h := range g.targets {
			age := time.Since(g.since[k])
			switch answers := s.answers(k.ID); {
			case h == plan.Draining && age >= drainTime:
				delete(g.targets, k)
			case h == plan.Initial && age >= startTime && answers:
				g.set(k, plan.Healthy)
			case (h == plan.Initial || h == plan.Healthy) && age >= deadTime && !answers && time.Since(s.freedAt[k.ID]) >= deadTime:
				g.set(k, plan.Unhealthy)
			case h == plan.Unhealthy && answers && !g.sick[k]:
				g.set(k, plan.Healthy)
			}
		}
	}
}

func (s *sim) answers(ip string) bool {
	for _, p := range s.pods {
		if p.PodIP() == ip && !p.Finished() {
			return true
		}
	}
	return false
}

// --- rules ---------------------------------------------------------------------

func ruleARN(name string) string {
	return "arn:aws:events:eu-west-1:111122223333:rule/elbridge/" + name
}

func (r *hrule) rule() binding.Rule {
	apps := fmt.Sprintf(`{"app":["%s"]}`, strings.Join(r.apps, `","`))
	if len(r.apps) > 1 {
		apps = `{"app":[{"prefix":"web"}]}` // nothing that a LIST could carry
	}
	clusters := fmt.Sprintf(`"cluster":["%s"],`, strings.Join(r.clusters, `","`))
	if len(r.clusters) == 0 {
		clusters = ""
	}
	state := "ENABLED"
	if r.disabled {
		state = "DISABLED"
	}
	return binding.Rule{ARN: ruleARN(r.name), Name: r.name, Bus: "elbridge", State: state,
		Pattern: `{"source":["elbridge"],"detail-type":["Pod State Change"],"detail":{` + clusters + `"namespace":["shop"],"labels":` + apps + `}}`}
}

func (r *hrule) constants() string {
	out := fmt.Sprintf(`{"targetGroup":%q,"port":%d,"registerWhen":%q,"mode":%q,"maxRemovalPercent":%d`, r.arn, r.port, r.when, r.mode, r.percent)
	if r.cidrs {
		out += `,"podCIDRs":["10.0.0.0/16"]`
	}
	if r.empty {
		out += `,"empty":true`
	}
	return out + "}"
}

type gatedRules struct{ *actor }

func (r gatedRules) List(ctx context.Context) ([]binding.Rule, error) {
	return call(ctx, r.actor, "rules", "", "no-rules", func() ([]binding.Rule, error) {
		r.rulesRead = r.tick()
		var out []binding.Rule
		for _, name := range slices.Sorted(maps.Keys(r.hrules)) {
			out = append(out, r.hrules[name].rule())
		}
		return out, nil
	})
}

func (r gatedRules) Rule(ctx context.Context, name string) (binding.Rule, error) {
	return call(ctx, r.actor, "rule "+name, "", "no-rules", func() (binding.Rule, error) {
		if x := r.hrules[name]; x != nil {
			return x.rule(), nil
		}
		return binding.Rule{}, bus.ErrNotFound
	})
}

func (r gatedRules) Targets(ctx context.Context, name string) ([]binding.Target, error) {
	return call(ctx, r.actor, "targets "+name, "", "no-rules", func() ([]binding.Target, error) {
		x := r.hrules[name]
		if x == nil {
			return nil, bus.ErrNotFound
		}
		return []binding.Target{{ID: "registrar", ARN: queueARN, Transformer: &binding.Transformer{
			Template: `{"binding":` + x.constants() + `,"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`}}}, nil
	})
}

func (r gatedRules) Tags(ctx context.Context, arn string) (map[string]string, error) {
	return call(ctx, r.actor, "bus tags", "", "no-rules", func() (map[string]string, error) {
		r.tagsRead[arn] = r.tick()
		return maps.Clone(r.busTags), nil
	})
}

// --- target groups -------------------------------------------------------------

type gatedGroups struct{ *actor }

func (g gatedGroups) of(arn string) (*group, error) {
	if x := g.groups[arn]; x != nil && !x.deleted {
		return x, nil
	}
	return nil, targetgroup.ErrNotFound
}

func (g *group) group() claim.Group {
	return claim.Group{ARN: g.arn, Type: claim.IP, Family: claim.IPv4, Port: 80}
}

func (g gatedGroups) Describe(ctx context.Context, ref binding.GroupRef) (claim.Group, error) {
	return call(ctx, g.actor, "describe "+short(ref.ARN), "", "throttled no-health", func() (claim.Group, error) {
		x, err := g.of(ref.ARN)
		if err != nil {
			return claim.Group{}, err
		}
		return x.group(), nil
	})
}

func (g gatedGroups) List(ctx context.Context) ([]targetgroup.Listed, error) {
	return call(ctx, g.actor, "list groups", "", "throttled no-health", func() ([]targetgroup.Listed, error) {
		var out []targetgroup.Listed
		for _, arn := range slices.Sorted(maps.Keys(g.groups)) {
			if x, err := g.of(arn); err == nil {
				out = append(out, targetgroup.Listed{Group: x.group(), Name: short(arn)})
			}
		}
		return out, nil
	})
}

func (g gatedGroups) Health(ctx context.Context, gr claim.Group) (map[claim.Key]plan.Target, error) {
	return call(ctx, g.actor, "health "+short(gr.ARN), "", "throttled no-health", func() (map[claim.Key]plan.Target, error) {
		x, err := g.of(gr.ARN)
		if err != nil {
			return nil, err
		}
		g.saw[gr.ARN] = g.count(gr.ARN)
		if g.resync {
			g.runs++
			g.decides[gr.ARN] = [2]int{g.decides[gr.ARN][1], g.runs}
		}
		out := map[claim.Key]plan.Target{}
		for k, h := range x.targets {
			out[k] = plan.Target{Health: h}
		}
		return out, nil
	})
}

func (g gatedGroups) Tags(ctx context.Context, arn string) (map[string]string, error) {
	return call(ctx, g.actor, "tags "+short(arn), "", "throttled", func() (map[string]string, error) {
		x, err := g.of(arn)
		if err != nil {
			return nil, err
		}
		g.tagsRead[arn] = g.tick()
		return maps.Clone(x.tags), nil
	})
}

func (g gatedGroups) TagsOf(ctx context.Context, arns []string) (map[string]map[string]string, error) {
	return call(ctx, g.actor, "tags of all", "", "throttled", func() (map[string]map[string]string, error) {
		out := map[string]map[string]string{}
		for _, arn := range arns {
			x, err := g.of(arn)
			if err != nil {
				return nil, fmt.Errorf("%w: a target group went while tags were read", targetgroup.ErrUnavailable)
			}
			out[arn] = maps.Clone(x.tags)
		}
		return out, nil
	})
}

func (g gatedGroups) Register(ctx context.Context, gr claim.Group, ks []claim.Key, _ string) targetgroup.Result {
	entered := time.Now()
	return g.mutate(ctx, "register", gr, ks, func(x *group, k claim.Key) error {
		serving := 0
		for _, h := range x.targets {
			if h != plan.Draining {
				serving++
			}
		}
		switch h := x.targets[k]; {
		case h != "" && h != plan.Draining:
			return nil // it is there already
		case serving >= x.quota:
			return targetgroup.ErrQuota
		}
		x.set(k, plan.Initial)
		return nil
	}, func() { g.checkRegister(gr.ARN, ks, entered) })
}

func (g gatedGroups) Deregister(ctx context.Context, gr claim.Group, ks []claim.Key) targetgroup.Result {
	entered := time.Now()
	return g.mutate(ctx, "deregister", gr, ks, func(x *group, k claim.Key) error {
		if h := x.targets[k]; h != "" && h != plan.Draining {
			x.set(k, plan.Draining)
		}
		return nil
	}, func() { g.checkRemoval(gr.ARN, ks, entered) })
}

// mutate is call for calls whose failure is told key by key, and whose answer
// may be lost after they had their effect. check judges it a moment before.
func (g gatedGroups) mutate(ctx context.Context, verb string, gr claim.Group, ks []claim.Key, do func(*group, claim.Key) error, check func()) targetgroup.Result {
	failed := map[claim.Key]error{}
	_, err := call(ctx, g.actor, verb+" "+short(gr.ARN), "", "throttled", func() (struct{}, error) {
		x, err := g.of(gr.ARN)
		if err != nil {
			return struct{}{}, err
		}
		if x.quota = 1000; g.fault == "quota" {
			x.quota = 2
		}
		check()
		for _, k := range ks {
			before := x.targets[k]
			if err := do(x, k); err != nil {
				failed[k] = err
			} else if x.targets[k] != before {
				g.mutated(verb, gr.ARN, k)
			}
		}
		g.note("%s: %s %s %v, failed %v; now %s", g.name(), verb, short(gr.ARN), ks, failed, g.groupText(gr.ARN))
		if g.fault == "lost-answer" {
			g.untold.Store(true)
			return struct{}{}, faultErr(g.fault)
		}
		return struct{}{}, nil
	})
	if err != nil {
		for _, k := range ks {
			failed[k] = err
		}
	}
	return targetgroup.Result{Failed: failed, Calls: 1}
}
