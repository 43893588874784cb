package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/functions"
)

// Way is how target groups learn of pods.
type Way string

// The ways. Either one alone must bring every group right in the end.
const (
	WayEvents Way = "events" // resync is not scheduled
	WayResync Way = "resync" // the registrar is dead: nobody reads its queue
	WayBoth   Way = "both"
)

// Ways lists them all.
func Ways() []Way { return []Way{WayEvents, WayResync, WayBoth} }

// ErrNoResync is returned for a way that needs resync where it was not built.
var ErrNoResync = errors.New("resync is not built")

func (c *Config) resyncBootstrap() string { return filepath.Join(c.Binaries, Resync, "bootstrap") }

func (c *Config) hasResync() bool { return HasResync(c.Binaries) }

// HasResync tells whether resync was built into a folder of binaries.
func HasResync(binaries string) bool {
	_, err := os.Stat((&Config{Binaries: binaries}).resyncBootstrap())
	return err == nil
}

func (c *Config) checkWay() error {
	switch {
	case c.Way != WayEvents && c.Way != WayResync && c.Way != WayBoth:
		return fmt.Errorf("way %q: want one of %v", c.Way, Ways())
	case c.Way == WayResync && !c.hasResync():
		return fmt.Errorf("way %s: %w: want %s (`make build-local`)", c.Way, ErrNoResync, c.resyncBootstrap())
	}
	return nil
}

// StartRegistrar feeds the registrar from its queue, as an event source mapping
// does.
func (s *Stack) StartRegistrar() {
	ctx, cancel := context.WithCancel(s.run)
	ended := make(chan struct{})
	s.Pump = &functions.Pump{SQS: s.AWS.SQS, Invoker: s.Runner, QueueURL: s.AWS.QueueURL, Function: Registrar, Timeout: registrarTimeout,
		MaxConcurrency: registrarInstances, Log: s.Config.Log}
	pump := s.Pump
	s.goPart("the queue pump", func() error {
		defer close(ended)
		return pump.Run(ctx)
	})
	s.stopPump = func() {
		cancel()
		s.Runner.Kill(Registrar)
		<-ended
	}
}

// StopRegistrar has the registrar dead until StartRegistrar: what it is doing is
// killed, and its queue is not read any more. What waits in the queue stays
// there. A registrar that is not started stays so.
func (s *Stack) StopRegistrar() {
	if s.stopPump == nil {
		return
	}
	s.stopPump()
	s.stopPump = nil
}

// LoseHints has the bus lose every event on its way to the registrar, while
// whoever puts one is told that it was taken, until the returned function is
// called.
func (s *Stack) LoseHints() (again func(), err error) { return s.loseDeliveries(QueueARN) }

// LoseEvents does that with the events of all rules.
func (s *Stack) LoseEvents() (again func(), err error) { return s.loseDeliveries("") }

func (s *Stack) loseDeliveries(target string) (again func(), err error) {
	f := core.Fault{Service: "events", Operation: "Deliver", Kind: core.FaultLostRequest}
	if target != "" {
		f.Contains = fmt.Sprintf(`"target":%q`, target)
	}
	faults := s.Cloud.Server.Faults
	id, err := faults.Add(f)
	return func() { faults.Remove(id) }, err
}
