package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// instance is one instance of a function, as far as Lambda's runtime API goes: it
// gets one event and has until the end of the bench to work on it. The emulator
// that the stack uses would be one process more between us and what is measured.
type instance struct {
	cmd   *exec.Cmd
	api   *http.Server
	lines chan []byte // what it prints; closed at its end
	log   *os.File    // the same
}

// ends is how long the function has to end after SIGTERM.
const ends = 5 * time.Second

// invoke starts a function and gives it an event. place is called with its process
// id as soon as there is one.
func invoke(ctx context.Context, bootstrap string, env []string, deadline time.Duration, place func(pid int) error) (*instance, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	in := &instance{lines: make(chan []byte, 1024)}
	in.api = &http.Server{Handler: in.runtime(time.Now().Add(deadline)), ReadHeaderTimeout: time.Minute}
	go func() { _ = in.api.Serve(l) }() // ends with stop
	in.cmd = exec.CommandContext(ctx, bootstrap)
	in.cmd.Env = append(env, "AWS_LAMBDA_RUNTIME_API="+l.Addr().String(), "PATH="+os.Getenv("PATH"), "TZ=UTC")
	in.cmd.Cancel = func() error { return in.cmd.Process.Signal(syscall.SIGTERM) }
	in.cmd.WaitDelay = ends
	in.cmd.Stderr = os.Stderr
	out, err := in.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if in.log, err = os.CreateTemp("", "elbridge-bench-function-*.log"); err != nil {
		return nil, err
	}
	if err := in.cmd.Start(); err != nil {
		_ = in.api.Close()
		return nil, err
	}
	go in.read(out)
	if place != nil {
		if err := place(in.cmd.Process.Pid); err != nil {
			in.stop()
			return nil, err
		}
	}
	return in, nil
}

func (in *instance) read(out io.Reader) {
	defer close(in.lines)
	defer in.log.Close()
	for s := bufio.NewReader(out); ; {
		line, err := s.ReadBytes('\n')
		if err != nil {
			return
		}
		_, _ = in.log.Write(line)
		select {
		case in.lines <- line:
		default: // nobody reads; what is measured must not wait for us
		}
	}
}

func (in *instance) runtime(deadline time.Time) http.Handler {
	var given atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		if given.Swap(true) {
			<-r.Context().Done() // there is no other event
			return
		}
		h := w.Header()
		h.Set("Lambda-Runtime-Aws-Request-Id", "bench")
		h.Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(deadline.UnixMilli()))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-west-1:000000000000:function:elbridge-resync")
		_, _ = io.WriteString(w, `{}`)
	})
	mux.HandleFunc("POST /2018-06-01/runtime/", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/error") {
			_, _ = io.Copy(os.Stderr, r.Body)
		}
		w.WriteHeader(http.StatusAccepted)
	})
	return mux
}

func (in *instance) pid() int { return in.cmd.Process.Pid }

// stop ends the function.
func (in *instance) stop() {
	_ = in.cmd.Process.Signal(syscall.SIGTERM)
	done := time.AfterFunc(ends, func() { _ = in.cmd.Process.Kill() })
	_ = in.cmd.Wait()
	done.Stop()
	_ = in.api.Close()
}
