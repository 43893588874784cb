package binding

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Syntax that AWS and Kubernetes give the names in a binding.
var (
	groupARN  = regexp.MustCompile(`^arn:aws[a-z-]*:elasticloadbalancing:[a-z0-9-]+:[0-9]{12}:targetgroup/[A-Za-z0-9-]{1,32}/[0-9a-f]{16}$`)
	groupName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?$`)
	roleARN   = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/[\x21-\x7e]*[A-Za-z0-9_+=,.@-]{1,64}$`)
	ruleARN   = regexp.MustCompile(`^arn:aws[a-z-]*:events:[a-z0-9-]+:[0-9]{12}:rule/([/A-Za-z0-9._-]+/)?[A-Za-z0-9._-]{1,64}$`)
	externID  = regexp.MustCompile(`^[A-Za-z0-9_+=,.@:/-]+$`) // and 2 to 1224 characters
	zoneName  = regexp.MustCompile(`^[a-z]{2,4}(-[a-z]+)+-[0-9]+([a-z]|(-[a-z0-9]+)+-[0-9]+[a-z]?)$`)
	portName  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`) // and at most 15 characters with a letter
	condition = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
)

func readTargetGroup(b *Binding, v value) {
	var s string
	if json.Unmarshal(v.raw, &s) == nil {
		switch {
		case groupARN.MatchString(s):
			b.Group = GroupRef{ARN: s}
		case groupName.MatchString(s):
			v.fail("%q is no ARN: to give the name write {\"name\":%q}", clip(s), s)
		case strings.Contains(s, ":loadbalancer/"), strings.Contains(s, ":listener"):
			v.fail("%q is the ARN of something else: want the target group's, arn:<partition>:elasticloadbalancing:<region>:<account>:targetgroup/<name>/<16 hex digits>", clip(s))
		default:
			v.fail("%q is no ARN of a target group: want arn:<partition>:elasticloadbalancing:<region>:<account>:targetgroup/<name>/<16 hex digits>", clip(s))
		}
		return
	}
	members, ok := v.object(`want the group's ARN, {"name":…} or {"tags":{…}}`)
	if !ok {
		return
	}
	if len(members) != 1 {
		v.fail("%s: want exactly one of name and tags", v.show())
		return
	}
	switch m := members[0]; m.key {
	case "name":
		if s, ok := m.text(); ok && !groupName.MatchString(s) {
			m.fail("%q is no name of a target group: want at most 32 letters, digits and hyphens, no hyphen at the ends", clip(s))
		} else if ok {
			b.Group = GroupRef{Name: s}
		}
	case "tags":
		readTags(b, m.value)
	default:
		m.fail("unknown key%s: want name or tags", didYouMean(m.key, []string{"name", "tags"}))
	}
}

func readTags(b *Binding, v value) {
	members, ok := v.object(`want an object of tags, as in {"service":"web"}`)
	if !ok {
		return
	}
	if len(members) == 0 {
		v.fail("no tags: they would name every group")
	}
	tags := make(map[string]string, len(members))
	for _, m := range members {
		s, ok := m.text()
		switch {
		case !ok:
		case m.key == "" || len(m.key) > 128 || len(s) > 256:
			m.fail("a tag has a key of 1 to 128 characters and a value of at most 256")
		default:
			tags[m.key] = s
		}
	}
	b.Group = GroupRef{Tags: tags}
}

func readPort(b *Binding, v value) {
	const want = "want a number from 1 to 65535, without quotes, or the name of a container port"
	var n int32
	if json.Unmarshal(v.raw, &n) == nil {
		if n < 1 || n > 65535 {
			v.fail("%d: %s", n, want)
			return
		}
		b.Port = Port{Number: n}
		return
	}
	var s string
	if json.Unmarshal(v.raw, &s) != nil || !isPortName(s) {
		v.fail("%s: %s", v.show(), want)
		return
	}
	b.Port = Port{Name: s}
}

// isPortName reports whether s can be the name of a container port.
func isPortName(s string) bool {
	return len(s) <= 15 && portName.MatchString(s) && strings.ContainsAny(s, "abcdefghijklmnopqrstuvwxyz")
}

func readAvailabilityZone(b *Binding, v value) {
	s, ok := v.text()
	if !ok {
		return
	}
	if s != ZoneAuto && s != ZoneAll && !zoneName.MatchString(s) {
		v.fail("%q: want auto, all or the name of a zone, as in eu-west-1a (not a zone id)", clip(s))
		return
	}
	b.AvailabilityZone = s
}

func readRoleARN(b *Binding, v value) {
	s, ok := v.text()
	if ok && !roleARN.MatchString(s) {
		v.fail("%q is no ARN of a role: want arn:<partition>:iam::<account>:role/<name>", clip(s))
		return
	}
	b.RoleARN = s
}

func readExternalID(b *Binding, v value) {
	s, ok := v.text()
	if ok && (len(s) < 2 || len(s) > 1224 || !externID.MatchString(s)) {
		v.fail("%q: want 2 to 1224 letters, digits and _+=,.@:/-", clip(s))
		return
	}
	b.ExternalID = s
}

func readReadinessGate(b *Binding, v value) {
	s, ok := v.text()
	if ok && !condition.MatchString(s) {
		v.fail("%q is no condition type: want one as in elbridge.io/target-healthy", clip(s))
		return
	}
	b.ReadinessGate = s
}
