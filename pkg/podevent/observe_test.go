package podevent_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/elbridge/elbridge/pkg/podevent"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// pod makes a pod from words: addresses "ip=a,b", "ready", "containers",
// "failed", "succeeded", "terminating", "app=x" (a label), "note=x" (an allowed
// annotation), "other=x" (one that is not), "rv=7". "-" is no pod.
func pod(text string) *podevent.Pod {
	if text == "-" {
		return nil
	}
	p := &podevent.Pod{Namespace: "ingress", Name: "web-0", UID: "u", ResourceVersion: "1", NodeName: "node-a", Phase: "Running",
		Labels: map[string]string{}, Annotations: map[string]string{}}
	for word := range strings.FieldsSeq(text) {
		k, v, _ := strings.Cut(word, "=")
		switch k {
		case "ip":
			p.PodIPs = strings.Split(v, ",")
		case "ready":
			p.Ready, p.ContainersReady = true, true
		case "containers":
			p.ContainersReady = true
		case "failed":
			p.Phase = "Failed"
		case "succeeded":
			p.Phase = "Succeeded"
		case "terminating":
			p.Terminating = true
		case "app":
			p.Labels["app"] = v
		case "note", "other":
			p.Annotations["example.com/"+k] = v
		case "rv":
			p.ResourceVersion = v
		}
	}
	return p
}

// show is "Reason addresses[<-previous] [app=x[<-y]] [note=x]" of each event.
func show(events []podevent.Event) string {
	var out []string
	for _, e := range events {
		s := fmt.Sprintf("%s %s", e.Reason, strings.Join(e.PodIPs, ","))
		if e.Previous != nil && e.Previous.PodIP != "" {
			s += "<-" + strings.Join(e.Previous.PodIPs, ",")
		}
		if app := e.Labels["app"]; app != "" {
			s += " app=" + app
			if e.Previous != nil && e.Previous.Labels != nil {
				s += "<-" + e.Previous.Labels["app"]
			}
		}
		if note := e.Annotations["example.com/note"]; note != "" {
			s += " note=" + note
		}
		if e.Terminating {
			s += " terminating"
		}
		if e.Previous != nil && e.Previous.Terminating {
			s += " again"
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

func TestObserve(t *testing.T) {
	tests := map[string]struct {
		operation podevent.Operation
		old, new  string
		grace     int64
		want      string
	}{
		"address assigned":               {podevent.StatusUpdate, "", "ip=a", -1, "IPAssigned a"},
		"second family later":            {podevent.StatusUpdate, "ip=a", "ip=a,b", -1, "IPAssigned a,b<-a"},
		"changed address":                {podevent.StatusUpdate, "ip=a ready", "ip=b ready", -1, "IPAssigned b<-a"},
		"address and ready in one patch": {podevent.StatusUpdate, "", "ip=a ready", -1, "IPAssigned a"},
		"ready":                          {podevent.StatusUpdate, "ip=a", "ip=a ready", -1, "Ready a"},
		"containers ready":               {podevent.StatusUpdate, "ip=a", "ip=a containers", -1, "Ready a"},
		"P026 container died":            {podevent.StatusUpdate, "ip=a ready", "ip=a", -1, "NotReady a"},
		"gate closed":                    {podevent.StatusUpdate, "ip=a ready", "ip=a containers", -1, "NotReady a"},
		"ready without an address":       {podevent.StatusUpdate, "", "ready", -1, ""},
		"nothing that matters":           {podevent.StatusUpdate, "ip=a ready rv=1", "ip=a ready rv=1", -1, ""},
		"address lost":                   {podevent.StatusUpdate, "ip=a ready", "ready", -1, "NotReady a<-a"},
		"P046 failed, keeps address":     {podevent.StatusUpdate, "ip=a ready", "ip=a failed", -1, "Finished a"},
		"P047 failed, address gone":      {podevent.StatusUpdate, "ip=a ready", "failed", -1, "Finished a<-a"},
		"succeeded while terminating":    {podevent.StatusUpdate, "ip=a ready terminating", "ip=a succeeded terminating", -1, "Finished a terminating again"},
		"finished stays finished":        {podevent.StatusUpdate, "ip=a ready failed", "ip=a failed", -1, ""},
		"status of a terminating pod":    {podevent.StatusUpdate, "ip=a ready terminating", "ip=a ready terminating", -1, "Terminating a terminating again"},
		"finalizer of a terminating pod": {podevent.Update, "ip=a terminating", "ip=a terminating", -1, "Terminating a terminating again"},
		"relabelled":                     {podevent.Update, "ip=a app=x", "ip=a app=y", -1, "Relabelled a app=x<-x; Relabelled a app=y<-x"},
		"relabelled by a status update":  {podevent.StatusUpdate, "ip=a app=x", "ip=a app=y ready", -1, "Relabelled a app=x<-x; Relabelled a app=y<-x"},
		"relabelled, new address":        {podevent.StatusUpdate, "ip=a app=x", "ip=b app=y", -1, "Relabelled b<-a app=x<-x; Relabelled b<-a app=y<-x"},
		"relabelled without an address":  {podevent.Update, "app=x", "app=y", -1, ""},
		"allowed annotation":             {podevent.Update, "ip=a note=1", "ip=a note=2", -1, "Relabelled a note=1; Relabelled a note=2"},
		"other annotation":               {podevent.Update, "ip=a other=1", "ip=a other=2", -1, ""},
		"delete with grace":              {podevent.Delete, "ip=a ready", "-", 30, "Terminating a terminating"},
		"delete, grace not said":         {podevent.Delete, "ip=a ready", "-", -1, "Terminating a terminating"},
		"delete without grace":           {podevent.Delete, "ip=a terminating", "-", 0, "Deleted a terminating again"},
		"delete without an address":      {podevent.Delete, "", "-", 0, ""},
		"eviction that shows":            {podevent.Evict, "-", "ip=a terminating", -1, "Evicted a terminating"},
		"eviction seen before and after": {podevent.Evict, "ip=a", "ip=a terminating", -1, "Evicted a terminating"},
		"P077 eviction, pod gone":        {podevent.Evict, "ip=a", "-", -1, "Evicted a terminating"},
		"eviction refused":               {podevent.Evict, "-", "ip=a", -1, ""},
		"eviction without an address":    {podevent.Evict, "-", "terminating", -1, ""},
		"nobody":                         {podevent.Evict, "-", "-", -1, ""},
		"update without the old pod":     {podevent.StatusUpdate, "-", "ip=a", -1, ""},
		"delete without the pod":         {podevent.Delete, "-", "-", 0, ""},
		"unknown operation":              {"Create", "", "ip=a", -1, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := change(tt.operation, pod(tt.old), pod(tt.new))
			if tt.grace >= 0 {
				c.Grace = &tt.grace
			}
			events := podevent.Observe(c)
			if got := show(events); got != tt.want {
				t.Errorf("Observe(%s %q -> %q) = %q, want %q", tt.operation, tt.old, tt.new, got, tt.want)
			}
			for _, e := range events {
				if tt.grace >= 0 && (e.DeletionGracePeriodSeconds == nil || *e.DeletionGracePeriodSeconds != tt.grace) {
					t.Errorf("grace %v, want %d", e.DeletionGracePeriodSeconds, tt.grace)
				}
			}
		})
	}
}

func change(op podevent.Operation, old, pod *podevent.Pod) podevent.Change {
	return podevent.Change{
		Cluster: "prod", Operation: op, Old: old, New: pod, At: noon,
		Webhook: podevent.Webhook{Version: "v1", Instance: "webhook-0"}, Annotations: podevent.AllowList{"example.com/note"},
	}
}

// I1: the version in an event is the one before the change.
func TestObserve_I1_TakesTheOldVersion(t *testing.T) {
	e := podevent.Observe(change(podevent.StatusUpdate, pod("ip=a rv=340"), pod("ip=a ready rv=354")))
	if len(e) != 1 || e[0].ResourceVersion != "340" {
		t.Errorf("events %+v, want resourceVersion 340", e)
	}
}

// Whatever happens to a pod: an event names an address, the pod, and after the
// last event of a relabelling the labels that it has now; arguments stay as they
// were, and every event can be written and read.
func TestObserveProperties(t *testing.T) {
	word := rapid.SampledFrom([]string{"ip=a", "ip=b", "ip=a,b", "ready", "containers", "failed", "terminating", "app=x", "app=y", "note=1", "other=1", "rv=2"})
	gen := rapid.Custom(func(t *rapid.T) *podevent.Pod {
		return pod(strings.Join(rapid.SliceOfN(word, 0, 5).Draw(t, "pod"), " "))
	})
	rapid.Check(t, func(t *rapid.T) {
		op := rapid.SampledFrom([]podevent.Operation{podevent.Update, podevent.StatusUpdate, podevent.Delete, podevent.Evict}).Draw(t, "operation")
		old, current := gen.Draw(t, "old"), gen.Draw(t, "new")
		oldLabels, newLabels := maps.Clone(old.Labels), maps.Clone(current.Labels)
		events := podevent.Observe(change(op, old, current))
		for _, e := range events {
			if e.UID != "u" || e.Cluster != "prod" || e.PodIP == "" || !slices.Contains(e.PodIPs, e.PodIP) || e.Reason == "" || e.Webhook.Version != "v1" {
				t.Fatalf("event %+v", e)
			}
			if _, ok := e.Annotations["example.com/other"]; ok {
				t.Fatalf("event carries an annotation that is not allowed: %v", e.Annotations)
			}
			roundTrip(t, e)
		}
		if op == podevent.Update || op == podevent.StatusUpdate {
			changed := old.PodIP() != current.PodIP() || !maps.Equal(old.Labels, current.Labels)
			if len(events) == 0 && changed && (old.PodIP() != "" || current.PodIP() != "") && !current.Finished() {
				t.Fatalf("%+v -> %+v makes no event", old, current)
			}
			if n := len(events); n > 0 && !maps.Equal(events[n-1].Labels, current.Labels) {
				t.Fatalf("labels of the last event %v, want %v", events[n-1].Labels, current.Labels)
			}
			for _, ip := range append(slices.Clone(old.PodIPs), current.PodIPs...) {
				for _, e := range events {
					if !slices.Contains(e.PodIPs, ip) && (e.Previous == nil || !slices.Contains(e.Previous.PodIPs, ip)) {
						t.Fatalf("P047 address %s is in no key of %+v", ip, e)
					}
				}
			}
		}
		if !maps.Equal(oldLabels, old.Labels) || !maps.Equal(newLabels, current.Labels) {
			t.Fatal("an argument was changed")
		}
	})
}

func TestFromPod(t *testing.T) {
	for text, want := range map[string]podevent.Reason{
		"": podevent.NotReady, "ip=a": podevent.IPAssigned, "ip=a ready": podevent.Ready,
		"ip=a ready terminating": podevent.Terminating, "ip=a failed terminating": podevent.Finished,
	} {
		e := podevent.FromPod("prod", pod(text+" app=x note=1 other=2"), podevent.AllowList{"*"}, noon)
		if e.Reason != want || e.Labels["app"] != "x" || len(e.Annotations) != 2 || e.Schema != podevent.Schema {
			t.Errorf("FromPod(%q) = %+v, want reason %s", text, e, want)
		}
	}
}

func TestAllowList(t *testing.T) {
	l := podevent.AllowList{"a.b/c", "d.e/*"}
	for key, want := range map[string]bool{"a.b/c": true, "a.b/cc": false, "d.e/": true, "d.e/x": true, "d.e": false, "*": false, "": false} {
		if l.Allows(key) != want {
			t.Errorf("%v.Allows(%q) = %v, want %v", l, key, !want, want)
		}
	}
	if got := podevent.AllowList(nil).Filter(map[string]string{"a": "b"}); got == nil || len(got) != 0 {
		t.Errorf("the empty list lets %v pass", got)
	}
}
