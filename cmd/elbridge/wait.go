package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/spf13/cobra"

	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/claim"
	"github.com/elbridge/elbridge/pkg/lint"
	"github.com/elbridge/elbridge/pkg/plan"
	"github.com/elbridge/elbridge/pkg/queue"
	"github.com/elbridge/elbridge/pkg/targetevent"
	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// waiting is what `elbridge wait` says.
type waiting struct {
	TargetGroup string         `json:"targetGroup"` // ARN, or as it was given until it was read
	Want        int            `json:"want"`
	Healthy     int            `json:"healthy"`
	States      map[string]int `json:"states"` // targets by their state in ELB
	Reached     bool           `json:"reached"`
	Hints       []string       `json:"hints,omitempty"` // what could be wrong
	Request     string         `json:"request,omitempty"`
	Seconds     float64        `json:"seconds"`
}

// waitOptions are the flags of `elbridge wait`.
type waitOptions struct {
	shared               *shared
	group, queue, output string
	healthy              int
	timeout              time.Duration
	ask                  bool
}

func waitCommand(s *shared) *cobra.Command {
	o := &waitOptions{shared: s}
	cmd := &cobra.Command{
		Use: "wait --group GROUP --healthy N", Short: "Wait until a target group has N healthy targets", Args: cobra.NoArgs,
		Long: `Wait looks at a target group until the load balancer finds at least N of its targets healthy;
draining ones don't count. It is for pipelines that have just made a group or a rule, before
they send anybody there. A group that is not there yet is waited for too. Progress goes to
stderr.

It asks resync for a round of the group first, if there is a queue for that: --queue,
ELBRIDGE_RESYNC_QUEUE_URL or the queue elbridge-resync. Without one it just waits.

Exit codes: 0 there are N healthy targets, 1 an error, 3 there were not in time: what there
is, and what could be wrong, is told; 130 interrupted.`,
		Example: `  elbridge wait --group ingress --healthy 3
  elbridge wait --group ingress --healthy 1 --timeout 2m --ask=false`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.group, "group", "", "the target group, name or ARN")
	f.IntVar(&o.healthy, "healthy", 0, "how many targets have to be healthy")
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "how long to wait")
	f.BoolVar(&o.ask, "ask", true, "ask resync for a round of the group first")
	f.StringVar(&o.queue, "queue", "", "URL of resync's queue (default: ELBRIDGE_RESYNC_QUEUE_URL, or that of elbridge-resync)")
	outputFlag(cmd, &o.output, "text", "json", "yaml")
	for _, name := range []string{"group", "healthy"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // no such flag
		}
	}
	return cmd
}

func (o *waitOptions) run(cmd *cobra.Command) error {
	if err := checkOutput(o.output, "text", "json", "yaml"); err != nil {
		return err
	}
	if o.healthy < 1 {
		return fmt.Errorf("--healthy %d: want 1 or more", o.healthy)
	}
	ctx := cmd.Context()
	cfg, err := o.shared.aws(ctx)
	if err != nil {
		return err
	}
	accounts := &targetgroup.Accounts{AWS: cfg}
	wt := &waiter{poller: newPoller(), ref: groupRef(o.group), progress: cmd.ErrOrStderr()}
	wt.groups = accounts.For(&binding.Binding{Group: wt.ref})
	if o.ask {
		wt.ask = func(ctx context.Context, arn string) (string, error) {
			return o.request(ctx, sts.NewFromConfig(cfg), sqs.NewFromConfig(cfg), arn)
		}
	}
	w, err := wt.run(ctx, o.healthy, o.timeout)
	if err != nil {
		return unlessInterrupted(ctx, err)
	}
	if err := write(cmd.OutOrStdout(), o.output, w, w.text); err != nil {
		return err
	}
	if !w.Reached {
		return exitError{code: exitTimeout}
	}
	return nil
}

// request asks resync for a round of the group, and returns the request's id.
func (o *waitOptions) request(ctx context.Context, who stsAPI, requests queueAPI, arn string) (string, error) {
	url, err := queueURL(ctx, requests, o.queue, os.Getenv)
	if err != nil {
		return "", err
	}
	by, err := callerARN(ctx, who)
	if err != nil {
		return "", err
	}
	r := targetevent.Request{ID: queue.NewID(), Groups: []string{arn}, By: by, Reason: fmt.Sprintf("elbridge wait: %d healthy", o.healthy)}
	return r.ID, queue.NewRequests(requests, url).Send(ctx, queue.Request{Trigger: queue.TriggerRequest, Request: r})
}

// waiter waits for one group.
type waiter struct {
	poller
	groups   groupReader
	ref      binding.GroupRef
	ask      func(ctx context.Context, arn string) (id string, err error) // nil: don't
	progress io.Writer
	told     string // the last line of progress
}

// tell writes a line of progress, if it is news: progress is a favour.
func (wt *waiter) tell(line string) {
	if line != wt.told {
		wt.told = line
		_, _ = fmt.Fprintln(wt.progress, line)
	}
}

func (wt *waiter) run(ctx context.Context, want int, timeout time.Duration) (waiting, error) {
	began := wt.now()
	w := waiting{TargetGroup: lint.GroupName(wt.ref), Want: want, States: map[string]int{}}
	var g *claim.Group
	id, asked := "", ""
	_, err := wt.until(ctx, timeout, func() (done, slower bool, err error) {
		if g == nil {
			f, err := wt.groups.Facts(ctx, wt.ref)
			if err != nil {
				return wt.later(err, &w)
			}
			g = &f.Group
			if wt.ask != nil && asked != g.ARN {
				asked = g.ARN
				if request, err := wt.ask(ctx, g.ARN); err == nil { // a round at once is a favour
					id = request
				}
			}
		}
		targets, err := wt.groups.Health(ctx, *g)
		if err != nil {
			if errors.Is(err, targetgroup.ErrNotFound) { // it may come again, under another ARN
				g = nil
			}
			return wt.later(err, &w)
		}
		w = judge(g.ARN, targets, want)
		wt.tell(w.state())
		return w.Reached, false, nil
	})
	w.Request, w.Seconds = id, wt.now().Sub(began).Seconds()
	return w, err
}

// later goes on after errors that may pass. A group that is not there has perhaps
// just been made, or is about to be: DescribeTargetGroups is eventually consistent.
func (wt *waiter) later(err error, w *waiting) (done, slower bool, _ error) {
	name := lint.GroupName(wt.ref)
	switch {
	case errors.Is(err, targetgroup.ErrNotFound):
		wt.tell(name + ": there is no such target group yet, it is looked for again")
		*w = waiting{TargetGroup: name, Want: w.Want, States: map[string]int{}, Hints: []string{missing}}
	case errors.Is(err, targetgroup.ErrThrottled), errors.Is(err, targetgroup.ErrUnavailable):
		wt.tell(fmt.Sprintf("asked again later: %v", err))
		return false, true, nil
	default:
		return false, false, err
	}
	return false, false, nil
}

// missing is the hint for a group that never came.
const missing = "there is no such target group in this account and region: is its name or ARN right, --region, --profile?"

// judge says what a group holds, how far that is from what is wanted, and what
// could keep it from that.
func judge(arn string, targets map[claim.Key]plan.Target, want int) waiting {
	w := waiting{TargetGroup: arn, Want: want, States: map[string]int{}}
	reasons := map[plan.Health]map[string]int{}
	for _, t := range targets {
		w.States[string(t.Health)]++
		if reasons[t.Health] == nil {
			reasons[t.Health] = map[string]int{}
		}
		reasons[t.Health][t.Reason]++
	}
	w.Healthy = w.States[string(plan.Healthy)]
	w.Reached = w.Healthy >= want
	if !w.Reached {
		w.Hints = hints(w, reasons)
	}
	return w
}

// causes say for each state of ELB what may keep a target in it.
var causes = []struct {
	state plan.Health
	text  string
}{
	{plan.Unused, "the group has no listener, or the zone of the target is not enabled for the load balancer"},
	{plan.Unhealthy, "the health check fails: its path, port and matcher, the security groups, and the pod itself decide"},
	{plan.UnhealthyDraining, "the health check fails, and the target is on its way out"},
	{plan.Initial, "the first health checks are not done: interval × healthy threshold is the least time"},
	{plan.Unavailable, "there is no health to see: health checks are disabled for the group"},
	{plan.Draining, "these are on their way out and don't count"},
}

func hints(w waiting, reasons map[plan.Health]map[string]int) []string {
	if len(w.States) == 0 {
		return []string{"the group holds no targets: do rules name it (elbridge bindings), do pods match them (elbridge explain POD), is resync running?"}
	}
	var out []string
	for _, c := range causes {
		if n := w.States[string(c.state)]; n > 0 {
			out = append(out, fmt.Sprintf("%d %s%s: %s", n, c.state, inBrackets(counted(reasons[c.state])), c.text))
		}
	}
	registered := 0
	for state, n := range w.States {
		if state != string(plan.Draining) {
			registered += n
		}
	}
	if registered < w.Want {
		out = append(out, fmt.Sprintf("only %d targets are registered, of %d that are wanted: are there as many pods, and do they claim (elbridge bindings)?", registered, w.Want))
	}
	return out
}

// counted lists reason codes, the most frequent first.
func counted(reasons map[string]int) string {
	var out []string
	for _, r := range slices.SortedFunc(maps.Keys(reasons), func(a, b string) int { return cmp.Or(reasons[b]-reasons[a], cmp.Compare(a, b)) }) {
		if r != "" {
			out = append(out, r)
		}
	}
	return strings.Join(out, ", ")
}

// state is one line: how many are healthy, and what the others are.
func (w waiting) state() string {
	var others []string
	for _, s := range slices.Sorted(maps.Keys(w.States)) {
		if s != string(plan.Healthy) {
			others = append(others, fmt.Sprintf("%d %s", w.States[s], s))
		}
	}
	return fmt.Sprintf("%s: %d of %d healthy%s", groupName(w.TargetGroup), w.Healthy, w.Want, inBrackets(strings.Join(others, ", ")))
}

func (w waiting) text(out io.Writer) {
	verb := "after"
	if !w.Reached {
		verb = "is all there is after"
	}
	_, _ = fmt.Fprintf(out, "%s %s %.0f s\n", w.state(), verb, w.Seconds) // the table's writer keeps the error
	for _, h := range w.Hints {
		_, _ = fmt.Fprintf(out, "  %s\n", h)
	}
}
