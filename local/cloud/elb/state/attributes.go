package state

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

// The attributes that the local cloud acts on.
const (
	attrDelay                = "deregistration_delay.timeout_seconds"
	attrTermination          = "deregistration_delay.connection_termination.enabled"
	attrUnhealthyTermination = "target_health_state.unhealthy.connection_termination.enabled"
	attrAlgorithm            = "load_balancing.algorithm.type"
	attrMinCount             = "target_group_health.unhealthy_state_routing.minimum_healthy_targets.count"
	attrMinPercent           = "target_group_health.unhealthy_state_routing.minimum_healthy_targets.percentage"
	attrCrossZone            = "load_balancing.cross_zone.enabled"
	attrProtection           = "deletion_protection.enabled"
	attrIdle                 = "idle_timeout.timeout_seconds"
)

// attribute is the default of a setting and which values it takes.
type attribute struct {
	def   string
	valid func(string) bool
	want  string
}

func oneOf(def string, others ...string) attribute {
	all := append([]string{def}, others...)
	return attribute{def, func(v string) bool { return slices.Contains(all, v) }, strings.Join(all, ", ")}
}

func number(def string, lowest, highest int, words ...string) attribute {
	return attribute{def, func(v string) bool {
		n, err := strconv.Atoi(v)
		return slices.Contains(words, v) || err == nil && n >= lowest && n <= highest
	}, strings.Join(append(words, strconv.Itoa(lowest)+" to "+strconv.Itoa(highest)), " or ")}
}

func text(def string) attribute {
	return attribute{def, func(v string) bool { return len(v) <= 1024 }, "at most 1024 characters"}
}

// groupAttributes are those of every group. Only some have an effect here: see
// the constants above.
var groupAttributes = map[string]attribute{
	attrDelay:            number("300", 0, 3600),
	"stickiness.enabled": oneOf("false", "true"),
	attrCrossZone:        oneOf("use_load_balancer_configuration", "true", "false"),
	attrMinCount:         number("1", 1, 1_000_000),
	attrMinPercent:       number("off", 1, 100, "off"),
	"target_group_health.dns_failover.minimum_healthy_targets.count":      number("1", 1, 1_000_000, "off"),
	"target_group_health.dns_failover.minimum_healthy_targets.percentage": number("off", 1, 100, "off"),
}

var applicationGroupAttributes = map[string]attribute{
	attrAlgorithm: oneOf("round_robin", "least_outstanding_requests", "weighted_random"),
	"load_balancing.algorithm.anomaly_mitigation": oneOf("off", "on"),
	"slow_start.duration_seconds":                 {"0", func(v string) bool { return v == "0" || number("", 30, 900).valid(v) }, "0 or 30 to 900"},
	"stickiness.type":                             oneOf("lb_cookie", "app_cookie"),
	"stickiness.lb_cookie.duration_seconds":       number("86400", 1, 604800),
	"stickiness.app_cookie.cookie_name":           text(""),
	"stickiness.app_cookie.duration_seconds":      number("86400", 1, 604800),
}

var networkGroupAttributes = map[string]attribute{
	attrTermination:              oneOf("false", "true"),
	attrUnhealthyTermination:     oneOf("true", "false"),
	"preserve_client_ip.enabled": oneOf("false", "true"),
	"proxy_protocol_v2.enabled":  oneOf("false", "true"),
	"stickiness.type":            oneOf("source_ip"),
	"target_health_state.unhealthy.draining_interval_seconds": number("0", 0, 360000),
}

var balancerAttributes = map[string]attribute{
	attrProtection:               oneOf("false", "true"),
	"access_logs.s3.enabled":     oneOf("false", "true"),
	"access_logs.s3.bucket":      text(""),
	"access_logs.s3.prefix":      text(""),
	"ipv6.deny_all_igw_traffic":  oneOf("false", "true"),
	"zonal_shift.config.enabled": oneOf("false", "true"),
}

var applicationAttributes = map[string]attribute{
	attrIdle:                                                   number("60", 1, 4000),
	attrCrossZone:                                              oneOf("true"),
	"client_keep_alive.seconds":                                number("3600", 60, 604800),
	"routing.http2.enabled":                                    oneOf("true", "false"),
	"routing.http.xff_client_port.enabled":                     oneOf("false", "true"),
	"routing.http.xff_header_processing.mode":                  oneOf("append"),
	"routing.http.preserve_host_header.enabled":                oneOf("false", "true"),
	"routing.http.drop_invalid_header_fields.enabled":          oneOf("false", "true"),
	"routing.http.desync_mitigation_mode":                      oneOf("defensive", "monitor", "strictest"),
	"routing.http.x_amzn_tls_version_and_cipher_suite.enabled": oneOf("false", "true"),
	"waf.fail_open.enabled":                                    oneOf("false", "true"),
}

var networkAttributes = map[string]attribute{
	attrCrossZone:                      oneOf("false", "true"),
	"dns_record.client_routing_policy": oneOf("any_availability_zone", "availability_zone_affinity", "partial_availability_zone_affinity"),
}

func groupSettings(protocol string) map[string]attribute {
	return settings(groupAttributes, applicationGroupAttributes, networkGroupAttributes, protocol != "TCP")
}

func balancerSettings(k route.Kind) map[string]attribute {
	return settings(balancerAttributes, applicationAttributes, networkAttributes, k == route.Application)
}

func settings(common, application, network map[string]attribute, isApplication bool) map[string]attribute {
	out := maps.Clone(common)
	if isApplication {
		maps.Copy(out, application)
	} else {
		maps.Copy(out, network)
	}
	return out
}

func defaults(known map[string]attribute) map[string]string {
	out := map[string]string{}
	for k, a := range known {
		out[k] = a.def
	}
	return out
}

func defaultGroupAttributes(protocol string) map[string]string {
	return defaults(groupSettings(protocol))
}

// merged returns old with the changes, or old as it was and an error.
func merged(old map[string]string, known map[string]attribute, what string, changes []Attribute) (map[string]string, error) {
	out := maps.Clone(old)
	for _, c := range changes {
		a, ok := known[c.Key]
		switch {
		case !ok:
			return old, core.Errorf("ValidationError", "%s attribute key '%s' is not recognized", what, c.Key)
		case !a.valid(c.Value):
			return old, core.Errorf("ValidationError", "%s attribute '%s' has the value '%s': it must be %s", what, c.Key, c.Value, a.want)
		}
		out[c.Key] = c.Value
	}
	return out, nil
}

// GroupAttributes returns the attributes of a group after applying changes, if
// there are any.
func (s *Store) GroupAttributes(sc core.Scope, arn string, changes []Attribute) ([]Attribute, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.scope(sc).group(arn)
	if err != nil {
		return nil, err
	}
	if len(changes) > 0 {
		if g.attributes, err = merged(g.attributes, groupSettings(g.Protocol), "Target group", changes); err != nil {
			return nil, err
		}
		s.publishGroup(g)
	}
	return sortedAttributes(g.attributes), nil
}

// BalancerAttributes is GroupAttributes for a load balancer.
func (s *Store) BalancerAttributes(sc core.Scope, arn string, changes []Attribute) ([]Attribute, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.scope(sc).balancer(arn)
	if err != nil {
		return nil, err
	}
	if len(changes) > 0 {
		if b.attributes, err = merged(b.attributes, balancerSettings(b.Kind), "Load balancer", changes); err != nil {
			return nil, err
		}
		s.publish(s.scope(sc), b)
	}
	return sortedAttributes(b.attributes), nil
}
