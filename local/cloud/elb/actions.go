package elb

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb/route"
	"github.com/elbridge/elbridge/local/cloud/elb/state"
)

// actions reads a listener's actions.
func actions(members []core.Params) ([]state.Action, error) {
	out := make([]state.Action, 0, len(members))
	for i, m := range members {
		a := state.Action{Type: m.Get("Type")}
		order, err := m.Int("Order")
		if err != nil {
			return nil, err
		}
		if order != nil {
			a.Order = *order
		}
		switch a.Type {
		case "forward":
			a.Action.Forward, err = forward(m)
		case "fixed-response":
			a.Action.Fixed, err = fixedResponse(m.Struct("FixedResponseConfig"))
		case "redirect":
			a.Action.Redirect, err = redirect(m.Struct("RedirectConfig"))
		case "authenticate-oidc", "authenticate-cognito", "jwt-validation":
			err = core.Errorf("InvalidLoadBalancerAction", "The action type '%s' is not part of the local cloud: it has forward, fixed-response and redirect", a.Type)
		default:
			err = core.Errorf("ValidationError", "1 validation error detected: Value '%s' at 'actions.%d.member.type' failed to satisfy constraint: Member must satisfy enum value set: [forward, redirect, fixed-response]", a.Type, i+1)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// forward reads a forward to one group or to several with weights. A group
// named in both ways must be the same one.
func forward(m core.Params) ([]route.Weighted, error) {
	single, config := m.Get("TargetGroupArn"), m.Struct("ForwardConfig")
	if config.Get("TargetGroupStickinessConfig.Enabled") == "true" {
		return nil, core.Errorf("InvalidLoadBalancerAction", "Target group stickiness is not part of the local cloud")
	}
	var out []route.Weighted
	for _, t := range config.Members("TargetGroups") {
		w, err := t.Int("Weight")
		if err != nil {
			return nil, err
		}
		one := route.Weighted{GroupARN: t.Get("TargetGroupArn"), Weight: 1}
		if w != nil {
			one.Weight = *w
		}
		out = append(out, one)
	}
	switch {
	case single == "":
		return out, nil
	case len(out) == 0:
		return []route.Weighted{{GroupARN: single, Weight: 1}}, nil
	case len(out) == 1 && out[0].GroupARN == single:
		return out, nil
	}
	return nil, core.Errorf("InvalidLoadBalancerAction", "You cannot specify both a target group ARN and a forward config with other target groups")
}

var statusCode = regexp.MustCompile(`^[245]\d\d$`)

func fixedResponse(c core.Params) (*route.Fixed, error) {
	code := c.Get("StatusCode")
	if !statusCode.MatchString(code) {
		return nil, core.Errorf("ValidationError", "1 validation error detected: Value '%s' at 'fixedResponseConfig.statusCode' failed to satisfy constraint: Member must satisfy regular expression pattern: ^(2|4|5)\\d\\d$", code)
	}
	body := c.Get("MessageBody")
	if len(body) > 1024 {
		return nil, core.Errorf("ValidationError", "The message body of a fixed response must have at most 1024 characters, got %d", len(body))
	}
	n, _ := strconv.Atoi(code) // three digits
	return &route.Fixed{Status: n, ContentType: c.Get("ContentType"), Body: body}, nil
}

func redirect(c core.Params) (*route.Redirect, error) {
	status := map[string]int{"HTTP_301": 301, "HTTP_302": 302}[c.Get("StatusCode")]
	if status == 0 {
		return nil, core.Errorf("ValidationError", "1 validation error detected: Value '%s' at 'redirectConfig.statusCode' failed to satisfy constraint: Member must satisfy enum value set: [HTTP_301, HTTP_302]", c.Get("StatusCode"))
	}
	r := &route.Redirect{
		Status:   status,
		Protocol: cmp.Or(c.Get("Protocol"), "#{protocol}"), Host: cmp.Or(c.Get("Host"), "#{host}"), Port: cmp.Or(c.Get("Port"), "#{port}"),
		Path: cmp.Or(c.Get("Path"), "/#{path}"), Query: cmp.Or(c.Get("Query"), "#{query}"),
	}
	same := r.Protocol == "#{protocol}" && r.Host == "#{host}" && r.Port == "#{port}" && r.Path == "/#{path}"
	switch {
	case !strings.HasPrefix(r.Path, "/"):
		return nil, core.Errorf("ValidationError", "The path '%s' of a redirect must begin with '/'", r.Path)
	case same:
		return nil, core.Errorf("InvalidLoadBalancerAction", "The redirect configuration is not valid because it creates a loop")
	}
	return r, nil
}

func actionShapeOf(a state.Action) actionShape {
	out := actionShape{Type: a.Type, Order: a.Order}
	switch {
	case a.Action.Fixed != nil:
		f := a.Action.Fixed
		out.FixedResponseConfig = &fixedShape{StatusCode: strconv.Itoa(f.Status), ContentType: f.ContentType, MessageBody: f.Body}
	case a.Action.Redirect != nil:
		r := a.Action.Redirect
		out.RedirectConfig = &redirectShape{Protocol: r.Protocol, Host: r.Host, Port: r.Port, Path: r.Path, Query: r.Query, StatusCode: "HTTP_" + strconv.Itoa(r.Status)}
	default:
		out.ForwardConfig = &forwardShape{}
		for _, w := range a.Action.Forward {
			out.ForwardConfig.TargetGroups.Member = append(out.ForwardConfig.TargetGroups.Member, tupleShape{TargetGroupArn: w.GroupARN, Weight: w.Weight})
		}
		if len(a.Action.Forward) == 1 {
			out.TargetGroupArn = a.Action.Forward[0].GroupARN
		}
	}
	return out
}
