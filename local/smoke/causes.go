package smoke

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/stack"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// allowed are the kinds of causes of each way: a dead registrar must not hide
// behind resync, nor the other way round.
var allowed = map[stack.Way][]string{
	stack.WayEvents: {string(targetevent.Hint)},
	stack.WayResync: {string(targetevent.Drift), string(targetevent.Resync)},
	stack.WayBoth:   {string(targetevent.Hint), string(targetevent.Drift), string(targetevent.Resync)},
}

// causeOf finds the causes in the events of a PutEvents call, whose record may be
// cut.
var causeOf = regexp.MustCompile(`\\"cause\\":\{\\"kind\\":\\"([a-z]+)\\"`)

// eventWithin bounds the time between a change and the event that tells of it:
// functions send them last.
const eventWithin = 10 * time.Second

// sequence is that of the next call that the local AWS records.
func (r *Runner) sequence() int64 {
	all := r.S.Cloud.Server.Recorder.Since(0)
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1].Sequence + 1
}

// byFunction tells whether registrar or resync made the call.
func byFunction(rec core.Record) bool {
	return strings.Contains(rec.Principal, stack.RegistrarRole) || strings.Contains(rec.Principal, stack.ResyncRole)
}

func mutates(rec core.Record) bool {
	return rec.Code == "" && (rec.Operation == "RegisterTargets" || rec.Operation == "DeregisterTargets")
}

// causes counts what made functions act since a call, by kind. It is an error if
// targets changed and no event told of it, or if a cause is none of this way's.
func (r *Runner) causes(ctx context.Context, since int64) (kinds map[string]int, err error) {
	ctx, cancel := context.WithTimeout(ctx, eventWithin)
	defer cancel()
	changed := false
	err = r.until(ctx, "an event that tells why targets changed", func(context.Context) (bool, error) {
		var told bool
		kinds, changed, told = count(r.S.Cloud.Server.Recorder.Since(since))
		return told || !changed, nil
	})
	if err != nil {
		return kinds, err
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if !slices.Contains(allowed[r.Way], kind) {
			return kinds, fmt.Errorf("in way %s something happened because of %q (%d times): want only %s", r.Way, kind, kinds[kind], strings.Join(allowed[r.Way], ", "))
		}
	}
	return kinds, nil
}

// count reads records: the causes in events by kind, whether functions changed
// targets, and whether they told of a change.
func count(records []core.Record) (kinds map[string]int, changed, told bool) {
	kinds = map[string]int{}
	for _, rec := range records {
		switch {
		case !byFunction(rec):
		case mutates(rec):
			changed = true
		case rec.Operation == "PutEvents" && rec.Code == "":
			told = told || strings.Contains(rec.Params, targetevent.DetailTypeTargetsChanged)
			for _, m := range causeOf.FindAllStringSubmatch(rec.Params, -1) {
				kinds[m[1]]++
			}
		}
	}
	return kinds, changed, told
}

// registrarActed is an error if, where both could act, the registrar was behind
// changes in less than half of the steps that had any: it is faster by far, so it
// would be as good as dead. Step by step that says nothing, as resync may win a
// race.
func (r *Runner) registrarActed(results []Result) error {
	if r.Way != stack.WayBoth {
		return nil
	}
	acted, all := 0, 0
	for _, res := range results {
		if res.silent {
			continue
		}
		if len(res.Causes) > 0 {
			all++
		}
		if res.Causes[string(targetevent.Hint)] > 0 {
			acted++
		}
	}
	if 2*acted < all {
		return fmt.Errorf("way both: hints were behind changes in %d of %d steps only: the registrar hides behind resync", acted, all)
	}
	return nil
}

// tellCalls says what the run cost of the account's rate.
func (r *Runner) tellCalls() {
	for _, role := range []string{stack.RegistrarRole, stack.ResyncRole} {
		counts := map[string]int{}
		for _, rec := range r.S.Cloud.Server.Recorder.Since(0) {
			if rec.Service != "elasticloadbalancing" || !strings.Contains(rec.Principal, role) {
				continue
			}
			name := rec.Operation
			if rec.Code != "" {
				name += " refused (" + rec.Code + ")"
			}
			counts[name]++
		}
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
		}
		if len(parts) > 0 {
			_, _ = fmt.Fprintf(r.Out, "calls of %s to ELB: %s\n", role, strings.Join(parts, ", "))
		}
	}
}
