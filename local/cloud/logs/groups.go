package logs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/elbridge/elbridge/local/cloud/core"
)

var (
	nameForm       = regexp.MustCompile(`^[.\-_/#A-Za-z0-9]{1,512}$`)
	identifierForm = regexp.MustCompile(`^arn:aws:logs:([a-z0-9-]+):(\d{12}):log-group:([.\-_/#A-Za-z0-9]{1,512})$`)
)

// retentions are the days that a retention may have.
var retentions = []int{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}

// groupRequest names one log group.
type groupRequest struct {
	LogGroupName       string `json:"logGroupName"`
	LogGroupIdentifier string `json:"logGroupIdentifier"`
	RetentionInDays    int    `json:"retentionInDays"`
}

func checkName(name string) error {
	if !nameForm.MatchString(name) {
		return violation("logGroupName", name, `Member must satisfy regular expression pattern: [\.\-_/#A-Za-z0-9]+ and have length from 1 to 512`)
	}
	return nil
}

// find returns the group that a request names, by name or by ARN.
func (s *Service) find(call *core.Call, in groupRequest) (*group, error) {
	id := groupID{call.Scope, in.LogGroupName}
	switch {
	case (in.LogGroupName == "") == (in.LogGroupIdentifier == ""):
		return nil, invalid("Exactly one of logGroupName and logGroupIdentifier must be specified.")
	case strings.HasPrefix(in.LogGroupIdentifier, "arn:"):
		part := identifierForm.FindStringSubmatch(in.LogGroupIdentifier)
		if part == nil {
			return nil, violation("logGroupIdentifier", in.LogGroupIdentifier, `Member must satisfy regular expression pattern: [\w#+=/:,.@-]*`)
		}
		if part[1] != call.Region || part[2] != call.Account {
			return nil, noGroup()
		}
		id.name = part[3]
	case in.LogGroupIdentifier != "":
		id.name = in.LogGroupIdentifier
	}
	if err := checkName(id.name); err != nil {
		return nil, err
	}
	g := s.groups[id]
	if g == nil {
		return nil, noGroup()
	}
	g.trim(s.clock.Now())
	return g, nil
}

// with decodes a request and calls do with its group.
func (s *Service) with(call *core.Call, do func(*group, groupRequest) error) (any, error) {
	var in groupRequest
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	g, err := s.find(call, in)
	if err != nil {
		return nil, err
	}
	return nil, do(g, in)
}

func (s *Service) createGroup(call *core.Call) (any, error) {
	var in groupRequest
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	if err := checkName(in.LogGroupName); err != nil {
		return nil, err
	}
	if strings.HasPrefix(in.LogGroupName, "aws/") {
		return nil, invalid("Log groups starting with AWS/ are reserved for AWS.")
	}
	id, count := groupID{call.Scope, in.LogGroupName}, 0
	for other := range s.groups {
		if other.Scope == call.Scope {
			count++
		}
	}
	switch {
	case s.groups[id] != nil:
		return nil, taken("log group")
	case count >= maxGroups:
		return nil, limitExceeded()
	}
	s.groups[id] = newGroup(id, call.Time)
	return nil, nil
}

func (s *Service) deleteGroup(call *core.Call) (any, error) {
	return s.with(call, func(g *group, _ groupRequest) error {
		delete(s.groups, g.groupID)
		return nil
	})
}

func (s *Service) putRetention(call *core.Call) (any, error) {
	return s.with(call, func(g *group, in groupRequest) error {
		if !slices.Contains(retentions, in.RetentionInDays) {
			return violation("retentionInDays", fmt.Sprint(in.RetentionInDays), "Member must satisfy enum value set: "+fmt.Sprint(retentions))
		}
		g.retention = in.RetentionInDays
		g.trim(call.Time)
		return nil
	})
}

func (s *Service) deleteRetention(call *core.Call) (any, error) {
	return s.with(call, func(g *group, _ groupRequest) error {
		g.retention = 0
		return nil
	})
}

// groupAnswer is a log group in DescribeLogGroups.
type groupAnswer struct {
	LogGroupName      string `json:"logGroupName"`
	CreationTime      int64  `json:"creationTime"`
	RetentionInDays   int    `json:"retentionInDays,omitempty"`
	MetricFilterCount int    `json:"metricFilterCount"`
	ARN               string `json:"arn"`
	StoredBytes       int    `json:"storedBytes"`
	LogGroupClass     string `json:"logGroupClass"`
	LogGroupARN       string `json:"logGroupArn"`
}

func (s *Service) describeGroups(call *core.Call) (any, error) {
	var in struct {
		Prefix  string `json:"logGroupNamePrefix"`
		Pattern string `json:"logGroupNamePattern"`
		pageRequest
	}
	if err := call.Decode(&in); err != nil {
		return nil, err
	}
	if in.Prefix != "" && in.Pattern != "" {
		return nil, invalid("LogGroup name prefix and LogGroup name pattern are mutually exclusive parameters.")
	}
	all := map[string]*group{}
	for id, g := range s.groups {
		if id.Scope == call.Scope && strings.HasPrefix(id.name, in.Prefix) && strings.Contains(strings.ToLower(id.name), strings.ToLower(in.Pattern)) {
			all[id.name] = g
		}
	}
	page, next, err := in.page(slices.Sorted(maps.Keys(all)))
	if err != nil {
		return nil, err
	}
	out := struct {
		LogGroups []groupAnswer `json:"logGroups"`
		NextToken string        `json:"nextToken,omitempty"`
	}{[]groupAnswer{}, next}
	for _, name := range page {
		g := all[name]
		out.LogGroups = append(out.LogGroups, groupAnswer{LogGroupName: name, CreationTime: g.created.UnixMilli(), RetentionInDays: g.retention,
			ARN: g.arn() + ":*", StoredBytes: g.bytes, LogGroupClass: "STANDARD", LogGroupARN: g.arn()})
	}
	return out, nil
}

// pageRequest is the part of a request that asks for a page.
type pageRequest struct {
	Limit     *int   `json:"limit"`
	NextToken string `json:"nextToken"`
}

// page cuts the page that a request asks for from sorted names.
func (in pageRequest) page(names []string) ([]string, string, error) {
	most, err := atMost("limit", in.Limit, maxDescribe)
	if err != nil {
		return nil, "", err
	}
	page, next, err := core.Page(names, fmt.Sprint(most), most, in.NextToken)
	if err != nil {
		return nil, "", badToken()
	}
	return page, next, nil
}

func badToken() *core.Error { return invalid("The specified nextToken is invalid.") }
