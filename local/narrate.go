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

// follow tells of the pod events that the webhook puts on the bus.
func (n *narrator) follow(ctx context.Context, s *stack.Stack) {
	_, records := s.Cloud.Server.Recorder.Watch(ctx, 0)
	for rec := range records {
		if rec.Operation != "PutEvents" {
			continue
		}
		var in struct {
			Entries []struct{ Source, DetailType, Detail string }
		}
		if json.Unmarshal([]byte(rec.Params), &in) != nil {
			continue // a call too long for the record
		}
		for _, e := range in.Entries {
			var d struct {
				Namespace, Name, PodIP, Reason string
			}
			if e.DetailType != "Pod State Change" || json.Unmarshal([]byte(e.Detail), &d) != nil {
				continue
			}
			switch d.Reason {
			case "IPAssigned":
				n.say("pod %s/%s got %s → event on the bus", d.Namespace, d.Name, d.PodIP)
			default:
				n.say("pod %s/%s: %s → event on the bus", d.Namespace, d.Name, strings.ToLower(d.Reason))
			}
		}
	}
}

// line tells of the registrar's mutations and of what it holds.
func (n *narrator) line(l functions.Line) {
	var d struct {
		Msg, Verb, Target, Pod, Rule, Result, Witness, Why string
		Seconds                                            *float64 `json:"duration_seconds"` // of the pod's own event
	}
	if json.Unmarshal(l.Text, &d) != nil {
		return
	}
	rule := d.Rule[strings.LastIndexByte(d.Rule, '/')+1:]
	switch d.Msg {
	case "target changed":
		verb := map[string]string{"register": "registered", "deregister": "deregistered"}[d.Verb]
		if d.Result != "done" {
			verb = "would be " + verb
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.pods[d.Target] = d.Pod
		after := "seen beside another pod's event" // its own may still be on its way
		if d.Seconds != nil {
			after = fmt.Sprintf("%.0f ms after the webhook saw it", 1000**d.Seconds)
		}
		n.write("   → rule %s → %s %s (%s), %s", rule, verb, d.Target, d.Pod, after)
	case "removal held":
		n.say("   → rule %s → removal of %s (%s) held: %s", rule, d.Target, d.Pod, d.Why)
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
