package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/elbridge/elbridge/pkg/audit"
	"github.com/elbridge/elbridge/pkg/explain"
)

// lastChangeTimeout bounds the look into the audit log that explain takes aside.
const lastChangeTimeout = 4 * time.Second

// lastChange says what happened last to addresses, and why, as far as the audit
// log says. Without one the answer says so: the rest of it stands.
func lastChange(ctx context.Context, log auditLog, now time.Time, ids []string, about func(entry) bool) string {
	if log == nil {
		return explain.NoCause
	}
	ctx, cancel := context.WithTimeout(ctx, lastChangeTimeout)
	defer cancel()
	var last *entry
	var missed error
	for _, id := range ids {
		events, incomplete, err := readLog(ctx, log, audit.Query{From: now.Add(-defaultSince), To: now.Add(clockSkew), DetailTypes: touching, Address: id})
		if err != nil {
			return fmt.Sprintf("%s; the audit log was not read: %v", explain.NoCause, err)
		}
		missed = cmp.Or(missed, incomplete)
		all, _ := entries(events) // one that can't be read is history's to tell
		for i, e := range all {
			if e.id == id && about(e) && (last == nil || !e.Time.Before(last.Time)) {
				last = &all[i]
			}
		}
	}
	switch {
	case last == nil && missed != nil: // an older one may be there
		return fmt.Sprintf("%s; none among the newest: %v", explain.NoCause, missed)
	case last == nil:
		return fmt.Sprintf("none in the last %.0f h, says the audit log", defaultSince.Hours())
	}
	return fmt.Sprintf("%s %s at %s, group %s, rule %s: %s", last.What, last.Target, stamp(last.Time), groupName(last.TargetGroup), orDash(ruleName(last.Rule)), last.Why)
}
