package main

import (
	"context"
	_ "embed"
	"time"

	"github.com/elbridge/elbridge/local/stack"
)

// demo is an ingress proxy as a team would deploy it for direct pod access.
//
//go:embed demo.yaml
var demo []byte

const (
	demoPort    = 8080 // the load balancer's
	demoPodPort = 9999 // the pods'
	// demoTimeout bounds the deployment of three pods, which takes a second.
	demoTimeout = time.Minute
)

// deployDemo makes target group, load balancer and rule, deploys the pods, and
// returns the load balancer's URL.
func deployDemo(ctx context.Context, s *stack.Stack, tell *narrator) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	group, err := s.AWS.Group(ctx, "ingress", demoPodPort, true)
	if err != nil {
		return "", err
	}
	if err := s.AWS.DrainFor(ctx, group, 30); err != nil {
		return "", err
	}
	url, err := s.AWS.LoadBalancer(ctx, "ingress", demoPort, group)
	if err != nil {
		return "", err
	}
	tell.say("target group ingress, load balancer %s", url)
	detail := `{"cluster":["local"],"namespace":["ingress"],"labels":{"application":["skipper-ingress"]}}`
	if err := s.AWS.Rule(ctx, "ingress", detail, `{"targetGroup":"`+group+`","port":9999}`); err != nil {
		return "", err
	}
	tell.say("rule ingress on bus %s: pods of namespace ingress with application=skipper-ingress → that group, port 9999", stack.Bus)
	tell.say("deployment skipper: 3 pods")
	if err := s.Admin.Apply(ctx, demo); err != nil {
		return "", err
	}
	return url, s.WaitDeployment(ctx, "ingress", "skipper", 3)
}
