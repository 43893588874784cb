package elb

import (
	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb/state"
)

func groupShape(g state.Group) targetGroupShape {
	out := targetGroupShape{
		TargetGroupArn: g.ARN, TargetGroupName: g.Name, Protocol: g.Protocol, Port: g.Port, VpcId: g.VPC,
		HealthCheckProtocol: g.Check.Protocol, HealthCheckPort: g.Check.Port, HealthCheckEnabled: true,
		HealthCheckIntervalSeconds: int(g.Check.Interval.Seconds()), HealthCheckTimeoutSeconds: int(g.Check.Timeout.Seconds()),
		HealthyThresholdCount: g.Check.HealthyThreshold, UnhealthyThresholdCount: g.Check.UnhealthyThreshold,
		LoadBalancerArns: core.ListOf(g.Balancers), TargetType: g.TargetType, ProtocolVersion: g.Version, IpAddressType: g.Family,
	}
	if g.Check.Protocol != "TCP" {
		out.HealthCheckPath = g.Check.Path
		out.Matcher = &matcherShape{g.Check.Matcher}
	}
	return out
}

type groupsResult struct {
	TargetGroups core.List[targetGroupShape]
	NextMarker   string `xml:",omitempty"`
}

func groupsResultOf(all ...state.Group) groupsResult {
	out := make([]targetGroupShape, len(all))
	for i, g := range all {
		out[i] = groupShape(g)
	}
	return groupsResult{TargetGroups: core.ListOf(out)}
}

// checkSpec reads what CreateTargetGroup and ModifyTargetGroup say of health
// checks.
func checkSpec(p core.Params) (state.CheckSpec, error) {
	spec := state.CheckSpec{Protocol: text(p, "HealthCheckProtocol"), Port: text(p, "HealthCheckPort"), Path: text(p, "HealthCheckPath")}
	if p.Has("Matcher") {
		m := p.Struct("Matcher")
		if m.Has("GrpcCode") {
			return spec, core.Errorf("ValidationError", "A gRPC matcher is only valid for target groups with protocol version 'GRPC'")
		}
		spec.Matcher = text(m, "HttpCode")
	}
	var err error
	if spec.Enabled, err = flag(p, "HealthCheckEnabled"); err != nil {
		return spec, err
	}
	for name, to := range map[string]**int32{
		"HealthCheckIntervalSeconds": &spec.Interval,
		"HealthCheckTimeoutSeconds":  &spec.Timeout,
		"HealthyThresholdCount":      &spec.HealthyThreshold,
		"UnhealthyThresholdCount":    &spec.UnhealthyThreshold,
	} {
		if *to, err = p.Int(name); err != nil {
			return spec, err
		}
	}
	return spec, nil
}

func (s *Service) createTargetGroup(call *core.Call) (any, error) {
	p := call.Params
	check, err := checkSpec(p)
	if err != nil {
		return nil, err
	}
	port, err := p.Int("Port")
	if err != nil {
		return nil, err
	}
	g, err := s.store.CreateGroup(call.Scope, state.GroupSpec{
		Name: p.Get("Name"), Protocol: p.Get("Protocol"), VPC: p.Get("VpcId"), Port: port,
		TargetType: p.Get("TargetType"), Family: p.Get("IpAddressType"), Version: p.Get("ProtocolVersion"),
		Check: check, Tags: tags(p),
	}, call.Time)
	if err != nil {
		return nil, err
	}
	return groupsResultOf(g), nil
}

func (s *Service) modifyTargetGroup(call *core.Call) (any, error) {
	arn, err := required(call.Params, "TargetGroupArn", "targetGroupArn")
	if err != nil {
		return nil, err
	}
	check, err := checkSpec(call.Params)
	if err != nil {
		return nil, err
	}
	g, err := s.store.ModifyGroup(call.Scope, arn, check)
	if err != nil {
		return nil, err
	}
	return groupsResultOf(g), nil
}

func (s *Service) deleteTargetGroup(call *core.Call) (any, error) {
	arn, err := required(call.Params, "TargetGroupArn", "targetGroupArn")
	if err != nil {
		return nil, err
	}
	return nil, s.store.DeleteGroup(call.Scope, arn, call.Time)
}

func (s *Service) describeTargetGroups(call *core.Call) (any, error) {
	p := call.Params
	arns, names, balancer := p.Strings("TargetGroupArns"), p.Strings("Names"), p.Get("LoadBalancerArn")
	var of []string
	if balancer != "" {
		of = []string{balancer}
	}
	if err := checkDescribed("target groups", arns, names, of); err != nil {
		return nil, err
	}
	all, err := s.store.Groups(call.Scope, balancer, arns, names)
	if err != nil {
		return nil, err
	}
	all, next, err := page(p, all, func(g state.Group) string { return g.Name })
	if err != nil {
		return nil, err
	}
	out := groupsResultOf(all...)
	out.NextMarker = next
	return out, nil
}

type attributesResult struct {
	Attributes core.List[attributeShape]
}

// targetGroupAttributes answers both the Describe and the Modify call.
func (s *Service) targetGroupAttributes(call *core.Call) (any, error) {
	arn, err := required(call.Params, "TargetGroupArn", "targetGroupArn")
	if err != nil {
		return nil, err
	}
	all, err := s.store.GroupAttributes(call.Scope, arn, attributes(call.Params))
	if err != nil {
		return nil, err
	}
	return attributesResult{attributeShapes(all)}, nil
}
