package smoke

import "github.com/elbridge/elbridge/local/stack"

// steps are the story. The first one makes what the others work on.
var steps = []Step{
	{Name: "three pods become three healthy targets, and all of them answer", Do: threePods},
	{Name: "scale to ten", Do: scaleTo(10)},
	{Name: "rolling update under load", Do: rollingUpdate},
	{Name: "scale to two", Do: scaleTo(2)},
	{Name: "graceful delete: out of the group before the process ends", Do: gracefulDelete},
	{Name: "force delete", Do: forceDelete},
	{Name: "all pods of a label deleted with one call", Do: deleteCollection},
	{Name: "eviction through the API", Do: evictOne},
	{Name: "eviction that a PodDisruptionBudget refuses: the pod stays", Do: evictRefused},
	{Name: "another webhook delays a delete for five seconds", Do: deleteDelayed},
	{Name: "another webhook refuses a delete: the pod stays", Do: deleteRefused},
	{Name: "pod Failed, its object kept", Do: podFailed},
	{Name: "container killed", Do: containerKilled},
	{Name: "label changed so that no rule selects the pod, and back", Do: relabelled},
	{Name: "label moved from one rule to another of the same group", Do: movedBetweenRules},
	{Name: "StatefulSet pod under the same name with another address", Do: statefulSet},
	{Name: "address reused by another pod while the old target drains", Do: addressReused},
	{Name: "webhook killed and restarted", Do: webhookKilled},
	{Name: "API server out of the registrar's reach for ten seconds", Do: apiServerUnreachable},
	{Name: "ten seconds of throttling", Do: throttled},
	{Name: "a rule with a wrong target group beside good ones", Do: wrongGroup},
	{Name: "forged events change nothing", Do: forged},
	{Name: "node partitioned, its pods deleted while they serve: held", Do: partitioned},

	{Name: "by hand: a target removed while its pod lives: back, and stays", Do: removedByHand, Silent: true},
	{Name: "by hand: a strange target added: gone", Do: addedByHand, Silent: true},
	{Name: "by hand: all targets but one removed, a node's address added: repaired", Do: cleanedByHand},
	{Name: "messages: all lost while scaling up and down", Do: eventsLost, Silent: true},
	{Name: "messages: no webhook during a rolling update under load", Do: webhookDown, Silent: true},
	{Name: "messages: doubled and out of order during a rolling update", Do: muddled},
	{Name: "killed: the registrar, while scaling up", Do: registrarKilled, Silent: true},
	{Name: "killed: resync, while a target is missing", Do: resyncKilled, Silent: true},
	{Name: "two runs of resync at once: refused, and harmless", Do: twoRuns},
	{Name: "guard: frozen: what ends stays registered", Do: frozen, Silent: true},
	{Name: "guard: resync may not read pods any more: nothing removed", Do: rightsLost},

	{Name: "a group without owner tag: registered, not removed", Do: foreignGroup, Beside: true},
	{Name: "a binding in observe: told, not done", Do: observed, Beside: true},
	{Name: "group: made anew under its name", Do: madeAnew, Beside: true},
	{Name: "group: deleted, and a rule names it: told, the others go on", Do: groupDeleted, Beside: true},
	{Name: "guard: a rule deleted by accident: targets stay", Do: ruleDeleted, Beside: true},
	{Name: "guard: a rule with a typo: held, approved, back", Do: typo, Silent: true, Beside: true},
	{Name: "guard: empty: in steps, the other group loses no request", Do: emptied, Silent: true, Beside: true},
	{Name: "guard: all pods not ready: held", Do: allNotReady, Beside: true},
	{Name: "guard: two buses bind one group: the owner's targets stay", Do: twoOwners, Silent: true, Beside: true},

	{Name: "guard: the API server starts on an empty store: held, back", Do: storeLost},
}

// Reasons why a step is not in a way.
const (
	noReader  = "nobody reads events"
	noCompare = "nothing compares, and no event tells of it"
	inBoth    = "way both shows it"
)

// notInThisWay says which steps are not in a way, and why.
var notInThisWay = map[string]map[stack.Way]string{
	"forged events change nothing":                                           {stack.WayResync: noReader},
	"node partitioned, its pods deleted while they serve: held":              {stack.WayBoth: "either way alone shows it"},
	"by hand: a target removed while its pod lives: back, and stays":         {stack.WayEvents: noCompare},
	"by hand: a strange target added: gone":                                  {stack.WayEvents: noCompare},
	"by hand: all targets but one removed, a node's address added: repaired": {stack.WayEvents: noCompare},
	"messages: all lost while scaling up and down":                           {stack.WayEvents: "what is lost stays lost"},
	"messages: no webhook during a rolling update under load":                {stack.WayEvents: "nobody tells of pods", stack.WayResync: "its messages are not read anyway"},
	"messages: doubled and out of order during a rolling update":             {stack.WayResync: noReader},
	"group: made anew under its name":                                        {stack.WayEvents: noCompare},
	"group: deleted, and a rule names it: told, the others go on":            {stack.WayEvents: "there the step with a wrong target group shows it"},
	"killed: the registrar, while scaling up":                                {stack.WayResync: "it is dead all the time"},
	"killed: resync, while a target is missing":                              {stack.WayEvents: noCompare, stack.WayBoth: "way resync shows it, where nothing else repairs"},
	"two runs of resync at once: refused, and harmless":                      {stack.WayEvents: noCompare, stack.WayBoth: "way resync shows it, where nothing else repairs"},
	"guard: a rule deleted by accident: targets stay":                        {stack.WayEvents: "without a rule no event reaches anybody", stack.WayBoth: "way resync shows it"},
	"guard: a rule with a typo: held, approved, back":                        {stack.WayEvents: noCompare, stack.WayResync: inBoth},
	"guard: frozen: what ends stays registered":                              {stack.WayEvents: "a hint that was held is over: unfreezing needs a comparison", stack.WayResync: inBoth},
	"guard: empty: in steps, the other group loses no request":               {stack.WayEvents: noCompare, stack.WayResync: inBoth},
	"guard: resync may not read pods any more: nothing removed":              {stack.WayEvents: noCompare, stack.WayBoth: "the registrar has rights of its own and removes, rightly"},
	"guard: the API server starts on an empty store: held, back":             {stack.WayEvents: "it sends no event of it", stack.WayBoth: "way resync shows it"},
	"guard: two buses bind one group: the owner's targets stay":              {stack.WayEvents: noCompare, stack.WayResync: inBoth},
}
