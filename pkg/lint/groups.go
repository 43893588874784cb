package lint

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
)

// MadeUpAccount is the account in ARNs that stand for what a template makes or
// names, whose real ARNs only its deployment knows.
const MadeUpAccount = "000000000000"

// unresolvedEnd is the end of such an ARN where not even the template knows the group.
const unresolvedEnd = "/0000000000000000"

// MadeUp reports whether an ARN is none of a real group.
func MadeUp(arn string) bool { return arnAccount(arn) == MadeUpAccount }

// Ref is a key for what names a group: equal for equal references.
func Ref(g binding.GroupRef) string {
	switch {
	case g.ARN != "":
		return g.ARN
	case g.Name != "":
		return "name:" + g.Name
	}
	var tags []string
	for _, k := range slices.Sorted(maps.Keys(g.Tags)) {
		tags = append(tags, fmt.Sprintf("%q=%q", k, g.Tags[k]))
	}
	return "tags:" + strings.Join(tags, ",")
}

// GroupName is what people call a group: its name, or its tags.
func GroupName(g binding.GroupRef) string {
	switch {
	case g.ARN != "":
		return arnName(g.ARN)
	case g.Name != "":
		return g.Name
	}
	var tags []string
	for _, k := range slices.Sorted(maps.Keys(g.Tags)) {
		tags = append(tags, k+"="+g.Tags[k])
	}
	return strings.Join(tags, ",")
}

// arnName is the name in a target group's ARN.
func arnName(arn string) string {
	_, rest, _ := strings.Cut(arn, ":targetgroup/")
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// nameGroups gives two bindings of one group the same key: by what is known of
// their groups, or by the name where one says the ARN and another the name.
func (l *linter) nameGroups() {
	arns := map[string]string{} // name → ARN of a group that is named by it
	for _, b := range l.bound {
		if b.Group.ARN != "" {
			arns[arnName(b.Group.ARN)] = b.Group.ARN
		}
	}
	for _, b := range l.bound {
		b.group = Ref(b.Group)
		if g, ok := l.in.Groups[b.group]; ok && g.Problem == Known && g.ARN != "" {
			b.group = g.ARN
		} else if arn, ok := arns[b.Group.Name]; ok {
			b.group = arn
		}
	}
}

// group judges whether the binding's group is one that its pods can be in.
func (l *linter) group(b *bound) {
	if MadeUp(b.Group.ARN) && strings.HasSuffix(b.Group.ARN, unresolvedEnd) {
		f := b.of(GroupUnknown)
		f.Path = "$.binding.targetGroup"
		f.Message = "the group is known when the template is deployed: its type, family and owner are not looked at"
		l.add(f)
		return
	}
	l.account(b)
	g, looked := l.in.Groups[Ref(b.Group)]
	if !looked {
		return
	}
	f := b.of(GroupMissing)
	f.Path = "$.binding.targetGroup"
	switch {
	case g.Problem == NotFound:
		f.Message = "no such target group: the binding covers nothing"
		f.Fix = "create the group before the rule, or correct the rule"
	case g.Problem == Ambiguous:
		f.Check = GroupAmbiguous
		f.Message = "not exactly one group: " + g.Detail + ": the binding covers nothing"
		f.Fix = "name the group by its ARN"
	case g.Problem == Unread:
		f.Check = GroupUnread
		f.Message = "the group could not be read: " + g.Detail
		f.Fix = "give your identity the right to read it, or try again"
	case g.Type == claim.Instance:
		f.Check = InstanceGroup
		f.Message = "instance groups are not yet supported: the binding covers nothing"
		f.Fix = "use a group with targets of type ip"
	case g.Type != claim.IP:
		f.Check = GroupType
		f.Message = fmt.Sprintf("its targets are of type %s, which no pod can be: the binding covers nothing", g.Type)
		f.Fix = "use a group with targets of type ip; the type can't be changed later"
	default:
		l.ipGroup(b, g)
		return
	}
	l.add(f)
}

// account finds groups of another account that nobody can reach.
func (l *linter) account(b *bound) {
	ours, theirs := arnAccount(b.Rule), arnAccount(b.Group.ARN)
	if theirs == "" || ours == "" || ours == theirs || b.RoleARN != "" || ours == MadeUpAccount || theirs == MadeUpAccount {
		return
	}
	f := b.of(GroupAccount)
	f.Path = "$.binding.targetGroup"
	f.Message = fmt.Sprintf("the group is in account %s, the bus in %s, and the binding has no roleArn", theirs, ours)
	f.Fix = `add "roleArn" of a role in the group's account that the registrar may assume`
	l.add(f)
}

func arnAccount(arn string) string {
	if parts := strings.SplitN(arn, ":", 6); len(parts) == 6 {
		return parts[4]
	}
	return ""
}

func (l *linter) ipGroup(b *bound, g Group) {
	if len(b.PodCIDRs) > 0 && !slices.ContainsFunc(b.PodCIDRs, func(p netip.Prefix) bool { return familyOf(p) == g.Family }) {
		f := b.of(GroupFamily)
		f.Path = "$.binding.podCIDRs"
		f.Message = fmt.Sprintf("no block is of the group's family, %s: no address is ever registered", g.Family)
		f.Fix = "add the pods' block of that family; the group's family can't be changed"
		l.add(f)
	}
	if b.Port == (binding.Port{}) && g.Port == 0 {
		f := b.of(GroupPort)
		f.Path = "$.binding.port"
		f.Message = "neither the binding nor the group say a port"
		f.Fix = `add "port"`
		l.add(f)
	}
	l.owner(b, g)
}

func familyOf(p netip.Prefix) claim.Family {
	if p.Addr().Unmap().Is4() {
		return claim.IPv4
	}
	return claim.IPv6
}

func (l *linter) owner(b *bound, g Group) {
	if g.Tags == nil || b.KeepForeign {
		return
	}
	busARN := busOf(b.Rule)
	tag := g.Tags[binding.OwnerTag]
	f := b.of(NoOwner)
	switch {
	case tag == "":
		f.Message = "the group has no owner tag: elbridge registers, and removes only what it can show to be its own pods' within podCIDRs"
		f.Fix = fmt.Sprintf("tag it %s=%s in your infrastructure code, or run: elbridge adopt %s; or say \"foreignTargets\":\"keep\"", binding.OwnerTag, busARN, b.groupName())
		l.add(f)
	case !binding.Owns(tag, busARN, g.ARN):
		f.Check = OtherOwner
		f.Message = fmt.Sprintf("the group is owned by %s, not by %s: two buses would undo each other's work if both removed", tag, busARN)
		f.Fix = "let one bus bind the group, or say \"foreignTargets\":\"keep\""
		l.add(f)
	}
}

// busOf is the ARN of the bus of a rule's ARN.
func busOf(ruleARN string) string {
	head, path, ok := strings.Cut(ruleARN, ":rule/")
	bus, _, named := cutLast(path, "/")
	if !ok || !named {
		return ""
	}
	return head + ":event-bus/" + bus
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// Propagation: how long a load balancer may go on sending new connections to a
// target after DeregisterTargets. A network load balancer takes about two minutes
// whatever its delay says; an application load balancer some seconds.
const (
	propagationALB = 15 * time.Second
	propagationNLB = 120 * time.Second
)

func (g Group) propagation() time.Duration {
	switch g.Protocol {
	case "HTTP", "HTTPS":
		return propagationALB
	case "TCP", "UDP", "TCP_UDP", "TLS", "QUIC", "TCP_QUIC":
		return propagationNLB
	default:
		return 0
	}
}
