package stack

import (
	"context"
	"path/filepath"

	"github.com/elbridge/elbridge/local/cluster"
	"github.com/elbridge/elbridge/local/functions"
	"github.com/elbridge/elbridge/pkg/telemetry"
)

type part struct {
	name  string
	start func() error
}

// parts are what this stack is made of, in the order of their start.
func (s *Stack) parts(ctx, run context.Context, rie string, binaries cluster.Binaries) []part {
	parts := []part{
		{"the local AWS", func() error { return s.startCloud(ctx, run, rie) }},
		{"the control plane", func() error { return s.startCluster(ctx, run, binaries) }},
		{"the nodes", func() error { return s.startNodes(ctx, run) }},
	}
	if s.Config.Way != WayResync {
		parts = append(parts, part{"the registrar", func() error { s.StartRegistrar(); return nil }}) //nolint:contextcheck // it lives as long as the stack
	}
	parts = append(parts, part{"the webhook", func() error { return s.startWebhook(ctx) }})
	switch {
	case s.Config.Way == WayEvents:
	case s.Config.hasResync():
		parts = append(parts, part{"resync", func() error { return s.startResync(ctx) }})
	default:
		s.Config.Say("resync is not built (%s): without it", s.Config.resyncBootstrap())
	}
	return parts
}

// functions makes registrar and resync known; no instance starts before it is
// needed.
func (s *Stack) functions(endpoint, rie string) (*functions.Runner, error) {
	env := functionEnv(registrarRole, endpoint)
	env[telemetry.EnvLogLevel] = s.Config.LogLevel.String()
	if s.Config.Pace > 0 {
		env[telemetry.EnvRegisterPace] = s.Config.Pace.String()
	}
	all := []functions.Function{{Name: Registrar, Bootstrap: s.Config.Bootstrap, Env: env, Timeout: registrarTimeout, MemoryMB: 256, MaxConcurrency: registrarInstances}}
	if s.HasResync = s.Config.hasResync(); s.HasResync {
		all = append(all, s.resync(endpoint), s.secondResync(endpoint), s.otherResync(endpoint))
	}
	return functions.New(functions.Config{RIE: rie, Dir: filepath.Join(s.Config.Dir, "functions"), Region: Region, OnLine: s.Config.OnLine, Log: s.Config.Log}, all...)
}
