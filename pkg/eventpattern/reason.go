package eventpattern

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxReasons bounds the attempts that String tells of.
const maxReasons = 4

// String is the explanation in one line.
func (x Explanation) String() string {
	if x.Match {
		return "match: " + x.Attempts[0].matched()
	}
	if x.Omitted == 0 && x.allFailAlike() {
		return "no match: " + x.Attempts[0].Reason()
	}
	var b strings.Builder
	b.WriteString("no match in any branch of $or")
	for i, a := range x.Attempts[:min(len(x.Attempts), maxReasons)] {
		sep := "; "
		if i == 0 {
			sep = ", furthest came "
		}
		fmt.Fprintf(&b, "%s%s: %s", sep, label(a.Branch), a.Reason())
	}
	if more := len(x.Attempts) + x.Omitted - maxReasons; more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}

// allFailAlike reports whether the $or branches make no difference, as where a
// condition before them fails.
func (x Explanation) allFailAlike() bool {
	first := x.Attempts[0].Reason()
	return !slices.ContainsFunc(x.Attempts, func(a Attempt) bool { return a.Reason() != first })
}

func (a Attempt) matched() string {
	var parts []string
	if a.Branch != "" {
		parts = append(parts, label(a.Branch))
	}
	for i := range a.Findings {
		f := &a.Findings[i]
		parts = append(parts, fmt.Sprintf("%s %s", label(f.Path), f.seen(true)))
	}
	return strings.Join(parts, ", ")
}

// Reason says in one line why the attempt failed. It is empty where it did not.
func (a Attempt) Reason() string {
	if a.Failed < 0 {
		return ""
	}
	f := &a.Findings[a.Failed]
	if len(a.Apart) == 0 {
		return fmt.Sprintf("%s %s, want %s", label(f.Path), f.seen(false), clip(f.Condition))
	}
	var others []string
	for _, i := range a.Apart[:min(len(a.Apart), maxReasons)] {
		others = append(others, a.Findings[i].placed())
	}
	if more := len(a.Apart) - maxReasons; more > 0 {
		others = append(others, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("no array element has %s together with %s", f.placed(), strings.Join(others, " and "))
}

// seen says what stands at the path: what passes alone, where that is asked.
func (f *Finding) seen(passing bool) string {
	var texts []string
	for _, v := range f.Values {
		if passing && !v.Passes {
			break
		}
		text := v.Text
		if v.Where != "" {
			text += " (" + v.Where + ")"
		}
		texts = append(texts, text)
	}
	switch {
	case len(f.Values) == 0 && f.Inner:
		return "is absent (an object stands there, and only scalars count)"
	case len(f.Values) == 0:
		return "is absent"
	case len(texts) == 0: // {"exists":false}, relative to other elements
		return "is absent there"
	}
	if f.Omitted > 0 && !passing {
		texts = append(texts, strconv.Itoa(f.Omitted)+" more")
	}
	return "is " + strings.Join(texts, " and ")
}

// placed is the condition and the elements it holds in.
func (f *Finding) placed() string {
	var places []string
	for _, v := range f.Values {
		if v.Passes && v.Where != "" {
			places = append(places, v.Where)
		}
	}
	s := label(f.Path) + " " + clip(f.Condition)
	if len(places) > 0 {
		s += " (" + strings.Join(places[:min(len(places), maxReasons)], ", ") + ")"
	}
	return s
}
