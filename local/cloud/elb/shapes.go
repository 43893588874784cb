package elb

import (
	"github.com/elbridge/elbridge/local/cloud/core"
)

// The shapes of answers, as encoding/xml writes them.

type tagShape struct{ Key, Value string }

type attributeShape struct{ Key, Value string }

type matcherShape struct{ HttpCode string }

type targetGroupShape struct {
	TargetGroupArn             string
	TargetGroupName            string
	Protocol                   string
	Port                       int32
	VpcId                      string
	HealthCheckProtocol        string
	HealthCheckPort            string
	HealthCheckEnabled         bool
	HealthCheckIntervalSeconds int
	HealthCheckTimeoutSeconds  int
	HealthyThresholdCount      int
	UnhealthyThresholdCount    int
	HealthCheckPath            string        `xml:",omitempty"`
	Matcher                    *matcherShape `xml:",omitempty"`
	LoadBalancerArns           core.List[string]
	TargetType                 string
	ProtocolVersion            string `xml:",omitempty"`
	IpAddressType              string
}

type targetShape struct {
	Id               string
	Port             int32
	AvailabilityZone string `xml:",omitempty"`
}

type healthShape struct {
	State       string
	Reason      string `xml:",omitempty"`
	Description string `xml:",omitempty"`
}

type anomalyShape struct{ Result, MitigationInEffect string }

type targetHealthShape struct {
	Target           targetShape
	HealthCheckPort  string
	TargetHealth     healthShape
	AnomalyDetection *anomalyShape `xml:",omitempty"`
}

type zoneShape struct {
	ZoneName, SubnetId    string
	LoadBalancerAddresses core.List[string]
}

type loadBalancerShape struct {
	LoadBalancerArn       string
	DNSName               string
	CanonicalHostedZoneId string
	CreatedTime           string
	LoadBalancerName      string
	Scheme                string
	VpcId                 string
	State                 struct{ Code string }
	Type                  string
	AvailabilityZones     core.List[zoneShape]
	SecurityGroups        core.List[string]
	IpAddressType         string
}

type tupleShape struct {
	TargetGroupArn string
	Weight         int32
}

type forwardShape struct {
	TargetGroups                core.List[tupleShape]
	TargetGroupStickinessConfig struct{ Enabled bool }
}

type fixedShape struct {
	StatusCode  string
	ContentType string `xml:",omitempty"`
	MessageBody string `xml:",omitempty"`
}

type redirectShape struct {
	Protocol, Port, Host, Path, Query, StatusCode string
}

type actionShape struct {
	Type                string
	TargetGroupArn      string         `xml:",omitempty"`
	Order               int32          `xml:",omitempty"`
	RedirectConfig      *redirectShape `xml:",omitempty"`
	FixedResponseConfig *fixedShape    `xml:",omitempty"`
	ForwardConfig       *forwardShape  `xml:",omitempty"`
}

type listenerShape struct {
	ListenerArn     string
	LoadBalancerArn string
	Port            int32
	Protocol        string
	DefaultActions  core.List[actionShape]
}

type tagDescriptionShape struct {
	ResourceArn string
	Tags        core.List[tagShape]
}

type limitShape struct{ Name, Max string }
