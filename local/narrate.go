package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/elbridge/elbridge/local/cloud/elb"
	"github.com/elbridge/elbridge/local/functions"
	"github.com/elbridge/elbridge/local/stack"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// narrator says in plain words what happens, as it happens.
type narrator struct {
	mu   sync.Mutex
	out  io.Writer
	pods map[string]string // "ip:port" → namespace/name, for the target's states
}

func newNarrator(out io.Writer) *narrator { return &narrator{out: out, pods: map[string]string{}} }

func (n *narrator) say(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.write(format, args...)
}

func (n *narrator) write(format string, args ...any) {
	_, _ = fmt.Fprintf(n.out, "%s  %s\n", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

// follow tells of the events that functions and webhook put on the bus.
func (n *narrator) follow(ctx context.Context, s *stack.Stack) {
	_, records := s.Cloud.Server.Recorder.Watch(ctx, 0)
	for rec := range records {
		if rec.Operation != "PutEvents" {
			continue
		}
		var in struct {
			Entries []struct{ DetailType, Detail string }
		}
		if json.Unmarshal([]byte(rec.Params), &in) != nil {
			continue // a call too long for the record
		}
		for _, e := range in.Entries {
			n.event(e.DetailType, []byte(e.Detail))
		}
	}
}

// event tells of a pod's event, of a changed rule, and of a round that somebody
// asked for or that found something.
func (n *narrator) event(detailType string, detail []byte) {
	switch detailType {
	case "Pod State Change":
		var d struct {
			Namespace, Name, PodIP, Reason string
		}
		if json.Unmarshal(detail, &d) != nil {
			return
		}
		if d.Reason == "IPAssigned" {
			n.say("pod %s/%s got %s → event on the bus", d.Namespace, d.Name, d.PodIP)
		} else {
			n.say("pod %s/%s: %s → event on the bus", d.Namespace, d.Name, strings.ToLower(d.Reason))
		}
	case targetevent.DetailTypeBindingChanged:
		if d, err := targetevent.Decode[targetevent.BindingChanged](detail); err == nil {
			n.say("resync: rule %s changed (%s)%s", lastPart(d.Rule), joined(d.Changes), effects(d.Effects))
		}
	case targetevent.DetailTypeResyncCompleted:
		d, err := targetevent.Decode[targetevent.ResyncCompleted](detail)
		if err != nil || (d.Trigger == "schedule" && d.Found == 0) {
			return
		}
		n.say("resync: round %d (%s) compared %d groups: %d differences, %d repaired, %d held, %d failed",
			d.Round, d.Trigger, d.Groups, d.Found, d.Repaired, d.Held, d.Failed)
	}
}

func effects(all []targetevent.Effect) string {
	var text strings.Builder
	for _, e := range all {
		_, _ = fmt.Fprintf(&text, "; its group gains %d, loses %d, holds %d", e.Gain, e.Lose, e.Hold)
	}
	return text.String()
}

func joined[T ~string](all []T) string {
	var parts []string
	for _, one := range all {
		parts = append(parts, string(one))
	}
	return strings.Join(parts, ", ")
}

// lastPart is the name in a rule's ARN.
func lastPart(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }

// line tells of mutations and of what is held.
func (n *narrator) line(l functions.Line) {
	var d struct {
		Msg, Verb, Target, Pod, Rule, Result, Witness, Why string
		Reason                                             string
		Seconds                                            *float64 `json:"duration_seconds"` // of the pod's own event
	}
	if json.Unmarshal(l.Text, &d) != nil {
		return
	}
	who := ""
	if l.Function == stack.Resync {
		who = "resync → "
	}
	switch d.Msg {
	case "target changed":
		verb := map[string]string{"register": "registered", "deregister": "deregistered"}[d.Verb]
		if d.Result != "done" {
			verb = "would be " + verb
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.pods[d.Target] = d.Pod
		why := "seen beside another pod's event" // its own may still be on its way
		switch {
		case d.Seconds != nil:
			why = fmt.Sprintf("%.0f ms after the webhook saw it", 1000**d.Seconds)
		case l.Function == stack.Resync:
			why = "found by comparing: " + d.Reason
		}
		n.write("   → %srule %s → %s %s (%s), %s", who, lastPart(d.Rule), verb, d.Target, d.Pod, why)
	case "removal held":
		n.say("   → %srule %s → removal of %s (%s) held: %s", who, lastPart(d.Rule), d.Target, d.Pod, d.Why)
	}
}

// target tells of a target's health.
func (n *narrator) target(c elb.Change) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := stack.TargetKey(c)
	pod := n.pods[key]
	switch c.To.State {
	case "healthy":
		n.write("   → %s (%s) is healthy, %.1f s after its registration", key, pod, c.Since.Seconds())
	case "unhealthy":
		n.write("   → %s (%s) is unhealthy: %s", key, pod, c.To.Reason)
	case "draining":
		n.write("   → %s (%s) drains", key, pod)
	}
}
