package eventpattern

import (
	"cmp"
	"slices"
	"strconv"
)

// Bounds of an explanation.
const (
	MaxAttempts = 16 // combinations of $or branches that are told of
	MaxValues   = 8  // values of one path that are told
)

// Explanation says why a pattern matches an event, or why not. It is a value of
// its own: it shares nothing with the event, and may be stored or sent.
type Explanation struct {
	Match bool `json:"match"`
	// Attempts are the pattern's combinations of $or branches; a pattern without
	// $or has one. Of a match it is the one that matches, else those that came
	// furthest stand first.
	Attempts []Attempt `json:"attempts"`
	Omitted  int       `json:"omitted,omitempty"` // attempts beyond MaxAttempts
}

// Attempt is how far one combination of $or branches came.
type Attempt struct {
	Branch   string    `json:"branch,omitempty"` // which, as in "detail.$or[1]"; empty without $or
	Findings []Finding `json:"findings"`         // in the pattern's order
	// Failed is the index of the first finding that cannot hold beside those
	// before it, -1 where all hold.
	Failed int `json:"failed"`
	// Apart are the indices of findings before it that hold as well, but only in
	// other elements of an array: where there are some, Failed holds alone.
	Apart []int `json:"apart,omitempty"`
}

// Finding is what a condition found in the event.
type Finding struct {
	Path      string `json:"path"`
	Condition string `json:"condition"` // as the pattern spells it, without spaces between values
	Holds     bool   `json:"holds"`     // looked at alone, but for a match
	// Values are what the event has at the path, those that pass first. None:
	// the path is absent.
	Values  []Value `json:"values,omitempty"`
	Omitted int     `json:"omitted,omitempty"` // values beyond MaxValues
	// Inner says that the event has an object, or an array of them, at an absent
	// path: only scalars count.
	Inner bool `json:"inner,omitempty"`
}

// Value is a scalar of the event.
type Value struct {
	Text   string `json:"text"`            // as JSON; long ones are cut
	Where  string `json:"where,omitempty"` // as in "detail.ports[1].name", where it lies in an array of objects
	Passes bool   `json:"passes"`
}

// Explain says why the event matches the pattern, or why not.
func (p *Pattern) Explain(e *Event) Explanation {
	for i := range p.branches {
		if b := &p.branches[i]; b.matches(e, nil) {
			return Explanation{Match: true, Attempts: []Attempt{newTrial(b).told(e, true)}}
		}
	}
	trials := make([]trial, len(p.branches))
	outcomes := map[*condition]outcome{} // branches share conditions
	for i := range p.branches {
		trials[i] = newTrial(&p.branches[i])
		trials[i].look(e, outcomes)
	}
	slices.SortStableFunc(trials, trial.compare)
	shown := trials[:min(len(trials), MaxAttempts)]
	for i := range shown {
		shown[i].locate(e)
	}
	slices.SortStableFunc(shown, trial.compare)
	x := Explanation{Omitted: len(trials) - len(shown)}
	for _, t := range shown {
		x.Attempts = append(x.Attempts, t.told(e, false))
	}
	return x
}

// A trial is a branch on its way to an Attempt.
type trial struct {
	branch     *branch
	conditions []*condition // in the pattern's order
	outcomes   []outcome
	failed     int // index of the first condition that fails, len(conditions) until it is known
	failures   int // conditions that fail alone
}

func newTrial(b *branch) trial {
	t := trial{branch: b, conditions: slices.Clone(b.conditions), failed: -1}
	slices.SortFunc(t.conditions, func(a, b *condition) int { return cmp.Compare(a.offset, b.offset) })
	return t
}

// look finds the first condition that fails alone.
func (t *trial) look(e *Event, known map[*condition]outcome) {
	t.failed = len(t.conditions)
	for i, c := range t.conditions {
		o, ok := known[c]
		if !ok {
			o = c.alone(e)
			known[c] = o
		}
		t.outcomes = append(t.outcomes, o)
		if o == 0 {
			t.failures++
			t.failed = min(t.failed, i)
		}
	}
}

// compare puts trials that came further first.
func (t trial) compare(u trial) int {
	return cmp.Or(cmp.Compare(u.failed, t.failed), cmp.Compare(t.failures, u.failures))
}

// locate finds the condition that fails where those before it cannot all hold in
// the same array elements, though each holds alone.
func (t *trial) locate(e *Event) {
	if t.failed < len(t.conditions) && t.together(e, t.failed) {
		return
	}
	holds, fails := 0, t.failed // how many of the first conditions hold together
	for fails-holds > 1 {
		if middle := (holds + fails) / 2; t.together(e, middle) {
			holds = middle
		} else {
			fails = middle
		}
	}
	t.failed = holds
}

// together reports whether the first n conditions hold together.
func (t *trial) together(e *Event, n int) bool {
	b := branch{conditions: slices.Clone(t.conditions[:n])}
	slices.SortFunc(b.conditions, func(a, b *condition) int { return comparePaths(a.path, b.path) })
	return b.matches(e, nil)
}

// told is the trial as a value.
func (t trial) told(e *Event, match bool) Attempt {
	a := Attempt{Branch: t.branch.choice.String(), Failed: t.failed}
	for _, c := range t.conditions {
		a.Findings = append(a.Findings, c.finding(e, match))
	}
	if !match && a.Findings[t.failed].Holds {
		a.Apart = t.apart(e)
	}
	return a
}

// apart returns the conditions before the one that failed which share an array
// with it.
func (t *trial) apart(e *Event) []int {
	failed := t.conditions[t.failed]
	arrays := failed.arrays(e)
	var out []int
	for i, c := range t.conditions[:t.failed] {
		if t.outcomes[i]&free != 0 {
			continue
		}
		for a := range c.arrays(e) {
			if arrays[a] {
				out = append(out, i)
				break
			}
		}
	}
	return out
}

// arrays returns the arrays that values which bear on the condition lie in.
func (c *condition) arrays(e *Event) map[int32]bool {
	arrays, seen := map[int32]bool{}, map[int32]bool{}
	for i := e.first(c.path, c.hash); i != none; i = e.after(i, c.path, c.hash) {
		f := &e.fields[i]
		if !c.absent && !c.passes(f) {
			continue
		}
		for x := f.element; x != none && !seen[x]; x = e.elements[x].parent {
			seen[x] = true
			arrays[e.elements[x].array] = true
		}
	}
	return arrays
}

// finding is what the condition finds in the event.
func (c *condition) finding(e *Event, match bool) Finding {
	out := Finding{Path: c.path, Condition: compact(c.source)}
	single := branch{conditions: []*condition{c}}
	out.Holds = match || single.matches(e, nil)
	var pass, fail []int32
	n := 0
	for i := e.first(c.path, c.hash); i != none; i = e.after(i, c.path, c.hash) {
		n++
		switch passes := c.passes(&e.fields[i]); {
		case passes && len(pass) < MaxValues:
			pass = append(pass, i)
		case !passes && len(fail) < MaxValues:
			fail = append(fail, i)
		}
	}
	for _, i := range slices.Concat(pass, fail)[:min(len(pass)+len(fail), MaxValues)] {
		v := Value{Text: e.valueText(i, true), Passes: len(out.Values) < len(pass)}
		if e.fields[i].element != none {
			v.Where = label(e.where(i))
		}
		out.Values = append(out.Values, v)
	}
	out.Omitted = n - len(out.Values)
	out.Inner = n == 0 && e.hasUnder(c.path)
	return out
}

// String names the choices on the way to a branch, as in "$or[1], detail.$or[0]".
func (c *choice) String() string {
	if c == nil {
		return ""
	}
	s := c.path + "[" + strconv.Itoa(c.index) + "]"
	if before := c.before.String(); before != "" {
		return before + ", " + s
	}
	return s
}
