package rulefile

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"github.com/elbridge/elbridge/pkg/binding"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/lint"
)

const (
	ruleType  = "AWS::Events::Rule"
	busType   = "AWS::Events::EventBus"
	groupType = "AWS::ElasticLoadBalancingV2::TargetGroup"
	queueType = "AWS::SQS::Queue"
)

// defaultDelay is ELB's own deregistration delay.
const defaultDelay = 300 * time.Second

// cloudFormation reads the rules of a template that are on a bus of their own,
// and what it says of its target groups.
func cloudFormation(name string, top map[string]any) (*File, error) {
	resources, ok := top["Resources"].(map[string]any)
	if !ok {
		return nil, errors.New("Resources: want an object") //nolint:staticcheck // begins with the key
	}
	t := &template{resources: resources, parameters: top["Parameters"], left: maxResolved}
	f := &File{Kind: CloudFormation, Groups: map[string]lint.Group{}}
	for _, id := range sorted(resources) {
		switch text(at(resources[id], "Type")) {
		case ruleType:
			f.Rules = append(f.Rules, t.rule(name, id))
		case groupType:
			g := t.group(id)
			f.Groups[g.ARN] = g
			if g.Name != "" {
				f.Groups["name:"+g.Name] = g
			}
		}
	}
	return f, nil
}

func (t *template) rule(name, id string) lint.Rule {
	p, _ := at(t.resources[id], "Properties").(map[string]any)
	o := map[string]any{}
	for k, v := range p {
		o[k] = v
	}
	if o["Name"] == nil { // CloudFormation makes one up
		o["Name"] = id
	}
	r := rule(o, t.text, name+": "+id)
	r.Pattern = unmarked(r.Pattern, "unresolved")
	for i := range r.Targets {
		target := &r.Targets[i]
		target.ARN = unmarked(target.ARN, "")
		if marked := t.text(at(items(o["Targets"])[i], "Arn")); target.ARN == "" && marked != "" {
			target.ARN = madeUp("sqs", short(marked))
		}
		if target.Transformer != nil {
			target.Transformer.Template = unmarked(groupMarks.ReplaceAllStringFunc(target.Transformer.Template, markedGroup), "unresolved")
		}
	}
	r.Bus = cmp.Or(unmarked(r.Bus, "unresolved"), "")
	r.ARN = ruleARN(r)
	return r
}

// group is what a template says of a target group.
func (t *template) group(id string) lint.Group {
	p := at(t.resources[id], "Properties")
	g := lint.Group{
		Group:    claim.Group{ARN: groupARN(id), Type: claim.TargetType(cmp.Or(t.text(at(p, "TargetType")), "instance")), Family: claim.Family(cmp.Or(t.text(at(p, "IpAddressType")), "ipv4"))},
		Name:     unmarked(t.text(at(p, "Name")), ""),
		Protocol: unmarked(t.text(at(p, "Protocol")), ""), Tags: map[string]string{}, DeregistrationDelay: defaultDelay,
	}
	if n, err := strconv.ParseInt(t.text(at(p, "Port")), 10, 32); err == nil {
		g.Port = int32(n)
	}
	for _, tag := range items(at(p, "Tags")) {
		g.Tags[t.text(at(tag, "Key"))] = t.text(at(tag, "Value"))
	}
	if owner, ok := g.Tags[binding.OwnerTag]; ok && owner != unmarked(owner, "") {
		g.Tags = nil // it has an owner, and only the deployment knows which
	}
	for _, a := range items(at(p, "TargetGroupAttributes")) {
		if n, err := strconv.Atoi(t.text(at(a, "Value"))); err == nil && t.text(at(a, "Key")) == "deregistration_delay.timeout_seconds" {
			g.DeregistrationDelay = time.Duration(n) * time.Second
		}
	}
	return g
}

// A mark stands for a value that only the deployment knows.
const (
	markBegin = "\ue000"
	markEnd   = "\ue001"
)

var (
	marks      = regexp.MustCompile(markBegin + "[^" + markEnd + "]*" + markEnd)
	groupMarks = regexp.MustCompile(`"targetGroup"\s*:\s*"` + markBegin + "[^" + markEnd + "]*" + markEnd + `"`)
	notInName  = regexp.MustCompile(`[^A-Za-z0-9-]+`)
)

func mark(expression string) string { return markBegin + expression + markEnd }

func unmarked(s, instead string) string { return marks.ReplaceAllLiteralString(s, instead) }

// markedGroup gives a group that nothing is known of an ARN that lint knows to
// be made up.
func markedGroup(s string) string {
	m := marks.FindString(s)
	return strings.Replace(s, m, madeUp("elasticloadbalancing", "targetgroup/"+short(m)+"/0000000000000000"), 1)
}

// short makes a name of an expression.
func short(s string) string {
	s = strings.Trim(notInName.ReplaceAllString(s, "-"), "-")
	if len(s) > 32 {
		s = s[:23] + "-" + hash(s)[:8]
	}
	return cmp.Or(s, "unresolved")
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func madeUp(service, rest string) string {
	return "arn:aws:" + service + ":" + madeUpRegion + ":" + lint.MadeUpAccount + ":" + rest
}

// groupARN stands for a group that the template makes.
func groupARN(id string) string {
	return madeUp("elasticloadbalancing", "targetgroup/"+short(id)+"/"+hash(id)[:16])
}
