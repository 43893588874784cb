// Package telemetry is how the functions speak to operators: names of
// environment variables and metrics, metrics as CloudWatch's embedded metric
// format, and JSON logs. The names are constants, so that code, stacks,
// dashboards and alarms cannot disagree.
package telemetry

// Namespace is the CloudWatch namespace of every metric.
const Namespace = "elbridge"

// Metrics of the functions.
const (
	HintsTotal                = "hints_total"                  // by result
	RegistrationsTotal        = "registrations_total"          // by result
	DeregistrationsTotal      = "deregistrations_total"        // by result
	TargetsHeld               = "targets_held"                 // removals held at the end of an invocation
	BindingsInvalid           = "bindings_invalid"             // rules or targets that cover nothing
	EventToRegisterSeconds    = "event_to_register_seconds"    // observed by the webhook → accepted by ELB (P002)
	DeleteToDeregisterSeconds = "delete_to_deregister_seconds" // the same for a pod that ends (P019)
	MutatingCallsTotal        = "aws_mutating_calls_total"     // by operation

	RoundsTotal        = "resync_rounds_total"         // by result: complete, or partial where something was not read
	RoundSeconds       = "resync_round_seconds"        // of one round
	RoundsOfCluster    = "resync_cluster_rounds_total" // by cluster, read whole: its silence is an alarm
	DriftTotal         = "drift_total"                 // differences found, by kind
	TargetsHeldOverdue = "targets_held_overdue"        // held for longer than the witness window
	GroupsUnbound      = "groups_unbound"              // owned groups with targets that no rule names any more
	GroupsUnread       = "groups_unread"               // groups that a round could not compare
	AWSCallsTotal      = "aws_calls_total"             // by operation and cause
	AWSWaitSeconds     = "aws_wait_seconds"            // waited for our share of the account's rate, by operation
	ListSeconds        = "resync_list_seconds"         // of one full list, by cluster
	RequestsTotal      = "resync_requests_total"       // by result
	TargetsFlapping    = "targets_flapping"            // repaired so often that the repair is held (P037)
)

// Dimensions, from closed sets only: pods, addresses and events belong in logs.
const (
	DimResult    = "result"
	DimOperation = "operation"
	DimCause     = "cause"
	DimKind      = "kind"
	DimCluster   = "cluster"
)

// Environment variables of the functions. Stacks set them by these constants.
const (
	EnvBus           = "ELBRIDGE_BUS"                 // name or ARN of the bus
	EnvQueueURL      = "ELBRIDGE_QUEUE_URL"           // the registrar's queue
	EnvQueueARN      = "ELBRIDGE_QUEUE_ARN"           // the same: rule targets name it
	EnvDeadLetterURL = "ELBRIDGE_DEAD_LETTER_URL"     // where what can't be understood is kept visible
	EnvClusters      = "ELBRIDGE_CLUSTERS"            // JSON list of clusters
	EnvMode          = "ELBRIDGE_MODE"                // manage (default) or observe, for everything (I19)
	EnvVerify        = "ELBRIDGE_VERIFY"              // always (default) or prefer
	EnvHintMaxAge    = "ELBRIDGE_HINT_MAX_AGE"        // Go duration, default 10m
	EnvRegisterPace  = "ELBRIDGE_REGISTER_PACE"       // Go duration, default 800ms
	EnvDescribeSpare = "ELBRIDGE_DESCRIBE_PER_SECOND" // looks a second and instance for hints that change no claim, default 0.4
	EnvAnnotations   = "ELBRIDGE_ANNOTATIONS"         // allow-list of annotations, as the webhook has it
	EnvLogLevel      = "ELBRIDGE_LOG_LEVEL"           // debug, info (default), warn, error

	EnvResyncQueueURL = "ELBRIDGE_RESYNC_QUEUE_URL" // requests for a round at once
	EnvRunLength      = "ELBRIDGE_RUN_LENGTH"       // Go duration, default 13m50s, at most 14m
	EnvResyncInterval = "ELBRIDGE_RESYNC_INTERVAL"  // Go duration between rounds, default 20s
	EnvRateShare      = "ELBRIDGE_RATE_SHARE"       // share of the account's ELB rates that resync may use, default 0.25
)
