package state_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/elbridge/elbridge/local/cloud/elb/route"
	"github.com/elbridge/elbridge/local/cloud/elb/state"
)

func opened(state.Listener) error { return nil }

func forwardTo(groups ...string) state.ListenerSpec {
	var f []route.Weighted
	for _, g := range groups {
		f = append(f, route.Weighted{GroupARN: g, Weight: 1})
	}
	return state.ListenerSpec{Protocol: "HTTP", Port: p32(8080), Actions: []state.Action{{Type: "forward", Action: route.Action{Forward: f}}}}
}

func TestCreateGroupRefuses(t *testing.T) {
	str := func(s string) *string { return &s }
	no := false
	tests := map[string]struct {
		change func(*state.GroupSpec)
		want   string
	}{
		"no name":             {func(g *state.GroupSpec) { g.Name = "" }, "ValidationError"},
		"name too long":       {func(g *state.GroupSpec) { g.Name = strings.Repeat("a", 33) }, "ValidationError"},
		"name as long as can": {func(g *state.GroupSpec) { g.Name = strings.Repeat("a", 32) }, "<nil>"},
		"name with dot":       {func(g *state.GroupSpec) { g.Name = "a.b" }, "ValidationError"},
		"name with hyphen":    {func(g *state.GroupSpec) { g.Name = "a-" }, "ValidationError"},
		"no protocol":         {func(g *state.GroupSpec) { g.Protocol = "" }, "ValidationError"},
		"no such protocol":    {func(g *state.GroupSpec) { g.Protocol = "SCTP" }, "ValidationError"},
		"not here: UDP":       {func(g *state.GroupSpec) { g.Protocol = "UDP" }, "InvalidConfigurationRequest"},
		"not here: lambda":    {func(g *state.GroupSpec) { g.TargetType = "lambda" }, "InvalidConfigurationRequest"},
		"not here: gRPC":      {func(g *state.GroupSpec) { g.Version = "GRPC" }, "InvalidConfigurationRequest"},
		"no port":             {func(g *state.GroupSpec) { g.Port = nil }, "ValidationError"},
		"port 0":              {func(g *state.GroupSpec) { g.Port = p32(0) }, "ValidationError"},
		"no VPC":              {func(g *state.GroupSpec) { g.VPC = "" }, "ValidationError"},
		"no such VPC":         {func(g *state.GroupSpec) { g.VPC = "vpc-2" }, "ValidationError"},
		"IPv6 instances":      {func(g *state.GroupSpec) { g.Family, g.TargetType = "ipv6", "instance" }, "ValidationError"},
		"interval 4":          {func(g *state.GroupSpec) { g.Check.Interval = p32(4) }, "ValidationError"},
		"interval 301":        {func(g *state.GroupSpec) { g.Check.Interval = p32(301) }, "ValidationError"},
		"threshold 1":         {func(g *state.GroupSpec) { g.Check.HealthyThreshold = p32(1) }, "ValidationError"},
		"threshold 11":        {func(g *state.GroupSpec) { g.Check.UnhealthyThreshold = p32(11) }, "ValidationError"},
		"timeout is interval": {func(g *state.GroupSpec) { g.Check.Timeout = p32(10) }, "ValidationError"},
		"timeout 121":         {func(g *state.GroupSpec) { g.Check.Timeout, g.Check.Interval = p32(121), p32(300) }, "ValidationError"},
		"checks off":          {func(g *state.GroupSpec) { g.Check.Enabled = &no }, "ValidationError"},
		"check port":          {func(g *state.GroupSpec) { g.Check.Port = str("http") }, "ValidationError"},
		"check path":          {func(g *state.GroupSpec) { g.Check.Path = str("healthz") }, "ValidationError"},
		"TCP check of HTTP":   {func(g *state.GroupSpec) { g.Check.Protocol = str("TCP") }, "ValidationError"},
		"matcher 500 of HTTP": {func(g *state.GroupSpec) { g.Check.Matcher = str("200-500") }, "ValidationError"},
		"matcher 499 of HTTP": {func(g *state.GroupSpec) { g.Check.Matcher = str("200,300-499") }, "<nil>"},
		"matcher upside down": {func(g *state.GroupSpec) { g.Check.Matcher = str("300-200") }, "ValidationError"},
		"reserved tag":        {func(g *state.GroupSpec) { g.Tags = []state.Tag{{Key: "aws:x"}} }, "ValidationError"},
		"tag twice":           {func(g *state.GroupSpec) { g.Tags = []state.Tag{{Key: "x"}, {Key: "x"}} }, "DuplicateTagKeys"},
		"the same again":      {func(g *state.GroupSpec) { g.Name = "web" }, "<nil>"},
		"the name again":      {func(g *state.GroupSpec) { g.Name, g.Port = "web", p32(81) }, "DuplicateTargetGroupName"},
		"TCP":                 {func(g *state.GroupSpec) { g.Protocol = "TCP" }, "<nil>"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			spec := state.GroupSpec{
				Name: "new", Protocol: "HTTP", VPC: "vpc-1", TargetType: "ip", Port: p32(80),
				Check: state.CheckSpec{Interval: p32(10), Timeout: p32(5), HealthyThreshold: p32(3), UnhealthyThreshold: p32(2)},
			}
			tt.change(&spec)
			if _, err := w.CreateGroup(scope, spec, w.now); code(err) != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestListenerRefuses(t *testing.T) {
	w := newWorld(t)
	tcp := w.newGroup("tcp", func(g *state.GroupSpec) { g.Protocol = "TCP" })
	w.attach(w.group)
	second, err := w.CreateBalancer(scope, state.BalancerSpec{Name: "second", Subnets: []string{"subnet-a", "subnet-b"}}, addressOf(2), w.now)
	w.check(err)
	many := []string{}
	for i := range 6 {
		many = append(many, w.newGroup(fmt.Sprintf("g%d", i)))
	}
	edit := func(change func(*state.ListenerSpec)) state.ListenerSpec {
		s := forwardTo(many[0])
		s.Port = p32(8081)
		change(&s)
		return s
	}
	tests := map[string]struct {
		balancer string
		spec     state.ListenerSpec
		want     string
	}{
		"no port":                {w.balancer, edit(func(l *state.ListenerSpec) { l.Port = nil }), "ValidationError"},
		"port 65536":             {w.balancer, edit(func(l *state.ListenerSpec) { l.Port = p32(65536) }), "ValidationError"},
		"no protocol":            {w.balancer, edit(func(l *state.ListenerSpec) { l.Protocol = "" }), "ValidationError"},
		"TCP":                    {w.balancer, edit(func(l *state.ListenerSpec) { l.Protocol = "TCP" }), "ValidationError"},
		"not here: HTTPS":        {w.balancer, edit(func(l *state.ListenerSpec) { l.Protocol = "HTTPS" }), "UnsupportedProtocol"},
		"port taken":             {w.balancer, edit(func(l *state.ListenerSpec) { l.Port = p32(8080) }), "DuplicateListener"},
		"no action":              {w.balancer, edit(func(l *state.ListenerSpec) { l.Actions = nil }), "InvalidLoadBalancerAction"},
		"no group":               {w.balancer, forwardToAt(8081), "ValidationError"},
		"no such group":          {w.balancer, forwardToAt(8081, strings.Replace(w.group, "web", "wob", 1)), "TargetGroupNotFound"},
		"TCP group":              {w.balancer, forwardToAt(8081, tcp), "IncompatibleProtocols"},
		"six groups":             {w.balancer, forwardToAt(8081, many...), "TooManyTargetGroups"},
		"a group twice":          {w.balancer, forwardToAt(8081, many[0], many[0]), "ValidationError"},
		"a group of another one": {second.ARN, forwardToAt(8081, w.group), "TargetGroupAssociationLimit"},
		"no such load balancer":  {strings.Replace(w.balancer, "front", "back", 1), forwardToAt(8081, many[0]), "LoadBalancerNotFound"},
		"weight 1000":            {w.balancer, edit(func(l *state.ListenerSpec) { l.Actions[0].Action.Forward[0].Weight = 1000 }), "ValidationError"},
		"a group used twice":     {w.balancer, forwardToAt(8081, w.group), "<nil>"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l, err := w.CreateListener(scope, tt.balancer, tt.spec, opened, w.now)
			if code(err) != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if err == nil {
				_, err = w.DeleteListener(scope, l.ARN, w.now)
				w.check(err)
			}
		})
	}
	t.Run("a port that cannot be opened", func(t *testing.T) {
		before, _ := w.Listeners(scope, w.balancer, nil)
		_, err := w.CreateListener(scope, w.balancer, forwardToAt(8082, many[0]), func(state.Listener) error { return errors.New("address in use") }, w.now)
		if code(err) != "InvalidConfigurationRequest" || !strings.Contains(err.Error(), "address in use") {
			t.Errorf("got %v, want InvalidConfigurationRequest with the reason", err)
		}
		if after, _ := w.Listeners(scope, w.balancer, nil); len(after) != len(before) {
			t.Errorf("%d listeners, want %d as before", len(after), len(before))
		}
	})
}

func forwardToAt(port int32, groups ...string) state.ListenerSpec {
	s := forwardTo(groups...)
	s.Port = p32(port)
	return s
}

func TestDeleting(t *testing.T) {
	w := newWorld(t)
	w.attach(w.group)
	w.check(w.Register(scope, w.group, targets("10.64.1.1"), w.now))
	if err := w.DeleteGroup(scope, w.group, w.now); code(err) != "ResourceInUse" {
		t.Errorf("a group in use: %v, want ResourceInUse", err)
	}
	_, err := w.BalancerAttributes(scope, w.balancer, []state.Attribute{{Key: "deletion_protection.enabled", Value: "true"}})
	w.check(err)
	if _, _, err := w.DeleteBalancer(scope, w.balancer, w.now); code(err) != "OperationNotPermitted" {
		t.Errorf("a protected load balancer: %v, want OperationNotPermitted", err)
	}
	_, err = w.BalancerAttributes(scope, w.balancer, []state.Attribute{{Key: "deletion_protection.enabled", Value: "false"}})
	w.check(err)
	_, ok, err := w.DeleteBalancer(scope, w.balancer, w.now)
	w.check(err)
	if got := w.status("10.64.1.1"); !ok || got != "unused/NotInUse" {
		t.Errorf("without its load balancer the target is %s, want unused/NotInUse", got)
	}
	if _, ok, err := w.DeleteBalancer(scope, w.balancer, w.now); ok || err != nil {
		t.Errorf("deleting it again: %v %v, want no error", ok, err)
	}
	w.check(w.DeleteGroup(scope, w.group, w.now))
	if due, next := w.Advance(w.now.Add(1e12)); len(due) > 0 || !next.IsZero() {
		t.Errorf("a deleted group still has %d checks due, more at %v", len(due), next)
	}
}

func TestAttributes(t *testing.T) {
	w := newWorld(t)
	for name, tt := range map[string]struct{ key, value, want string }{
		"delay":            {"deregistration_delay.timeout_seconds", "0", "<nil>"},
		"delay too long":   {"deregistration_delay.timeout_seconds", "3601", "ValidationError"},
		"delay no number":  {"deregistration_delay.timeout_seconds", "soon", "ValidationError"},
		"unknown":          {"draining.timeout", "1", "ValidationError"},
		"algorithm":        {"load_balancing.algorithm.type", "least_outstanding_requests", "<nil>"},
		"no such one":      {"load_balancing.algorithm.type", "best", "ValidationError"},
		"network's only":   {"preserve_client_ip.enabled", "true", "ValidationError"},
		"slow start 29":    {"slow_start.duration_seconds", "29", "ValidationError"},
		"slow start":       {"slow_start.duration_seconds", "30", "<nil>"},
		"percentage off":   {"target_group_health.unhealthy_state_routing.minimum_healthy_targets.percentage", "off", "<nil>"},
		"percentage of 0":  {"target_group_health.unhealthy_state_routing.minimum_healthy_targets.percentage", "0", "ValidationError"},
		"minimum is a sum": {"target_group_health.unhealthy_state_routing.minimum_healthy_targets.count", "2", "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := w.GroupAttributes(scope, w.group, nil)
			w.check(err)
			good := state.Attribute{Key: "stickiness.enabled", Value: "true"}
			_, err = w.GroupAttributes(scope, w.group, []state.Attribute{good, {Key: tt.key, Value: tt.value}})
			if code(err) != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			after, _ := w.GroupAttributes(scope, w.group, nil)
			if err != nil && fmt.Sprint(before) != fmt.Sprint(after) {
				t.Errorf("refused, but changed:\n%v\n%v", before, after)
			}
			_, err = w.GroupAttributes(scope, w.group, []state.Attribute{{Key: "stickiness.enabled", Value: "false"}})
			w.check(err)
		})
	}
}
