package elb

import (
	"slices"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb/state"
)

// targets reads a list of targets.
func targets(p core.Params) ([]state.Description, error) {
	members := p.Members("Targets")
	out := make([]state.Description, 0, len(members))
	for i, m := range members {
		port, err := m.Int("Port")
		if err != nil {
			return nil, err
		}
		d := state.Description{ID: m.Get("Id"), Zone: m.Get("AvailabilityZone")}
		if d.ID == "" {
			return nil, core.Errorf("ValidationError", "1 validation error detected: Value null at 'targets.%d.member.id' failed to satisfy constraint: Member must not be null", i+1)
		}
		if port != nil {
			d.Port = *port
			if d.Port == 0 {
				d.Port = -1 // given, and wrong
			}
		}
		if m.Has("QuicServerId") {
			return nil, core.Errorf("ValidationError", "A QUIC server ID is only valid with the protocols QUIC and TCP_QUIC")
		}
		out = append(out, d)
	}
	return out, nil
}

func groupAndTargets(call *core.Call) (string, []state.Description, error) {
	arn, err := required(call.Params, "TargetGroupArn", "targetGroupArn")
	if err != nil {
		return "", nil, err
	}
	all, err := targets(call.Params)
	return arn, all, err
}

func (s *Service) registerTargets(call *core.Call) (any, error) {
	arn, all, err := groupAndTargets(call)
	if err != nil {
		return nil, err
	}
	return nil, s.store.Register(call.Scope, arn, all, call.Time)
}

func (s *Service) deregisterTargets(call *core.Call) (any, error) {
	arn, all, err := groupAndTargets(call)
	if err != nil {
		return nil, err
	}
	return nil, s.store.Deregister(call.Scope, arn, all, call.Time)
}

type targetHealthResult struct {
	TargetHealthDescriptions core.List[targetHealthShape]
}

func (s *Service) describeTargetHealth(call *core.Call) (any, error) {
	arn, asked, err := groupAndTargets(call)
	if err != nil {
		return nil, err
	}
	all, err := s.store.Health(call.Scope, arn, asked)
	if err != nil {
		return nil, err
	}
	include := call.Params.Strings("Include")
	anomalies := slices.Contains(include, "AnomalyDetection") || slices.Contains(include, "All")
	out := make([]targetHealthShape, len(all))
	for i, t := range all {
		out[i] = targetHealthShape{
			Target:          targetShape{Id: t.ID, Port: t.Port, AvailabilityZone: t.Zone},
			HealthCheckPort: t.CheckPort,
			TargetHealth:    healthShape(t.Status),
		}
		if anomalies {
			out[i].AnomalyDetection = &anomalyShape{"normal", "no"}
		}
	}
	return targetHealthResult{core.ListOf(out)}, nil
}
