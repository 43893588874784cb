package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/elbridge/elbridge/local/proc"
)

const (
	issuer       = "https://kubernetes.default.svc"
	startTimeout = 2 * time.Minute // for all parts; a few seconds on an idle machine
	stopGrace    = 10 * time.Second
	stopTimeout  = 30 * time.Second // of what a failed start leaves
)

// Cluster is a running control plane. Stop it: nothing else ends it but the death
// of this process.
type Cluster struct {
	Name       string
	Endpoint   string // https://127.0.0.1:port
	CA         []byte // PEM: who vouches for the API server
	Kubeconfig string // path of the administrator's kubeconfig

	config    Config
	starter   *proc.Starter
	authority *authority
	ports     map[Part]*port
	peerPort  *port // etcd's second one
	unlock    func()

	mu      sync.Mutex
	running map[Part]*process
	ended   chan struct{} // closed when a part ended unasked, or by Stop
	err     error         // which part, and why
}

// Start starts a control plane and returns when it is ready: the API server
// serves, the controllers work, the namespace default can take pods. Start-up
// errors quote the end of the log of the part that failed.
func Start(ctx context.Context, config Config) (*Cluster, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	if config.Binaries == nil {
		if config.Binaries, err = EnsureBinaries(ctx, config.Progress); err != nil {
			return nil, err
		}
	}
	c := &Cluster{
		Name:       config.Name,
		Kubeconfig: filepath.Join(config.Dir, "kubeconfig"),
		config:     config,
		starter:    proc.New(),
		ports:      map[Part]*port{},
		running:    map[Part]*process{},
		ended:      make(chan struct{}),
	}
	if err := c.start(ctx); err != nil {
		// also when ctx has ended: what runs must go
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		c.Stop(stopping)
		return nil, fmt.Errorf("cluster %s: %w", config.Name, err)
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	if c.unlock, err = tryLock(c.path("lock")); errors.Is(err, errLocked) {
		return fmt.Errorf("folder %s: another cluster runs in it: stop that one or choose another folder", c.config.Dir)
	} else if err != nil {
		return err
	}
	if err := c.reserve(); err != nil {
		return err
	}
	if err := c.writeFiles(time.Now()); err != nil {
		return err
	}
	for _, part := range []Part{Etcd, APIServer} {
		if err := c.StartPart(ctx, part); err != nil {
			return err
		}
	}
	group, clients := errgroup.WithContext(ctx)
	for _, part := range []Part{ControllerManager, Scheduler} {
		group.Go(func() error { return c.StartPart(clients, part) })
	}
	group.Go(func() error { return c.bootstrap(clients) })
	return group.Wait()
}

// reserve takes a port for each part.
func (c *Cluster) reserve() (err error) {
	for _, part := range allParts {
		number := 0
		if part == APIServer {
			number = c.config.APIServerPort
		}
		p, err := reserve(number)
		if err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
		c.ports[part] = p
	}
	c.Endpoint = c.url(APIServer)
	c.peerPort, err = reserve(0)
	return err
}

// StartPart starts one part and waits until it is ready. A part that runs is
// left alone.
func (c *Cluster) StartPart(ctx context.Context, part Part) error {
	c.mu.Lock()
	p := c.running[part]
	if p == nil || !p.alive() {
		var err error
		p, err = startProcess(c.starter, part, c.config.Binaries[part], c.args(part), environment(), c.logPath(string(part)), c.exited)
		if err != nil {
			c.mu.Unlock()
			return err
		}
		c.running[part] = p
	}
	c.mu.Unlock()
	return c.awaitReady(ctx, p)
}

// StopPart ends one part, gracefully for ten seconds or until ctx ends, then by
// force. Its port stays reserved: until StartPart, connections are refused.
func (c *Cluster) StopPart(ctx context.Context, part Part) {
	c.mu.Lock()
	p := c.running[part]
	delete(c.running, part)
	c.mu.Unlock()
	if p != nil {
		p.stop(ctx, stopGrace)
	}
}

// PausePart freezes a part: it keeps its connections and answers nothing, as when
// the network swallows everything. ResumePart or StopPart end that.
func (c *Cluster) PausePart(part Part) error { return c.signal(part, syscall.SIGSTOP) }

// ResumePart lets a paused part go on.
func (c *Cluster) ResumePart(part Part) error { return c.signal(part, syscall.SIGCONT) }

func (c *Cluster) signal(part Part, s syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.running[part]; p != nil && p.alive() {
		return p.signal(s)
	}
	return fmt.Errorf("cluster %s: %s does not run", c.Name, part)
}

// Stop ends all parts, the last started first. When it returns none of them is
// left; the data stay.
func (c *Cluster) Stop(ctx context.Context) {
	var clients sync.WaitGroup
	for _, part := range []Part{Scheduler, ControllerManager} {
		clients.Go(func() { c.StopPart(ctx, part) })
	}
	clients.Wait()
	c.StopPart(ctx, APIServer)
	c.StopPart(ctx, Etcd)
	c.starter.Close()
	c.end(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.ports {
		p.release()
	}
	c.peerPort.release()
	if c.unlock != nil {
		c.unlock()
		c.unlock = nil
	}
}

// Done is closed when a part has ended that nobody stopped, or after Stop. The
// other parts run on until Stop.
func (c *Cluster) Done() <-chan struct{} { return c.ended }

// Err says, once Done is closed, which part ended and why; nil after Stop.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *Cluster) exited(p *process) {
	if !p.stopping.Load() {
		c.end(fmt.Errorf("cluster %s: %w", c.Name, p.failure()))
	}
}

func (c *Cluster) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.ended:
	default:
		c.err = err
		close(c.ended)
	}
}

// Log returns the path of a part's log.
func (c *Cluster) Log(part Part) string { return c.logPath(string(part)) }

// PID returns the process id of a part, 0 if it does not run.
func (c *Cluster) PID(part Part) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.running[part]; p != nil && p.alive() {
		return p.cmd.Process.Pid
	}
	return 0
}

func (c *Cluster) path(name string) string    { return filepath.Join(c.config.Dir, name) }
func (c *Cluster) pki(name string) string     { return filepath.Join(c.config.Dir, "pki", name) }
func (c *Cluster) logPath(name string) string { return filepath.Join(c.config.LogDir, name+".log") }
func (c *Cluster) url(part Part) string {
	return fmt.Sprintf("https://127.0.0.1:%d", c.ports[part].number)
}

// firstServiceIP is the cluster IP of the Service kubernetes.
func (c *Cluster) firstServiceIP() net.IP {
	return c.config.ServiceCIDR.Masked().Addr().Next().AsSlice()
}

// environment keeps settings of this process, such as proxies, from the parts.
func environment() []string {
	env := []string{"NO_PROXY=*"}
	for _, name := range []string{"HOME", "PATH", "TMPDIR"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}
