package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/pkg/audit"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/queue"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// Times around a request.
const (
	// answerTimeout is how long an answer may take: the gap between two runs (a
	// minute), a list of a large cluster, a round, and the way into the log.
	answerTimeout = 3 * time.Minute
	// clockSkew is how far the clock here and that of the log may be apart.
	clockSkew = 5 * time.Minute
	// lastRound is how far back the last round is looked for, where no answer
	// came: resync tells of itself every five minutes.
	lastRound = time.Hour
)

// resyncResult is what `elbridge resync` says.
type resyncResult struct {
	Request targetevent.Request          `json:"request"`
	DryRun  bool                         `json:"dryRun,omitempty"`
	Answer  *targetevent.ResyncCompleted `json:"answer,omitempty"` // absent if it was not waited for, or none came
	Drift   bool                         `json:"drift"`            // something is left that differs, or was not compared
	Hint    string                       `json:"hint,omitempty"`   // where no answer came
}

// resyncOptions are the flags of `elbridge resync`.
type resyncOptions struct {
	shared                                   *shared
	groups                                   []string
	approve, reason, queue, logGroup, output string
	dryRun, wait                             bool
	timeout                                  time.Duration
}

func resyncCommand(s *shared) *cobra.Command {
	o := &resyncOptions{shared: s}
	cmd := &cobra.Command{
		Use: "resync", Short: "Ask for a comparison of pods and target groups now", Args: cobra.NoArgs,
		Long: `Resync asks the resync function for a round at once, of all groups or of those named, and with
--wait shows what it found and what became of it. With --dry-run the round changes nothing.
With --approve it makes the removals that are held as the plan of that hash: the event
"Removal Held" says it, and so does elbridge history. If the plan is another one by now, it
stays held.

The answer is the event "Resync Completed" in the audit log (docs/history.md). Where it says
that the run ended before the round did, resync is asked once more, within --timeout.

Exit codes: 0 asked, or answered, all was read, and nothing differs any more; 1 an error; 2
answered, and something is held, failed or only reported, an approval met no plan, or rules, a
group or a cluster were not read, or in a dry run anything differs; 3 no answer in time; 130
interrupted, the request stands.`,
		Example: `  elbridge resync --wait
  elbridge resync --group ingress --dry-run
  elbridge resync --group ingress --approve 5b1d7a0c9e3f --reason "node pool was replaced"`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("wait") {
				o.wait = o.dryRun || o.approve != ""
			}
			return o.run(cmd)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.groups, "group", nil, "a target group, name or ARN; may be given several times (default: all)")
	f.BoolVar(&o.dryRun, "dry-run", false, "compare, and say what would be done")
	f.StringVar(&o.approve, "approve", "", "hash of held removals that are to be made")
	f.StringVar(&o.reason, "reason", "", "why, for those who read the log, 500 characters at most; required with --approve")
	f.BoolVar(&o.wait, "wait", false, "wait for the answer; --dry-run and --approve do, unless --wait=false")
	f.DurationVar(&o.timeout, "timeout", answerTimeout, "how long to wait for it")
	f.StringVar(&o.queue, "queue", "", "URL of resync's queue (default: ELBRIDGE_RESYNC_QUEUE_URL, or that of elbridge-resync)")
	logGroupFlag(cmd, &o.logGroup)
	outputFlag(cmd, &o.output, formats...)
	cmd.MarkFlagsMutuallyExclusive("dry-run", "approve")
	return cmd
}

// maxReason bounds --reason, in characters: the event about the round carries it
// beside 200 findings, and has 256 KB (EventBridge).
const maxReason = 500

// planHash is the form of a plan's hash: pkg/plan's Hash.
var planHash = regexp.MustCompile(`^[0-9a-f]{12}$`)

func (o *resyncOptions) check() error {
	switch {
	case o.approve != "" && !planHash.MatchString(o.approve):
		return fmt.Errorf("--approve %s: want the hash of a held plan, 12 hexadecimal digits, as in the event Removal Held", o.approve)
	case o.approve != "" && o.reason == "":
		return errors.New("--approve wants --reason: why may these targets go?")
	case utf8.RuneCountInString(o.reason) > maxReason:
		return fmt.Errorf("--reason has %d characters: want %d at most, the event about the round carries it", utf8.RuneCountInString(o.reason), maxReason)
	}
	return checkOutput(o.output, formats...)
}

func (o *resyncOptions) run(cmd *cobra.Command) error {
	if err := o.check(); err != nil {
		return err
	}
	ctx := cmd.Context()
	cfg, err := o.shared.aws(ctx)
	if err != nil {
		return err
	}
	by, err := callerARN(ctx, sts.NewFromConfig(cfg))
	if err != nil {
		return unlessInterrupted(ctx, err)
	}
	r := targetevent.Request{ID: queue.NewID(), Approve: o.approve, By: by, Reason: o.reason}
	for _, g := range o.groups {
		arn, err := requestedGroup(ctx, elb.NewFromConfig(cfg), g)
		if err != nil {
			return unlessInterrupted(ctx, err)
		}
		if !slices.Contains(r.Groups, arn) {
			r.Groups = append(r.Groups, arn)
		}
	}
	a := asker{poller: newPoller(), queue: sqs.NewFromConfig(cfg), log: newAuditLog(cfg, o.logGroup), lookup: os.Getenv, stderr: cmd.ErrOrStderr()}
	res, err := a.ask(ctx, o, r)
	if err != nil {
		return unlessInterrupted(ctx, err)
	}
	if err := write(cmd.OutOrStdout(), o.output, res, res.table); err != nil {
		return err
	}
	return res.exit(cmd.ErrOrStderr(), o)
}

// requestedGroup is the group's ARN. One that is given is taken as it is: it may
// be another account's, which resync can look at and we can't.
func requestedGroup(ctx context.Context, api groupsAPI, group string) (string, error) {
	if groupRef(group).ARN != "" {
		return group, nil
	}
	return findGroup(ctx, api, group)
}

// asker sends a request and reads its answer.
type asker struct {
	poller
	queue  queueAPI
	log    auditLog
	lookup func(string) string // of the environment
	stderr io.Writer
}

func (a *asker) ask(ctx context.Context, o *resyncOptions, r targetevent.Request) (resyncResult, error) {
	res := resyncResult{Request: r, DryRun: o.dryRun}
	url, err := queueURL(ctx, a.queue, o.queue, a.lookup)
	if err != nil {
		return res, err
	}
	if o.wait { // before anything is asked for: an answer that can't be read helps nobody
		if _, err := a.log.Events(ctx, audit.Query{From: a.now().Add(-time.Minute), To: a.now(), DetailTypes: []string{targetevent.DetailTypeResyncCompleted}, Limit: 1}); err != nil && !errors.Is(err, audit.ErrThrottled) {
			return res, fmt.Errorf("nothing was asked for, since the answer could not be read (--wait=false asks all the same): %w", err)
		}
	}
	sent := a.now()
	send := func(r targetevent.Request) error {
		return queue.NewRequests(a.queue, url).Send(ctx, queue.Request{Trigger: queue.TriggerRequest, Request: r, DryRun: o.dryRun})
	}
	if err := send(r); err != nil || !o.wait {
		return res, err
	}
	_, _ = fmt.Fprintf(a.stderr, "request %s was sent, its answer is waited for\n", r.ID) // for those who interrupt: it stands
	once := true
	done, err := a.until(ctx, o.timeout, func() (done, slower bool, err error) {
		res.Answer, err = answer(ctx, a.log, res.Request.ID, sent.Add(-clockSkew), a.now().Add(clockSkew))
		switch {
		case errors.Is(err, audit.ErrThrottled):
			return false, true, nil
		case once && cutShort(res.Answer) && a.now().Before(sent.Add(o.timeout)):
			once = false
			return a.again(ctx, &res, send)
		}
		return res.Answer != nil, false, err
	})
	switch {
	case err != nil:
		return res, fmt.Errorf("request %s was sent, its answer was not read: %w", res.Request.ID, err)
	case !done:
		res.Hint = a.lastRound(ctx)
	default:
		res.Drift = remains(res.Answer)
	}
	return res, nil
}

// runEnded begins the problem of a round that its run did not live to end:
// pkg/resync's words.
const runEnded = "the run ended before the round did"

// cutShort reports whether an answer says only that there was no time for one.
func cutShort(a *targetevent.ResyncCompleted) bool {
	return a != nil && slices.ContainsFunc(a.Problems, func(p string) bool { return strings.HasPrefix(p, runEnded) })
}

// again sends a request once more, under another id: the next run takes it. If it
// can't be sent, the answer that there is has to do.
func (a *asker) again(ctx context.Context, res *resyncResult, send func(targetevent.Request) error) (done, slower bool, err error) {
	next := res.Request
	next.ID = queue.NewID()
	if err := send(next); err != nil {
		if ctx.Err() != nil {
			return false, false, ctx.Err()
		}
		_, _ = fmt.Fprintf(a.stderr, "%s, and it could not be asked again: %v\n", runEnded, err)
		return true, false, nil
	}
	_, _ = fmt.Fprintf(a.stderr, "%s: asked again, request %s\n", runEnded, next.ID)
	res.Request, res.Answer = next, nil
	return false, false, nil
}

// answer is the round that somebody's request was part of, nil if it is not in the
// log yet.
func answer(ctx context.Context, log auditLog, id string, from, to time.Time) (*targetevent.ResyncCompleted, error) {
	events, _, err := readLog(ctx, log, audit.Query{From: from, To: to, DetailTypes: []string{targetevent.DetailTypeResyncCompleted}, Request: id})
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		if e.DetailType != targetevent.DetailTypeResyncCompleted {
			continue
		}
		r, err := targetevent.Decode[targetevent.ResyncCompleted](e.Detail)
		if err != nil {
			return nil, fmt.Errorf("event %s: %w", e.ID, err)
		}
		if r.Request != nil && r.Request.ID == id {
			return &r, nil
		}
	}
	return nil, nil
}

// remains reports whether something differs after a round, or was not compared:
// what was not seen is not said to be right.
func remains(r *targetevent.ResyncCompleted) bool {
	if r.Request != nil && r.Groups < len(r.Request.Groups) { // a group that no rule names
		return true
	}
	if slices.ContainsFunc(r.Clusters, func(c targetevent.ClusterState) bool { return !c.Complete }) {
		return true
	}
	if len(r.Problems) > 0 || r.Unread > 0 || r.Held > 0 || r.Failed > 0 || r.DryRun && r.Found > 0 {
		return true
	}
	for _, f := range r.Findings {
		if f.Action != "registered" && f.Action != "deregistered" {
			return true
		}
	}
	return r.Found > r.Repaired || missed(r)
}

// missed reports whether an approval met no plan: it is another one by now, or
// nothing is held any more.
func missed(r *targetevent.ResyncCompleted) bool {
	return r.Request != nil && r.Request.Approve != "" && !slices.ContainsFunc(r.Findings, func(f targetevent.Finding) bool {
		return f.Witness == string(plan.Approved)
	})
}

// lastRound says what is known of rounds, where no answer came.
func (a *asker) lastRound(ctx context.Context) string {
	events, _, err := readLog(ctx, a.log, audit.Query{From: a.now().Add(-lastRound), To: a.now().Add(clockSkew), DetailTypes: []string{targetevent.DetailTypeResyncCompleted}, Limit: 1})
	if err != nil {
		return fmt.Sprintf("is resync running? when it last completed a round could not be read: %v", err)
	}
	for _, e := range events {
		if r, err := targetevent.Decode[targetevent.ResyncCompleted](e.Detail); err == nil {
			return fmt.Sprintf("is resync running? the last round in the log is %d of run %s at %s", r.Round, r.RunID, stamp(r.At))
		}
	}
	return fmt.Sprintf("no round of the last %v is in the log: is resync running? its schedule and its own log say", lastRound)
}

// exit is how the command ends, by what was found.
func (r resyncResult) exit(stderr io.Writer, o *resyncOptions) error {
	switch {
	case r.Drift:
		return errFindings
	case o.wait && r.Answer == nil:
		_, _ = fmt.Fprintf(stderr, "elbridge: no answer to request %s within %v; %s\n", r.Request.ID, o.timeout, r.Hint)
		return exitError{code: exitTimeout}
	}
	return nil
}

func (r resyncResult) table(w io.Writer) {
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) } // the table's writer keeps the error
	a := r.Answer
	if a == nil {
		line("request %s was sent", r.Request.ID)
		return
	}
	what := "round"
	if a.DryRun {
		what = "dry round"
	}
	line("%s %d of run %s at %s: %d groups compared, %d not; %d differences, %d repaired, %d held, %d failed", what, a.Round, a.RunID,
		stamp(a.At), a.Groups, a.Unread, a.Found, a.Repaired, a.Held, a.Failed)
	for _, c := range a.Clusters {
		if !c.Complete {
			line("cluster %s was not read completely%s", c.Name, inBrackets(c.Error))
		}
	}
	for _, p := range a.Problems {
		line("%s", p)
	}
	if missed(a) {
		line("the approval met no plan: nothing is held as %s now", a.Request.Approve)
	}
	if len(a.Findings) == 0 {
		return
	}
	line("")
	row(w, "KIND", "GROUP", "TARGET", "POD", "ACTION", "WHY")
	for _, f := range a.Findings {
		row(w, f.Drift, groupName(f.TargetGroup), target(f.Key), f.Pod, f.Action, why(f.Key))
	}
	if a.Truncated > 0 {
		line("and %d more", a.Truncated)
	}
}
