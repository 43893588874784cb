package functions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/elbridge/elbridge/local/proc"
)

const (
	startLimit  = 10 * time.Second     // an emulator that does not listen by then is broken
	startPoll   = 2 * time.Millisecond // how often it is asked until then
	startTries  = 3                    // with other ports each time
	endLimit    = 5 * time.Second      // for a killed process to be gone
	answerSlack = 15 * time.Second     // past the function's time-out: Init may take 10 s of it
	invokePath  = "/2015-03-31/functions/function/invocations"
)

// An instance is one execution environment: it runs one invocation at a time.
type instance interface {
	invoke(ctx context.Context, requestID string, payload []byte) (outcome, error)
	freeze() error
	thaw() error
	healthy() bool // still there, so worth thawing
	// kill ends the function in the middle of an invocation, whose caller learns
	// that it exited; false where none runs. Any goroutine may call it.
	kill() bool
	end()
}

// emulated is an emulator process and, from the first invocation on, its child,
// the function. Its methods are called by one goroutine at a time, but for kill.
type emulated struct {
	cmd      *exec.Cmd
	exited   chan struct{} // closed once the emulator has been waited for
	output   chan struct{} // closed once all output has been read
	function process       // zero before the first invocation
	url      string
	client   *http.Client
	release  func() // gives back ports and files
	log      *slog.Logger
}

// launcher starts instances of functions.
type launcher struct {
	cfg     Config
	starter *proc.Starter
	ports   *ports
}

func (l *launcher) launch(ctx context.Context, fn Function, id string) (instance, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var errs []error
	for range startTries {
		e, err := l.try(ctx, fn, id)
		if err == nil {
			return e, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("starting an instance of %s: %w", fn.Name, errors.Join(errs...))
}

func (l *launcher) try(ctx context.Context, fn Function, id string) (*emulated, error) {
	p, err := l.prepare(fn, id)
	if err != nil {
		return nil, err
	}
	e, err := l.run(fn, id, p)
	if err != nil {
		p.release()
		return nil, err
	}
	if err := e.awaitListening(ctx, p.invokeAddr); err != nil {
		e.end()
		return nil, err
	}
	return e, nil
}

// A place is what an instance occupies outside its processes.
type place struct {
	ports                   *ports
	invokeAddr, runtimeAddr string // for the emulator to listen on
	tmp                     string // the function's HOME and TMPDIR
	log                     *os.File
}

func (l *launcher) prepare(fn Function, id string) (*place, error) {
	p := &place{ports: l.ports, tmp: filepath.Join(l.cfg.Dir, "tmp", id)}
	err := func() (err error) {
		if p.invokeAddr, err = l.ports.take(); err != nil {
			return err
		}
		if p.runtimeAddr, err = l.ports.take(); err != nil {
			return err
		}
		if err = os.MkdirAll(p.tmp, 0o700); err != nil {
			return fmt.Errorf("temporary directory: %w", err)
		}
		p.log, err = openLog(filepath.Join(l.cfg.Dir, "logs", fn.Name, id+".log"))
		return err
	}()
	if err != nil {
		p.release()
		return nil, err
	}
	return p, nil
}

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("log directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return f, nil
}

func (p *place) release() {
	p.ports.give(p.invokeAddr)
	p.ports.give(p.runtimeAddr)
	if p.log != nil {
		_ = p.log.Close() // a second time after the output's end: no harm
	}
	_ = os.RemoveAll(p.tmp)
}

// run starts the emulator; the function itself starts with the first invocation.
func (l *launcher) run(fn Function, id string, p *place) (*emulated, error) {
	output, stdout, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("output pipe: %w", err)
	}
	cmd := exec.Command(l.cfg.RIE, //nolint:noctx // an instance outlives the invocation that starts it
		"--runtime-interface-emulator-address", p.invokeAddr,
		"--runtime-api-address", p.runtimeAddr,
		"--log-level", "warn",
		fn.Bootstrap)
	cmd.Dir = filepath.Dir(fn.Bootstrap)
	cmd.Env = environment(l.cfg, fn, id, p.tmp)
	cmd.Stdout, cmd.Stderr = stdout, p.log
	// If this process dies the emulator gets SIGTERM, and kills its function, frozen or not.
	err = l.starter.Start(cmd, syscall.SIGTERM)
	_ = stdout.Close() // ours; the child has its own
	if err != nil {
		return nil, errors.Join(fmt.Errorf("running %s: %w", l.cfg.RIE, err), output.Close())
	}
	e := &emulated{
		cmd:     cmd,
		exited:  make(chan struct{}),
		output:  make(chan struct{}),
		url:     "http://" + p.invokeAddr + invokePath,
		client:  newClient(),
		release: p.release,
		log:     l.cfg.Log,
	}
	go func() { // ends with the emulator
		_ = cmd.Wait() // that it ended matters, not how
		close(e.exited)
	}()
	go func() { // ends when no process holds the other end
		defer close(e.output)
		copyLines(output, p.log, ofFunction, l.hand(fn.Name, id))
		_ = output.Close() // only read from
	}()
	return e, nil
}

func (l *launcher) hand(function, id string) func([]byte) {
	if l.cfg.OnLine == nil {
		return nil
	}
	return func(text []byte) { l.cfg.OnLine(Line{Function: function, Instance: id, Text: text}) }
}

// newClient connects to one emulator: one connection, kept between invocations.
func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{Proxy: nil, MaxIdleConnsPerHost: 1, DisableCompression: true}}
}

func (e *emulated) awaitListening(ctx context.Context, addr string) error {
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for {
		if listening(ctx, addr) {
			return nil
		}
		select {
		case <-tick.C:
		case <-e.exited:
			return errors.New("the emulator ended before it listened: see the instance's log")
		case <-ctx.Done():
			return fmt.Errorf("waiting for the emulator to listen on %s: %w", addr, ctx.Err())
		}
	}
}

// invoke runs one invocation. The emulator keeps the function's time-out; ctx
// may end the wait earlier, and the instance is of no use then.
func (e *emulated) invoke(ctx context.Context, requestID string, payload []byte) (outcome, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(payload))
	if err != nil {
		return outcome{spent: true}, fmt.Errorf("request to the emulator: %w", err)
	}
	req.Header.Set("X-Amzn-Requestid", requestID)
	resp, err := e.client.Do(req)
	if err != nil {
		return outcome{spent: true}, fmt.Errorf("request to the emulator: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // read to its end, or of no use
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxSyncPayload+1))
	if err != nil {
		return outcome{spent: true}, fmt.Errorf("answer of the emulator: %w", err)
	}
	return judge(requestID, resp.StatusCode, body)
}

// freeze stops the function where it is, not the emulator.
func (e *emulated) freeze() error {
	if e.function.pid == 0 {
		kids := children(e.cmd.Process.Pid)
		if len(kids) != 1 {
			return fmt.Errorf("freezing: want one function under emulator %d, found %d", e.cmd.Process.Pid, len(kids))
		}
		e.function = kids[0]
	}
	return e.function.signal(syscall.SIGSTOP)
}

func (e *emulated) thaw() error {
	if e.function.pid == 0 {
		return nil // not started yet: the first invocation starts it
	}
	return e.function.signal(syscall.SIGCONT)
}

func (e *emulated) healthy() bool {
	select {
	case <-e.exited:
		return false
	default:
		return e.function.pid == 0 || e.function.alive()
	}
}

// kill leaves the emulator, which tells of the exit.
func (e *emulated) kill() bool {
	select {
	case <-e.exited:
		return false
	default:
	}
	killed := false
	for _, kid := range children(e.cmd.Process.Pid) {
		killed = kid.signal(syscall.SIGKILL) == nil || killed
	}
	return killed
}

// end kills function and emulator, waits for both and gives everything back.
// The emulator is stopped first, so that it cannot start another function.
func (e *emulated) end() {
	select {
	case <-e.exited:
	default:
		pid := e.cmd.Process.Pid
		_ = syscall.Kill(pid, syscall.SIGSTOP) // not yet waited for, so the number is still its own
		for _, kid := range children(pid) {
			_ = kid.signal(syscall.SIGKILL)
		}
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
	if e.function.pid != 0 {
		_ = e.function.signal(syscall.SIGKILL) // an emulator that died by itself leaves it behind
	}
	limit := time.NewTimer(endLimit)
	defer limit.Stop()
	for _, done := range []chan struct{}{e.exited, e.output} {
		select {
		case <-done:
		case <-limit.C:
			e.log.Warn("a killed instance did not end", "pid", e.cmd.Process.Pid, "waited", endLimit)
			return
		}
	}
	e.client.CloseIdleConnections()
	e.release()
}
