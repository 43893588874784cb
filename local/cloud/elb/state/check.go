package state

import (
	"strconv"
	"strings"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
)

// CheckSpec is what a caller says of the health checks. What is nil keeps its
// value, or takes the default of the group's protocol.
type CheckSpec struct {
	Enabled            *bool
	Protocol, Port     *string
	Path, Matcher      *string
	Interval, Timeout  *int32 // seconds
	HealthyThreshold   *int32
	UnhealthyThreshold *int32
}

// defaultCheck is what a group of this protocol begins with.
func defaultCheck(protocol string, spec CheckSpec) Check {
	c := Check{
		Protocol: "HTTP", Port: TrafficPort, Path: "/", Matcher: "200",
		Interval: 30 * time.Second, Timeout: 6 * time.Second, HealthyThreshold: 5, UnhealthyThreshold: 2,
	}
	switch protocol {
	case "HTTPS":
		c.Timeout = 10 * time.Second
	case "TCP":
		c.Protocol, c.Matcher = "TCP", "200-399"
		if spec.Protocol == nil || *spec.Protocol != "HTTP" {
			c.Timeout = 10 * time.Second
		}
	}
	return c
}

// apply returns the check with the spec's values, if they are right together.
func (c Check) apply(spec CheckSpec, groupProtocol string) (Check, error) {
	if spec.Enabled != nil && !*spec.Enabled {
		return c, core.Errorf("ValidationError", "Health check enabled must be true for target groups with target type 'instance' or 'ip'")
	}
	set(&c.Protocol, spec.Protocol)
	set(&c.Port, spec.Port)
	set(&c.Path, spec.Path)
	set(&c.Matcher, spec.Matcher)
	if err := setSeconds(&c.Interval, spec.Interval, "healthCheckIntervalSeconds", 5, 300); err != nil {
		return c, err
	}
	if err := setSeconds(&c.Timeout, spec.Timeout, "healthCheckTimeoutSeconds", 2, 120); err != nil {
		return c, err
	}
	if err := setCount(&c.HealthyThreshold, spec.HealthyThreshold, "healthyThresholdCount"); err != nil {
		return c, err
	}
	if err := setCount(&c.UnhealthyThreshold, spec.UnhealthyThreshold, "unhealthyThresholdCount"); err != nil {
		return c, err
	}
	return c, c.validate(spec, groupProtocol)
}

func (c Check) validate(spec CheckSpec, groupProtocol string) error {
	lowest, highest := 200, 499
	switch {
	case c.Protocol != "HTTP" && c.Protocol != "HTTPS" && c.Protocol != "TCP":
		return constraint(c.Protocol, "healthCheckProtocol", "satisfy enum value set: [HTTP, HTTPS, TCP]")
	case c.Protocol == "TCP" && groupProtocol != "TCP":
		return core.Errorf("ValidationError", "Health check protocol 'TCP' is not supported for target groups with protocol '%s'", groupProtocol)
	case c.Protocol == "TCP" && (spec.Path != nil || spec.Matcher != nil):
		return core.Errorf("ValidationError", "You cannot specify a health check path or matcher for target groups with health check protocol 'TCP'")
	case groupProtocol == "TCP":
		highest = 599
	}
	if c.Port != TrafficPort {
		if n, err := strconv.Atoi(c.Port); err != nil || n < 1 || n > 65535 {
			return core.Errorf("ValidationError", "Health check port '%s' must be '%s' or a number from 1 to 65535", c.Port, TrafficPort)
		}
	}
	if !strings.HasPrefix(c.Path, "/") || len(c.Path) > 1024 {
		return core.Errorf("ValidationError", "Health check path '%s' must begin with a '/' character and have at most 1024 characters", c.Path)
	}
	if c.Timeout > c.Interval || c.Timeout == c.Interval && groupProtocol != "TCP" {
		return core.Errorf("ValidationError", "Health check timeout '%d' must be smaller than the interval '%d'", int(c.Timeout.Seconds()), int(c.Interval.Seconds()))
	}
	if _, err := ParseMatcher(c.Matcher, lowest, highest); err != nil {
		return err
	}
	return nil
}

// Matcher is a set of HTTP codes.
type Matcher [][2]int

// ParseMatcher reads "200", "200,204" or "200-299", each code from lowest to
// highest.
func ParseMatcher(text string, lowest, highest int) (Matcher, error) {
	var m Matcher
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || a < lowest || b > highest || a > b {
			return nil, core.Errorf("ValidationError", "Health check matcher HTTP code '%s' must be values, or ranges of values, from %d to %d", text, lowest, highest)
		}
		m = append(m, [2]int{a, b})
	}
	return m, nil
}

// Matches says whether the set has a code.
func (m Matcher) Matches(code int) bool {
	for _, r := range m {
		if code >= r[0] && code <= r[1] {
			return true
		}
	}
	return false
}

func set[T any](to *T, v *T) {
	if v != nil {
		*to = *v
	}
}

func setSeconds(to *time.Duration, v *int32, at string, lowest, highest int32) error {
	if v == nil {
		return nil
	}
	if err := within(*v, at, lowest, highest); err != nil {
		return err
	}
	*to = time.Duration(*v) * time.Second
	return nil
}

func setCount(to *int, v *int32, at string) error {
	if v == nil {
		return nil
	}
	*to = int(*v)
	return within(*v, at, 2, 10)
}

func within(v int32, at string, lowest, highest int32) error {
	switch {
	case v < lowest:
		return constraint(strconv.Itoa(int(v)), at, "have value greater than or equal to %d", lowest)
	case v > highest:
		return constraint(strconv.Itoa(int(v)), at, "have value less than or equal to %d", highest)
	}
	return nil
}
