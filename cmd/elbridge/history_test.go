package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/audit"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// day is what an audit log may hold, in a wrong order.
func day() []audit.Event {
	key := func(reason, witness string) targetevent.Key {
		return targetevent.Key{ID: "10.64.1.9", Port: 80, PodUID: "uid", Pod: "ingress/a", Cluster: "prod", Reason: reason, Witness: witness}
	}
	other := targetevent.Key{ID: "10.64.1.9", Port: 81, Reason: "missing"}
	const rule = "arn:aws:events:eu-west-1:111122223333:rule/elbridge/web"
	hint := targetevent.Cause{Kind: targetevent.Hint, EventID: "e1"}
	round := targetevent.Cause{Kind: targetevent.Drift, Drift: "missing", RunID: "r1", Round: 3, Request: "q1"}
	changed := func(minute int, c targetevent.Cause, change func(*targetevent.TargetsChanged)) audit.Event {
		d := targetevent.TargetsChanged{Schema: 1, Cause: c, Rule: rule, TargetGroup: groupARN, At: noon.Add(time.Duration(minute) * time.Minute)}
		change(&d)
		return event(targetevent.DetailTypeTargetsChanged, d)
	}
	return []audit.Event{
		changed(2, hint, func(d *targetevent.TargetsChanged) {
			d.Deregistered = []targetevent.Key{key("Terminating", "pod-ended")}
		}),
		changed(1, hint, func(d *targetevent.TargetsChanged) { d.Registered = []targetevent.Key{key("IPAssigned", "")} }),
		changed(3, round, func(d *targetevent.TargetsChanged) {
			d.Registered = []targetevent.Key{key("draining-wanted", ""), other}
			d.Failed = []targetevent.Failure{{Key: targetevent.Key{ID: "10.64.1.9", Port: 80}, Operation: "register", Error: "full"}}
		}),
		changed(4, round, func(d *targetevent.TargetsChanged) {
			d.WouldDo, d.Deregistered = true, []targetevent.Key{key("extra", "")}
		}),
		event(targetevent.DetailTypeRemovalHeld, targetevent.RemovalHeld{Schema: 1, Cause: targetevent.Cause{Kind: targetevent.Drift, Drift: "extra", RunID: "r1", Round: 5}, Rule: rule,
			TargetGroup: groupARN, Held: []targetevent.Key{key("more than the limit", "")}, Hash: "5b1d7a0c9e3f", At: noon.Add(5 * time.Minute)}),
		event(targetevent.DetailTypeRemovalHeld, targetevent.RemovalHeld{Schema: 1, Cause: targetevent.Cause{Kind: targetevent.Drift, Drift: "extra", RunID: "r1", Round: 9}, Rule: rule,
			TargetGroup: groupARN, Held: []targetevent.Key{key("more than the limit", "")}, Hash: "5b1d7a0c9e3f", Overdue: true, At: noon.Add(8 * time.Minute)}),
		event(targetevent.DetailTypeBindingChanged, targetevent.BindingChanged{Schema: 1, Rule: rule, Changes: []targetevent.ChangeKind{targetevent.PatternChanged},
			Effects: []targetevent.Effect{{TargetGroup: groupARN, Lost: []targetevent.Key{key("", "")}}}, At: noon.Add(6 * time.Minute)}),
		event(targetevent.DetailTypeResyncCompleted, targetevent.ResyncCompleted{Schema: 1, RunID: "r1", Round: 7, At: noon.Add(7 * time.Minute), Findings: []targetevent.Finding{
			{TargetGroup: groupARN, Drift: "extra", Action: "held", Key: key("", "")}, // told by an event of its own
			{TargetGroup: groupARN, Drift: "zone-off", Action: "reported", Key: key("", "")},
			{TargetGroup: groupARN, Drift: "no-listener", Action: "reported"}}}),
		event(targetevent.DetailTypeBindingInvalid, targetevent.BindingInvalid{Schema: 1}),
	}
}

func TestHistory(t *testing.T) {
	o := &logOptions{since: time.Hour, group: "web"}
	log := &events{all: day()}
	h, faults, err := o.history(context.Background(), log, noon.Add(10*time.Minute), "10.64.1.9", 80)
	if err != nil || faults != nil {
		t.Fatal(err, faults)
	}
	if q := log.asked[0]; q.Address != "10.64.1.9" || !q.From.Equal(noon.Add(-50*time.Minute)) || q.To.Before(noon.Add(10*time.Minute)) {
		t.Errorf("asked for %+v", q)
	}
	var out bytes.Buffer
	if err := write(&out, "table", h, h.table); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"TIME WHAT TARGET GROUP CAUSE RULE POD UID",
		"12:01 registered 10.64.1.9:80 web pod event IPAssigned e1 web ingress/a uid",
		"12:02 deregistered 10.64.1.9:80 web pod event Terminating e1; witness pod-ended web ingress/a uid",
		"12:03 registered 10.64.1.9:80 web drift draining-wanted, run r1 round 3, asked for by q1 web ingress/a uid",
		"12:03 failed to register 10.64.1.9:80 web drift missing, run r1 round 3, asked for by q1: full web - -",
		"12:04 would deregister 10.64.1.9:80 web drift extra, run r1 round 3, asked for by q1 web ingress/a uid",
		"12:05 held 10.64.1.9:80 web more than the limit (drift extra, run r1 round 5; plan 5b1d7a0c9e3f) web ingress/a uid",
		"12:06 rule changed: goes 10.64.1.9:80 web rule web: pattern web ingress/a uid",
		"12:07 reported 10.64.1.9:80 web drift zone-off, run r1 round 7 - ingress/a uid",
		"12:08 held 10.64.1.9:80 web more than the limit (drift extra, run r1 round 9; plan 5b1d7a0c9e3f) web ingress/a uid",
	}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i := range max(len(got), len(want)) {
		line, wanted := "", ""
		if i < len(got) {
			line = strings.Replace(strings.Replace(strings.Join(strings.Fields(got[i]), " "), "2026-11-30T", "", 1), ":00Z", "", 1)
		}
		if i < len(want) {
			wanted = want[i]
		}
		if line != wanted {
			t.Errorf("line %d is\n%s\nwant\n%s", i, line, wanted)
		}
	}
}

func TestHistory_OtherPlaces(t *testing.T) {
	for name, tt := range map[string]struct {
		o    logOptions
		id   string
		port int32
		want int
	}{
		"any port":        {logOptions{since: time.Hour}, "10.64.1.9", 0, 10},
		"group by ARN":    {logOptions{since: time.Hour, group: groupARN}, "10.64.1.9", 81, 1},
		"another group":   {logOptions{since: time.Hour, group: "api"}, "10.64.1.9", 0, 0},
		"another address": {logOptions{since: time.Hour}, "10.64.1.8", 0, 0},
		"another port":    {logOptions{since: time.Hour}, "10.64.1.9", 8080, 0},
	} {
		log := &events{all: day()}
		h, _, err := tt.o.history(context.Background(), log, noon, tt.id, tt.port)
		if err != nil || len(h.Entries) != tt.want {
			t.Errorf("%s: %d entries (%v), want %d", name, len(h.Entries), err, tt.want)
		}
		if strings.HasPrefix(tt.o.group, "arn:") != (log.asked[0].TargetGroup != "") {
			t.Errorf("%s: asked for %+v", name, log.asked[0])
		}
	}
}

// An event that can't be read is named, and the others are shown.
func TestHistory_Unreadable_I8(t *testing.T) {
	all := append(day(), audit.Event{ID: "new", DetailType: targetevent.DetailTypeTargetsChanged, Detail: json.RawMessage(`{"schema":2}`)})
	o := &logOptions{since: time.Hour}
	h, faults, err := o.history(context.Background(), &events{all: all}, noon, "10.64.1.9", 81)
	if err != nil || faults == nil || !strings.Contains(faults.Error(), "event new") || len(h.Entries) != 1 {
		t.Errorf("%d entries, faults %v, error %v", len(h.Entries), faults, err)
	}
	h, faults, err = o.history(context.Background(), &events{all: day(), err: audit.ErrIncomplete}, noon, "10.64.1.9", 81)
	if err != nil || !errors.Is(faults, audit.ErrIncomplete) || len(h.Entries) != 1 {
		t.Errorf("more than is read: %d entries, faults %v, error %v", len(h.Entries), faults, err)
	}
	broken := errors.New("broken")
	if _, _, err := o.history(context.Background(), &events{err: broken}, noon, "10.64.1.9", 81); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestDrift(t *testing.T) {
	o := &logOptions{since: time.Hour}
	d, faults, err := o.drift(context.Background(), &events{all: day()}, noon, "")
	if err != nil || faults != nil {
		t.Fatal(err, faults)
	}
	var out bytes.Buffer
	if err := write(&out, "table", d, d.table); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"KIND GROUP REPAIRED WOULD HELD FAILED REPORTED LAST",
		"draining-wanted web 1 0 0 0 0 2026-11-30T12:03:00Z",
		"extra web 0 1 1 0 0 2026-11-30T12:08:00Z",
		"missing web 1 0 0 1 0 2026-11-30T12:03:00Z",
		"no-listener web 0 0 0 0 1 2026-11-30T12:07:00Z",
		"zone-off web 0 0 0 0 1 2026-11-30T12:07:00Z",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if d, faults, err := o.drift(context.Background(), &events{all: day(), err: audit.ErrIncomplete}, noon, ""); err != nil || !errors.Is(faults, audit.ErrIncomplete) || len(d.Drift) != 5 {
		t.Errorf("of a log of which only the newest fits: %+v, %v, %v", d, faults, err)
	}
	if len(d.Drift) != 5 || len(d.Drift[1].Entries) != 3 {
		t.Errorf("%d kinds, %d entries of extra", len(d.Drift), len(d.Drift[1].Entries))
	}
	if d, _, _ := o.drift(context.Background(), &events{all: day()}, noon, "extra"); len(d.Drift) != 1 || d.Drift[0].Kind != "extra" {
		t.Errorf("of one kind: %+v", d.Drift)
	}
}

// Each kind of the metrics' page can be asked for, a mistyped one is an error and
// not a day without drift.
func TestDrift_Kinds(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| `kind` of drift |")
	table, _, _ = strings.Cut(table, "\n\n")
	kinds := 0
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(table, -1) {
		kinds++
		if err := knownKind(m[1]); err != nil {
			t.Error(err)
		}
	}
	if kinds != len(driftKinds) {
		t.Errorf("the page has %d kinds, the tool %d", kinds, len(driftKinds))
	}
	if err := knownKind("mising"); err == nil || !strings.Contains(err.Error(), "want one of missing draining-wanted ") {
		t.Errorf("a mistyped one: %v", err)
	}
}

// A repair that is held since somebody else undoes it has no event of its own.
func TestDrift_Flapping_P037(t *testing.T) {
	round := targetevent.ResyncCompleted{Schema: 1, RunID: "r1", Round: 1, At: noon, Findings: []targetevent.Finding{
		{TargetGroup: groupARN, Drift: "flapping", Action: "held", Key: targetevent.Key{ID: "10.64.1.1", Port: 80}},
		{TargetGroup: groupARN, Drift: "emptied", Action: "waiting", Key: targetevent.Key{ID: "10.64.1.2", Port: 80}}}}
	twice := []audit.Event{event(targetevent.DetailTypeResyncCompleted, round), event(targetevent.DetailTypeResyncCompleted, round)}
	d, _, err := (&logOptions{since: time.Hour}).drift(context.Background(), &events{all: twice}, noon, "")
	if err != nil || len(d.Drift) != 2 || d.Drift[0].Reported != 1 || d.Drift[1].Held != 1 {
		t.Errorf("%+v, %v", d.Drift, err)
	}
}

// What a dry round sees is shown as what would be done.
func TestDrift_DryRound_I19(t *testing.T) {
	dry := targetevent.ResyncCompleted{Schema: 1, RunID: "r1", Round: 1, DryRun: true, Findings: []targetevent.Finding{
		{TargetGroup: groupARN, Drift: "missing", Action: "would-register", Key: targetevent.Key{ID: "10.64.1.1", Port: 80}},
		{TargetGroup: groupARN, Drift: "extra", Action: "held", Key: targetevent.Key{ID: "10.64.1.2", Port: 80}}}}
	d, _, err := (&logOptions{since: time.Hour}).drift(context.Background(), &events{all: []audit.Event{event(targetevent.DetailTypeResyncCompleted, dry)}}, noon, "")
	if err != nil || len(d.Drift) != 2 || d.Drift[0].WouldRepair != 1 || d.Drift[0].Held != 0 || d.Drift[1].WouldRepair != 1 || d.Drift[1].Entries[0].What != "would register" {
		t.Errorf("%+v, %v", d.Drift, err)
	}
}

// Every sample of the events about targets is understood.
func TestEntries_Samples(t *testing.T) {
	read := 0
	for _, detailType := range []string{"targets-changed", "removal-held", "binding-changed", "resync-completed"} {
		files, err := filepath.Glob("../../events/samples/" + detailType + "*.json")
		if err != nil || len(files) == 0 {
			t.Fatalf("no samples of %s: %v", detailType, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var e struct {
				ID         string          `json:"id"`
				DetailType string          `json:"detail-type"`
				Detail     json.RawMessage `json:"detail"`
			}
			if err := json.Unmarshal(text, &e); err != nil {
				t.Fatal(err)
			}
			of, err := entriesOf(audit.Event{ID: e.ID, DetailType: e.DetailType, Detail: e.Detail})
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
			read += len(of)
			for _, e := range of {
				if e.What == "" || e.Why == "" || e.TargetGroup == "" || e.Time.IsZero() {
					t.Errorf("%s: %+v", file, e)
				}
			}
		}
	}
	if read == 0 {
		t.Error("no sample says anything of a target")
	}
}

func TestParseTarget(t *testing.T) {
	for s, want := range map[string]string{
		"10.64.1.6": "10.64.1.6 0", "10.64.1.6:9999": "10.64.1.6 9999", "fd00::6": "fd00::6 0", "[fd00::6]": "fd00::6 0", "[fd00::6]:80": "fd00::6 80",
		"::ffff:10.64.1.6": "10.64.1.6 0", "i-0a": "i-0a 0", "i-0a:30080": "i-0a 30080",
		"nowhere": "", "10.64.1.6:0": "", "10.64.1.6:99999": "", "i-0a:x": "", "i-0a:8x": "", "i-0a:99999": "",
	} {
		id, port, err := parseTarget(s)
		got := ""
		if err == nil {
			got = strings.Join([]string{id, strings.TrimPrefix(target(targetevent.Key{ID: "x", Port: port}), "x:")}, " ")
		}
		if got != want {
			t.Errorf("%s is %q (%v), want %q", s, got, err, want)
		}
	}
}

func TestLastChange(t *testing.T) {
	about := func(e entry) bool { return e.port == 80 }
	for want, log := range map[string]auditLog{
		"not known: each change": nil,
		"held 10.64.1.9:80 at 2026-11-30T12:08:00Z, group web, rule web: more than the limit (drift extra": &events{all: day()},
		"none in the last 24 h":                             &events{},
		"none among the newest: more of the audit log":      &events{err: audit.ErrIncomplete},
		"on the bus and in the log of the function":         &events{err: errors.New("denied")},
		"the audit log was not read: denied, ask your team": &events{err: errors.New("denied, ask your team")},
	} {
		if got := lastChange(context.Background(), log, noon, []string{"10.64.1.9"}, about); !strings.Contains(got, want) {
			t.Errorf("said %q, want %q", got, want)
		}
	}
	var out bytes.Buffer
	v := somewhere().view()
	v.log = &events{all: day()}
	if err := options("table").explainTarget(context.Background(), &out, v, "web", "10.64.1.9:80"); err != nil || !strings.Contains(out.String(), "last change: held 10.64.1.9:80") {
		t.Errorf("explain said\n%s\n%v", out.String(), err)
	}
}
