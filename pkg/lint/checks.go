package lint

// Check names what was looked at. The names are stable: CI may filter by them.
type Check string

// The checks.
const (
	Invalid          Check = "invalid"
	TooManyTargets   Check = "too-many-targets"
	DuplicateTarget  Check = "duplicate-target-id"
	BadName          Check = "bad-name"
	LongPattern      Check = "long-pattern"
	NoBinding        Check = "no-binding"
	Disabled         Check = "disabled"
	TooManyRules     Check = "too-many-rules"
	DuplicateRule    Check = "duplicate-rule"
	SeveralQueues    Check = "several-queues"
	StateField       Check = "state-field"
	UnknownField     Check = "unknown-field"
	NeverMatches     Check = "never-matches"
	OtherEvents      Check = "other-events"
	UnpinnedTenant   Check = "unpinned-tenant"
	UnpinnedSpace    Check = "unpinned-namespace"
	UnpinnedCluster  Check = "unpinned-cluster"
	Conflict         Check = "conflicting-constants"
	PodConflict      Check = "differing-constants"
	Overlap          Check = "overlapping-rules"
	GroupMissing     Check = "group-not-found"
	GroupAmbiguous   Check = "group-ambiguous"
	GroupType        Check = "group-type"
	InstanceGroup    Check = "instance-group"
	GroupFamily      Check = "group-family"
	GroupAccount     Check = "group-account"
	GroupPort        Check = "group-port"
	GroupUnknown     Check = "group-unknown"
	GroupUnread      Check = "group-unread"
	NoOwner          Check = "no-owner"
	OtherOwner       Check = "other-owner"
	MatchesNoPod     Check = "matches-no-pod"
	ClaimsNothing    Check = "claims-nothing"
	ShortGrace       Check = "short-grace"
	GraceBelowDrain  Check = "grace-below-drain"
	VanishedGroup    Check = "vanished-undrained"
	VanishedRule     Check = "vanished-rule"
	RetargetedRule   Check = "retargeted-rule"
	UnsureComparison Check = "unsure-comparison"
)

// severities are the checks' own; some findings are milder than their check.
var severities = map[Check]Severity{
	Invalid:          Error,
	TooManyTargets:   Error,
	DuplicateTarget:  Error,
	BadName:          Error,
	LongPattern:      Warning,
	NoBinding:        Info,
	Disabled:         Info,
	TooManyRules:     Warning,
	DuplicateRule:    Error,
	SeveralQueues:    Warning,
	StateField:       Warning,
	UnknownField:     Warning,
	NeverMatches:     Error,
	OtherEvents:      Warning,
	UnpinnedTenant:   Warning,
	UnpinnedSpace:    Info,
	UnpinnedCluster:  Info,
	Conflict:         Error,
	PodConflict:      Warning,
	Overlap:          Warning,
	GroupMissing:     Error,
	GroupAmbiguous:   Error,
	GroupType:        Error,
	InstanceGroup:    Error,
	GroupFamily:      Error,
	GroupAccount:     Error,
	GroupPort:        Error,
	GroupUnknown:     Info,
	GroupUnread:      Warning,
	NoOwner:          Warning,
	OtherOwner:       Warning,
	MatchesNoPod:     Warning,
	ClaimsNothing:    Warning,
	ShortGrace:       Warning,
	GraceBelowDrain:  Info,
	VanishedGroup:    Error,
	VanishedRule:     Warning,
	RetargetedRule:   Error,
	UnsureComparison: Info,
}

// Meaning is one line about a check.
type Meaning struct {
	Check    Check    `json:"check"`
	Severity Severity `json:"severity"`
	Meaning  string   `json:"meaning"`
}

// Checks lists all checks in the order of the documentation.
func Checks() []Meaning {
	out := make([]Meaning, 0, len(meanings))
	for _, m := range meanings {
		m.Severity = severities[m.Check]
		out = append(out, m)
	}
	return out
}

var meanings = []Meaning{
	{Check: Invalid, Meaning: "pattern, template or constants can't be understood: the target covers nothing"},
	{Check: TooManyTargets, Meaning: "more than 5 targets on one rule"},
	{Check: DuplicateTarget, Meaning: "two targets of a rule share an id: the second replaces the first"},
	{Check: BadName, Meaning: "a name or target id that EventBridge refuses"},
	{Check: LongPattern, Meaning: "a pattern beyond EventBridge's default quota"},
	{Check: NoBinding, Meaning: "a rule on pod events without a target at the registrar's queue"},
	{Check: Disabled, Meaning: "a disabled rule: its group keeps what it holds, nothing is added"},
	{Check: TooManyRules, Meaning: "more rules than EventBridge's default quota for a bus"},
	{Check: DuplicateRule, Meaning: "two rules of one name"},
	{Check: SeveralQueues, Meaning: "bindings at different queues"},
	{Check: StateField, Meaning: "a pattern on what a pod is doing, not on what it is: it never sees the pod go"},
	{Check: UnknownField, Meaning: "a pattern on a field that pod events don't have"},
	{Check: NeverMatches, Meaning: "a pattern that no pod event can match"},
	{Check: OtherEvents, Meaning: "a pattern that may match other events than pod events"},
	{Check: UnpinnedTenant, Meaning: "a pattern that pins neither namespace nor service account: labels are the tenants' to write"},
	{Check: UnpinnedSpace, Meaning: "a pattern that pins a service account in any namespace"},
	{Check: UnpinnedCluster, Meaning: "a pattern for all clusters"},
	{Check: Conflict, Meaning: "bindings that give one group different constants"},
	{Check: PodConflict, Meaning: "bindings that treat the pods of one group differently"},
	{Check: Overlap, Meaning: "bindings of one group that select the same pods"},
	{Check: GroupMissing, Meaning: "a target group that does not exist"},
	{Check: GroupAmbiguous, Meaning: "a name or tags that name no group, or several"},
	{Check: GroupType, Meaning: "a group whose targets are neither addresses nor instances"},
	{Check: InstanceGroup, Meaning: "an instance group: not yet supported"},
	{Check: GroupFamily, Meaning: "podCIDRs or pods without an address of the group's family"},
	{Check: GroupAccount, Meaning: "a group of another account without roleArn"},
	{Check: GroupPort, Meaning: "neither binding nor group say a port"},
	{Check: GroupUnknown, Meaning: "a group that is known only when the template is deployed"},
	{Check: GroupUnread, Meaning: "a group that could not be read: its type, family and owner are not judged"},
	{Check: NoOwner, Meaning: "a group without owner tag: nothing but elbridge's own pods is removed from it"},
	{Check: OtherOwner, Meaning: "a group that another bus owns"},
	{Check: MatchesNoPod, Meaning: "a pattern that selects no pod now"},
	{Check: ClaimsNothing, Meaning: "pods are selected, and none of them claims a target"},
	{Check: ShortGrace, Meaning: "pods may end before the load balancer stops sending"},
	{Check: GraceBelowDrain, Meaning: "pods may end before their requests have drained"},
	{Check: VanishedGroup, Meaning: "the last rule of a group is gone, and the group was not drained"},
	{Check: VanishedRule, Meaning: "a rule is gone whose group other rules fill"},
	{Check: RetargetedRule, Meaning: "a rule changed its group, and the old one was not drained"},
	{Check: UnsureComparison, Meaning: "two groups that can't be compared"},
}
