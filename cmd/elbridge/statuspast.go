package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/elbridge/elbridge/pkg/audit"
	"github.com/elbridge/elbridge/pkg/binding"
	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/targetevent"
)

// How long something may say nothing.
const (
	// webhookSilent is three heartbeats: one a minute.
	webhookSilent = 3 * time.Minute
	// resyncSilent is two runs, of 14 minutes each: one that lives tells of itself
	// every five minutes.
	resyncSilent = 30 * time.Minute

	heartbeatsBack = 10 * time.Minute // how far heartbeats are looked for
	// changesRead are the newest changes among which one that was made is looked
	// for: others only tell what would be done.
	changesRead = 50
	// pastTimeout bounds the reading of the log.
	pastTimeout = 20 * time.Second
)

// webhookStatus is the last word of a cluster's webhook.
type webhookStatus struct {
	Cluster string     `json:"cluster"`
	Last    *time.Time `json:"last,omitempty"` // heartbeat; absent if there was none lately
	Silent  bool       `json:"silent"`
	Version string     `json:"version,omitempty"`
	Queue   int        `json:"queue"`   // pod events not yet sent, of all its pods
	Dropped uint64     `json:"dropped"` // since they started
}

// resyncStatus is the last round that was told of.
type resyncStatus struct {
	Last     *time.Time `json:"last,omitempty"` // absent if there was none lately
	Silent   bool       `json:"silent"`
	RunID    string     `json:"runId,omitempty"`
	Round    int        `json:"round,omitempty"`
	Found    int        `json:"found"`
	Repaired int        `json:"repaired"`
	Held     int        `json:"held"`
	Failed   int        `json:"failed"`
	Unread   int        `json:"unread"`
}

// lastChangeStatus is what changed last.
type lastChangeStatus struct {
	At           time.Time `json:"at"`
	TargetGroup  string    `json:"targetGroup"`
	Registered   int       `json:"registered"`
	Deregistered int       `json:"deregistered"`
	Failed       int       `json:"failed"`
	WouldDo      bool      `json:"wouldDo,omitempty"`
	Why          string    `json:"why"`
	Rule         string    `json:"rule"`
}

// past is what the audit log tells.
type past struct {
	log      auditLog
	now      time.Time
	webhooks []webhookStatus
	resync   *resyncStatus
	last     *lastChangeStatus
	notes    []string
	missed   []error // of a log that has more than is read at once
}

// read asks for heartbeats, rounds and changes, each with one bounded query.
func (p *past) read(ctx context.Context, expected []string) error {
	ctx, cancel := context.WithTimeout(ctx, pastTimeout)
	defer cancel()
	// One that just started is heard as well: its first heartbeat comes a minute later.
	beats, err := p.events(ctx, heartbeatsBack, 0, podevent.DetailTypeWebhookStarted, podevent.DetailTypeWebhookHeartbeat)
	if err != nil {
		return err
	}
	p.heard(beats, expected)
	rounds, err := p.events(ctx, lastRound, 1, targetevent.DetailTypeResyncCompleted)
	if err != nil {
		return err
	}
	p.completed(rounds)
	changes, err := p.events(ctx, defaultSince, changesRead, targetevent.DetailTypeTargetsChanged)
	if err != nil {
		return err
	}
	p.changed(changes)
	return errors.Join(p.missed...)
}

func (p *past) events(ctx context.Context, back time.Duration, limit int, detailTypes ...string) ([]audit.Event, error) {
	events, incomplete, err := readLog(ctx, p.log, audit.Query{From: p.now.Add(-back), To: p.now.Add(clockSkew), DetailTypes: detailTypes, Limit: limit})
	if incomplete != nil { // the newest are there
		p.notes = append(p.notes, incomplete.Error())
		p.missed = append(p.missed, incomplete)
	}
	return events, err
}

func (p *past) unreadable(e audit.Event, err error) {
	p.notes = append(p.notes, fmt.Sprintf("event %s of the audit log can't be read: %v", e.ID, err))
}

// heard sums up heartbeats, by cluster; expected clusters are silent if they sent
// none.
func (p *past) heard(events []audit.Event, expected []string) {
	of := map[string]*webhookStatus{}
	for _, name := range expected {
		of[name] = &webhookStatus{Cluster: name, Silent: true}
	}
	newest := map[[2]string]podevent.WebhookHeartbeat{} // by cluster and instance
	for _, e := range events {
		var beat podevent.WebhookHeartbeat
		if err := json.Unmarshal(e.Detail, &beat); err != nil {
			p.unreadable(e, err)
			continue
		}
		newest[[2]string{beat.Cluster, beat.Webhook.Instance}] = beat
	}
	for at, beat := range newest {
		s := of[at[0]]
		if s == nil {
			s = &webhookStatus{Cluster: at[0]}
			of[at[0]] = s
		}
		if s.Last == nil || beat.At.After(*s.Last) {
			s.Last, s.Version = &beat.At, beat.Webhook.Version
		}
		s.Silent = p.now.Sub(*s.Last) > webhookSilent
		if p.now.Sub(beat.At) <= webhookSilent { // of those that live
			s.Queue += beat.QueueDepth
			s.Dropped += beat.Dropped
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		p.webhooks = append(p.webhooks, *of[name])
	}
}

func (p *past) completed(events []audit.Event) {
	p.resync = &resyncStatus{Silent: true}
	for _, e := range events { // the newest is the last
		r, err := targetevent.Decode[targetevent.ResyncCompleted](e.Detail)
		if err != nil {
			p.unreadable(e, err)
			continue
		}
		p.resync = &resyncStatus{Last: &r.At, Silent: p.now.Sub(r.At) > resyncSilent, RunID: r.RunID, Round: r.Round,
			Found: r.Found, Repaired: r.Repaired, Held: r.Held, Failed: r.Failed, Unread: r.Unread}
	}
}

// changed takes the newest change that was made, or else the newest that would
// have been.
func (p *past) changed(events []audit.Event) {
	for _, e := range slices.Backward(events) {
		c, err := targetevent.Decode[targetevent.TargetsChanged](e.Detail)
		if err != nil {
			p.unreadable(e, err)
			continue
		}
		if c.WouldDo && p.last != nil {
			continue
		}
		p.last = &lastChangeStatus{At: c.At, TargetGroup: c.TargetGroup, Registered: len(c.Registered), Deregistered: len(c.Deregistered),
			Failed: len(c.Failed), WouldDo: c.WouldDo, Rule: ruleName(c.Rule), Why: whyChanged(c)}
		if !c.WouldDo {
			return
		}
	}
}

// whyChanged is the cause in words, of the first key for all.
func whyChanged(c targetevent.TargetsChanged) string {
	var first targetevent.Key
	for _, ks := range [][]targetevent.Key{c.Registered, c.Deregistered} {
		if len(ks) > 0 {
			first = ks[0]
			break
		}
	}
	why := inWords(c.Cause, first)
	if first.Pod != "" {
		why += ", pod " + first.Pod
	}
	return why
}

// clusters are those that enabled rules name, and those that were read: each has
// to have a webhook that speaks.
func clusters(bs []binding.Binding, read []string) []string {
	names := slices.Clone(read)
	for i := range bs {
		if bs[i].Enabled {
			names = append(names, bs[i].Pattern.Selection().Clusters...)
		}
	}
	return unique(names)
}
