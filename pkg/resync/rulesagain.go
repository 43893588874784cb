package resync

import (
	"context"
	"fmt"
	"time"
)

// ruleReading is the last reading of the rules within a round.
type ruleReading struct {
	turn  chan struct{} // holds one entry while the rules are being read
	began time.Time
	moved string // a rule that is not what the round began with
}

// rulesStand reads the rules again before removals: a round waits for hints and
// for its share of the rates, and a pod that moved to a rule which is newer than
// the round's reading is claimed by it (I3). Its error says that a rule moved, or
// that they were not read: nothing is removed, and the next round begins with what
// there is then. A reading serves every comparison that asked before it began.
func (r *Resync) rulesStand(ctx context.Context, rd *round) error {
	asked := r.Now()
	turn := rd.rulesTurn()
	select { // no mutex: a reading takes as long as a call does
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if rd.again.moved == "" && !rd.again.began.After(asked) {
		rd.again.began = r.Now()
		fresh, err := r.rules.Fresh(ctx)
		if err != nil {
			rd.again.began = time.Time{}
			return fmt.Errorf("the rules were not read again, so nothing is removed: %w", err)
		}
		if changed := changedRules(rd.snapshot, fresh); len(changed) > 0 {
			rd.again.moved = changed[0].rule
		}
	}
	if rd.again.moved != "" {
		return fmt.Errorf("rule %s changed since this round began: removals wait for the next one", rd.again.moved)
	}
	return nil
}

func (rd *round) rulesTurn() chan struct{} {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	if rd.again.turn == nil {
		rd.again.turn = make(chan struct{}, 1)
	}
	return rd.again.turn
}
