package events

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
)

// Schedules returns the schedule expressions (rate or cron) of the enabled
// rules of all accounts and regions, by rule ARN. Somebody else keeps the time
// and calls Fire.
func (s *Service) Schedules() map[string]string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := map[string]string{}
	for _, b := range s.buses {
		for _, r := range b.rules {
			if r.ScheduleExpression != "" && r.enabled() {
				out[r.ARN] = r.ScheduleExpression
			}
		}
	}
	return out
}

// Fire delivers the scheduled event of a rule to its targets. A disabled rule
// does nothing.
func (s *Service) Fire(ruleARN string, at time.Time) error {
	s.mu.Lock()
	r := s.ruleByARN(ruleARN)
	s.mu.Unlock()
	if r == nil || r.ScheduleExpression == "" {
		return fmt.Errorf("rule %q: there is no rule with a schedule of that ARN", ruleARN)
	}
	if !r.enabled() {
		return nil
	}
	scope := scopeOf(ruleARN)
	env := envelope{Version: "0", ID: core.NewID(), DetailType: "Scheduled Event", Source: "aws.events", Account: scope.Account,
		Time: at.UTC().Format("2006-01-02T15:04:05Z"), Region: scope.Region, Resources: []string{ruleARN}, Detail: json.RawMessage("{}")}
	text, err := env.encode()
	if err != nil {
		return fmt.Errorf("rule %s: scheduled event: %w", ruleARN, err)
	}
	s.schedule(r, busID{scope, defaultBus}, env, text, s.server.Clock.Now())
	return nil
}

// RouteControl adds to the control API:
//
//	GET  /_local/events                      {"delay": …, "pending": …}
//	PUT  /_local/events/delay                {"delay": "80ms"}
//	GET  /_local/events/schedules            {rule ARN: expression}
//	POST /_local/events/fire                 {"rule": ARN}
func (s *Service) RouteControl(server *core.Server) {
	server.HandleLocal("GET /_local/events", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		core.WriteJSON(w, http.StatusOK, map[string]any{"delay": core.Duration(s.delay.Load()), "pending": s.Pending()})
	}))
	server.HandleLocal("PUT /_local/events/delay", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Delay core.Duration }
		if readControl(w, r, &in) {
			s.SetDelay(time.Duration(in.Delay))
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	server.HandleLocal("GET /_local/events/schedules", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		core.WriteJSON(w, http.StatusOK, s.Schedules())
	}))
	server.HandleLocal("POST /_local/events/fire", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Rule string }
		if !readControl(w, r, &in) {
			return
		}
		if err := s.Fire(in.Rule, s.server.Clock.Now()); err != nil {
			core.WriteError(w, http.StatusNotFound, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
}

// readControl decodes a control request, or answers why it cannot.
func readControl(w http.ResponseWriter, r *http.Request, v any) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
	if err == nil {
		err = core.DecodeStrict(body, v)
	}
	if err != nil {
		core.WriteError(w, http.StatusBadRequest, err)
	}
	return err == nil
}
