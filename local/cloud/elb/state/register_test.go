package state_test

import (
	"strings"
	"testing"

	"github.com/elbridge/elbridge/local/cloud/elb/state"
)

func TestRegisterRefuses(t *testing.T) {
	v6 := func(g *state.GroupSpec) { g.Family = "ipv6" }
	instances := func(g *state.GroupSpec) { g.TargetType = "instance" }
	tests := map[string]struct {
		kind    func(*state.GroupSpec)
		targets string
		want    string // code and a part of the message; empty: accepted
	}{
		"P011 no targets":                       {nil, "", "ValidationError|Value '[]' at 'targets'"},
		"port too large":                        {nil, "10.64.1.1:65536", "ValidationError|'targets.1.member.port'"},
		"port negative, second target":          {nil, "10.64.1.1 10.64.1.2:-1", "ValidationError|'targets.2.member.port'"},
		"no address":                            {nil, "pod-1", "ValidationError|'pod-1' is not a valid IPv4 address"},
		"instance id in an ip group":            {nil, "i-0000000000000000a", "ValidationError|not a valid IPv4 address"},
		"IPv6 in an IPv4 group":                 {nil, "fd00::1", "ValidationError|'fd00::1' is not a valid IPv4 address"},
		"IPv4 in an IPv6 group":                 {v6, "10.64.1.1", "ValidationError|'10.64.1.1' is not a valid IPv6 address"},
		"IPv4 as IPv6":                          {v6, "::ffff:10.64.1.1", "ValidationError|not a valid IPv6 address"},
		"IPv6 in the VPC":                       {v6, "fd00::1", ""},
		"IPv6 of a peered VPC":                  {v6, "fd01::1@all", ""},
		"IPv6 of a peered VPC, no zone":         {v6, "fd01::1", "ValidationError|you must specify an Availability Zone"},
		"IPv6 elsewhere":                        {v6, "fd02::1@all", "InvalidTarget|'fd02::1'"},
		"public":                                {nil, "8.8.8.8@all", "InvalidTarget|'8.8.8.8'"},
		"loopback":                              {nil, "127.0.0.1@all", "InvalidTarget|'127.0.0.1'"},
		"P013 outside the VPC, no zone":         {nil, "10.9.0.1", "ValidationError|you must specify an Availability Zone"},
		"P013 outside the VPC, all":             {nil, "10.9.0.1@all", ""},
		"outside the VPC, a zone":               {nil, "100.64.0.1@b", ""},
		"outside the VPC, no such zone":         {nil, "192.168.0.1@x", "ValidationError|'x'"},
		"P014 in a range without subnet":        {nil, "10.4.0.1", "ValidationError|you must specify an Availability Zone"},
		"P014 in a range without subnet, all":   {nil, "10.4.0.1@all", ""},
		"inside the VPC, all":                   {nil, "10.64.1.1@all", "ValidationError|cannot have its Availability Zone overridden to 'all' from 'a'"},
		"inside the VPC, another zone":          {nil, "10.64.1.1@b", "ValidationError|overridden to 'b' from 'a'"},
		"inside the VPC, its zone":              {nil, "10.64.1.1@a", ""},
		"instance":                              {instances, "i-0000000000000000a:30080", ""},
		"address in an instance group":          {instances, "10.64.1.1", "ValidationError|Instance ID '10.64.1.1' is not valid"},
		"instance with a zone":                  {instances, "i-0000000000000000a@a", "ValidationError|cannot specify an Availability Zone"},
		"instance that is stopped":              {instances, "i-0000000000000000b", "InvalidTarget|not in a running state"},
		"instance of another VPC":               {instances, "i-0000000000000000c", "InvalidTarget|not in the target group VPC"},
		"instance that nobody knows":            {instances, "i-0000000000000000f", "InvalidTarget|'i-0000000000000000f'"},
		"all or nothing: the last one is wrong": {nil, "10.64.1.1 10.64.1.2 10.9.0.1", "ValidationError|10.9.0.1"},
		"all or nothing: the first one is":      {nil, "8.8.8.8 10.64.1.1", "InvalidTarget|8.8.8.8"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.group = w.newGroup("other", func(g *state.GroupSpec) {
				if tt.kind != nil {
					tt.kind(g)
				}
			})
			err := w.Register(scope, w.group, targets(tt.targets), w.now)
			want, part, _ := strings.Cut(tt.want, "|")
			switch {
			case tt.want == "" && err != nil:
				t.Fatalf("refused: %v", err)
			case tt.want == "":
				if got := w.all(); !strings.Contains(got, "=unused") {
					t.Errorf("targets are %q, want it there", got)
				}
				return
			case code(err) != want || !strings.Contains(err.Error(), part):
				t.Errorf("got %v, want %s with %q", err, want, part)
			}
			if got := w.all(); got != "" {
				t.Errorf("refused, but there are %s", got)
			}
		})
	}
}

func TestKeysAreIDAndPort(t *testing.T) {
	tests := map[string]struct{ register, deregister, want string }{
		"one address, two ports":                  {"10.64.1.1:80 10.64.1.1:81", "", "10.64.1.1:80 10.64.1.1:81"},
		"no port is the group's":                  {"10.64.1.1", "10.64.1.1:80", ""},
		"P056 without the port of the override":   {"10.64.1.1:81", "10.64.1.1", "10.64.1.1:81"},
		"P056 with the port of the override":      {"10.64.1.1:81", "10.64.1.1:81", ""},
		"only the named port":                     {"10.64.1.1:80 10.64.1.1:81", "10.64.1.1:81", "10.64.1.1:80"},
		"not registered":                          {"10.64.1.1", "10.64.1.9", "10.64.1.1:80"},
		"the same twice in a call":                {"10.64.1.1 10.64.1.1:80", "", "10.64.1.1:80"},
		"deregistering twice in a call":           {"10.64.1.1 10.64.1.2", "10.64.1.1 10.64.1.1", "10.64.1.2:80"},
		"a zone in a deregistration is no matter": {"10.9.0.1@all", "10.9.0.1@a", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.check(w.Register(scope, w.group, targets(tt.register), w.now))
			if tt.deregister != "" {
				w.check(w.Deregister(scope, w.group, targets(tt.deregister), w.now))
			}
			if got := strings.ReplaceAll(w.all(), "=unused", ""); got != tt.want {
				t.Errorf("left are %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDeregisterRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ targets, want string }{
		"P011 no targets": {"", "ValidationError"},
		"no address":      {"x", "ValidationError"},
		"wrong port":      {"10.64.1.1:70000", "ValidationError"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if err := w.Deregister(scope, w.group, targets(tt.targets), w.now); code(err) != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestQuotas(t *testing.T) {
	few := func(change func(*state.Limits)) func(*state.Config) {
		return func(c *state.Config) { change(&c.Limits) }
	}
	tests := map[string]struct {
		limit  func(*state.Limits)
		first  string // registered in the first group
		second string // then in the second; both are behind the load balancer
		want   string // of the second call
	}{
		"P010 group full":                     {func(l *state.Limits) { l.TargetsPerGroup = 2 }, "", "10.64.1.1 10.64.1.2 10.64.1.3", "TooManyTargets"},
		"group just full":                     {func(l *state.Limits) { l.TargetsPerGroup = 2 }, "", "10.64.1.1 10.64.1.2", "<nil>"},
		"load balancer full":                  {func(l *state.Limits) { l.TargetsPerALB = 3 }, "10.64.1.1 10.64.1.2", "10.64.1.1 10.64.1.2", "TooManyTargets"},
		"load balancer just full":             {func(l *state.Limits) { l.TargetsPerALB = 4 }, "10.64.1.1 10.64.1.2", "10.64.1.1 10.64.1.2", "<nil>"},
		"one id too often":                    {func(l *state.Limits) { l.RegistrationsPerTargetID = 2 }, "10.64.1.1:80 10.64.1.1:81", "10.64.1.1:82", "TooManyRegistrationsForTargetId"},
		"registered ones count once":          {func(l *state.Limits) { l.TargetsPerALB = 2 }, "10.64.1.1", "10.64.1.1 10.64.1.1", "<nil>"},
		"one id in several groups, each once": {func(l *state.Limits) { l.RegistrationsPerTargetID = 2 }, "10.64.1.1", "10.64.1.1", "<nil>"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, few(tt.limit))
			second := w.newGroup("second")
			w.attach(w.group, second)
			if tt.first != "" {
				w.check(w.Register(scope, w.group, targets(tt.first), w.now))
			}
			if err := w.Register(scope, second, targets(tt.second), w.now); code(err) != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	t.Run("P010 a deregistration makes room", func(t *testing.T) {
		w := newWorld(t, few(func(l *state.Limits) { l.TargetsPerGroup = 1 }))
		w.attach(w.group)
		w.check(w.Register(scope, w.group, targets("10.64.1.1"), w.now))
		if err := w.Register(scope, w.group, targets("10.64.1.2"), w.now); code(err) != "TooManyTargets" {
			t.Fatalf("got %v, want TooManyTargets", err)
		}
		w.check(w.Register(scope, w.group, targets("10.64.1.1"), w.now)) // is there: no new one
		w.check(w.Deregister(scope, w.group, targets("10.64.1.1"), w.now))
		w.check(w.Register(scope, w.group, targets("10.64.1.2"), w.now))
	})
	t.Run("attaching a group counts too", func(t *testing.T) {
		w := newWorld(t, few(func(l *state.Limits) { l.TargetsPerALB = 1 }))
		w.check(w.Register(scope, w.group, targets("10.64.1.1 10.64.1.2"), w.now))
		_, err := w.CreateListener(scope, w.balancer, forwardTo(w.group), opened, w.now)
		if code(err) != "TooManyTargets" {
			t.Errorf("got %v, want TooManyTargets", err)
		}
	})
}

func TestScopesAreApart(t *testing.T) {
	w := newWorld(t)
	other := scope
	other.Account = "444455556666"
	if err := w.Register(other, w.group, targets("10.64.1.1"), w.now); code(err) != "TargetGroupNotFound" {
		t.Errorf("another account: %v, want TargetGroupNotFound", err)
	}
	other = scope
	other.Region = "eu-central-1"
	if _, err := w.Groups(other, "", []string{w.group}, nil); code(err) != "TargetGroupNotFound" {
		t.Errorf("another region: %v, want TargetGroupNotFound", err)
	}
	if err := w.Register(scope, "web", targets("10.64.1.1"), w.now); code(err) != "ValidationError" {
		t.Errorf("a name for an ARN: %v, want ValidationError", err)
	}
}
