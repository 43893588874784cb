package state

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/elbridge/elbridge/local/cloud/elb/route"
)

// The target types of groups that the local cloud has.
const (
	TypeIP       = "ip"
	TypeInstance = "instance"
)

// TrafficPort is the health check port that follows the target's own.
const TrafficPort = "traffic-port"

// Group is a target group without its targets.
type Group struct {
	ARN, Name    string
	Protocol     string // HTTP, HTTPS, TCP
	Port         int32
	VPC          string
	TargetType   string // TypeIP, TypeInstance
	Family       string // ipv4, ipv6
	Version      string // HTTP1, or empty for TCP
	Check        Check
	Balancers    []string // ARNs of load balancers that forward to it: none or one
	CreationTime time.Time
}

// Check is how the targets of a group are probed.
type Check struct {
	Protocol           string // HTTP, HTTPS, TCP
	Port               string // TrafficPort or a number
	Path               string
	Matcher            string        // as "200-299,301"
	Interval           time.Duration // 5 s to 300 s
	Timeout            time.Duration // 2 s to 120 s
	HealthyThreshold   int           // 2 to 10 successes in a row
	UnhealthyThreshold int           // 2 to 10 failures in a row
}

// Key is (id, port), which is what ELB knows a target by.
type Key = route.Key

// Status is a target's state and reason, in the words of DescribeTargetHealth.
type Status struct{ State, Reason, Description string }

// TargetHealth is an answer about one target.
type TargetHealth struct {
	Key
	Zone      string // empty for instances
	CheckPort string
	Status
}

// Balancer is a load balancer.
type Balancer struct {
	ARN, Name      string
	Kind           route.Kind
	Scheme         string
	IPType         string
	VPC            string
	Subnets        []Subnet
	SecurityGroups []string
	Address        netip.Addr // its own loopback address, which is its DNS name
	CreationTime   time.Time
}

// Listener is a listener of a load balancer.
type Listener struct {
	ARN, Balancer string
	Port          int32
	Protocol      string // HTTP or TCP
	Actions       []Action
}

// Action is a listener's default action.
type Action struct {
	Type   string // forward, fixed-response, redirect
	Order  int32
	Action route.Action
}

// Attribute is a setting of a group or a load balancer.
type Attribute struct{ Key, Value string }

// Tag is a tag of any resource.
type Tag struct{ Key, Value string }

func sortedTags(m map[string]string) []Tag {
	out := make([]Tag, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, Tag{k, m[k]})
	}
	return out
}

func sortedAttributes(m map[string]string) []Attribute {
	out := make([]Attribute, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, Attribute{k, m[k]})
	}
	return out
}

// groups returns the ARNs that the actions forward to.
func groupsOf(actions []Action) []string {
	var out []string
	for _, a := range actions {
		for _, w := range a.Action.Forward {
			out = append(out, w.GroupARN)
		}
	}
	return out
}
