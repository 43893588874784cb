package functions

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestAsynchronousRetries_P086(t *testing.T) {
	bad := outcome{failed: true, errorType: "errorString"}
	tests := map[string]struct {
		fn      Function
		answers string // one letter an invocation: o ok, e error, l lost; the last one repeats
		sleeps  string
		dropped string // "TRIES REASON" or ""
	}{
		"works at once":       {answers: "o"},
		"works after one":     {answers: "eo", sleeps: "1m0s"},
		"two retries":         {answers: "e", sleeps: "1m0s 2m0s", dropped: "3 RetriesExhausted"},
		"one retry":           {fn: Function{AsyncRetries: 1}, answers: "e", sleeps: "1m0s", dropped: "2 RetriesExhausted"},
		"no retries":          {fn: Function{AsyncRetries: NoRetries}, answers: "e", dropped: "1 RetriesExhausted"},
		"too old to retry":    {fn: Function{AsyncMaxAge: 2 * time.Minute}, answers: "e", sleeps: "1m0s", dropped: "2 EventAgeExceeded"},
		"broken ones double":  {answers: "lllllo", sleeps: "1s 2s 4s 8s 16s"},
		"errors start afresh": {answers: "llelo", sleeps: "1s 2s 1m0s 1s"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := &fleet{answer: func(n int, _ []byte) (outcome, error) {
				switch tt.answers[min(n, len(tt.answers))-1] {
				case 'e':
					return bad, nil
				case 'l':
					return outcome{spent: true}, errors.New("connection refused")
				}
				return outcome{}, nil
			}}
			c := &clock{now: time.Unix(1_800_000_000, 0)}
			drops := make(chan Dropped, 1)
			r := faked(t, f, Config{Now: c.Now, Sleep: c.sleep, OnDropped: func(d Dropped) { drops <- d }}, tt.fn)
			id, err := r.InvokeAsync(t.Context(), "f", []byte(`{"n":1}`))
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "the event is done", func() bool { return r.queued.Load() == 0 })
			got := ""
			if tt.dropped != "" {
				d := <-drops
				got = fmt.Sprintf("%d %s", d.Tries, d.Reason)
				if d.RequestID != id || d.Function != "f" || string(d.Payload) != `{"n":1}` || d.Last.ErrorType != "errorString" {
					t.Errorf("dropped %+v", d)
				}
			}
			if got != tt.dropped {
				t.Errorf("dropped %q, want %q", got, tt.dropped)
			}
			if got := strings.Trim(fmt.Sprint(c.sleeps), "[]"); got != tt.sleeps {
				t.Errorf("waited %s, want %s", got, tt.sleeps)
			}
		})
	}
}
