package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/elbridge/elbridge/local/cluster"
	"github.com/elbridge/elbridge/local/node"
	"github.com/elbridge/elbridge/local/vpc"
)

// patience bounds each wait for a condition; a busy machine may need it.
const patience = time.Minute

// helperVariable makes the test binary be the process of a pod.
const helperVariable = "ELBRIDGE_NODE_TEST_HELPER"

var shared stack

func TestMain(m *testing.M) {
	if os.Getenv(helperVariable) != "" {
		helper()
		return
	}
	code := m.Run()
	shared.stop()
	os.Exit(code)
}

// helper is an HTTP server that shows what it was given: its environment, its
// arguments, and any file by path.
func helper() {
	mux := http.NewServeMux()
	mux.HandleFunc("/env", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(os.Environ()) })
	mux.HandleFunc("/args", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(os.Args[1:]) })
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, r.URL.Query().Get("path")) })
	mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if os.Getenv("DEAF") != "" {
		ctx = context.Background()
	}
	s := &http.Server{Addr: os.Args[1], Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		if err := s.ListenAndServe(); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}()
	fmt.Println("helper listens on", os.Args[1])
	<-ctx.Done()
	_ = s.Shutdown(context.Background())
	fmt.Println("helper was asked to end")
}

// stack is one control plane and one agent for all tests of this package.
type stack struct {
	once    sync.Once
	err     error
	cluster *cluster.Cluster
	kube    *cluster.Client
	core    rest.Interface
	control *node.Client
	cancel  context.CancelFunc
	ended   chan error
	dir     string
}

// up returns the stack, starting it if need be.
func up(t testing.TB) *stack {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	shared.once.Do(func() { shared.err = shared.start() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return &shared
}

func (s *stack) start() error {
	var err error
	if s.dir, err = os.MkdirTemp("", "elbridge-node-"); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.cluster, err = cluster.Start(ctx, cluster.Config{
		Name: "local", Dir: s.dir + "/cluster", Progress: os.Stderr, Audit: true,
		Nodes: cluster.NodeMonitor{GracePeriod: 20 * time.Second, Period: time.Second},
	})
	if err != nil {
		return err
	}
	admin, err := s.cluster.RESTConfig(cluster.Admin)
	if err != nil {
		return err
	}
	if s.kube, err = cluster.NewClient(admin); err != nil {
		return err
	}
	if s.core, err = coreClient(admin); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	nodes := node.DefaultNodes()
	for i := range nodes {
		// A stack that runs beside these tests has the usual ranges.
		nodes[i].PodRange = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 64, byte(101 + i), 0}), 24)
		if nodes[i].REST, err = s.cluster.RESTConfig(cluster.Node(nodes[i].Name)); err != nil {
			return err
		}
	}
	config := node.Config{
		REST: nodes[0].REST, Nodes: nodes, StateDir: s.dir + "/node",
		Images:          map[string]node.Image{"elbridge.local/helper": {Path: self, Env: map[string]string{helperVariable: "1"}}},
		AddressCooldown: time.Hour, LeasePeriod: time.Second, RestartBackoff: 300 * time.Millisecond, VolumePeriod: time.Second,
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	started := make(chan string, 1)
	config.Started = func(control string) { started <- control }
	s.ended = make(chan error, 1)
	go func() { s.ended <- node.Run(ctx, config) }()
	select {
	case control := <-started:
		s.control = node.NewClient(control)
	case err := <-s.ended:
		return fmt.Errorf("agent ended: %w", err)
	case <-time.After(patience):
		return fmt.Errorf("agent did not start within %s", patience)
	}
	return nil
}

func (s *stack) stop() {
	if s.cancel == nil {
		return
	}
	s.cancel()
	if s.control != nil {
		if err := <-s.ended; err != nil {
			fmt.Fprintln(os.Stderr, "the agent ended with", err)
		}
	}
	if s.cluster != nil {
		s.cluster.Stop(context.Background())
	}
	_ = os.RemoveAll(s.dir)
}

func coreClient(config *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c := rest.CopyConfig(config)
	c.GroupVersion, c.APIPath = &v1.SchemeGroupVersion, "/api"
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(c)
}

// namespace makes one for a test and empties it afterwards.
func (s *stack) namespace(t testing.TB) string {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	s.apply(t, "", fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", name))
	t.Cleanup(func() {
		for _, n := range node.DefaultNodes() {
			_ = s.control.Heal(context.Background(), n.Name)
			_ = s.control.PauseWrites(context.Background(), n.Name, false)
		}
		s.rest(t, http.MethodDelete, "/api/v1/namespaces/"+name+"/pods", `{"gracePeriodSeconds":0}`)
	})
	return name
}

// apply applies manifests; NS in them is the namespace.
func (s *stack) apply(t testing.TB, namespace, manifests string) {
	t.Helper()
	if err := s.kube.Apply(t.Context(), []byte(strings.ReplaceAll(manifests, "NS", namespace))); err != nil {
		t.Fatal(err)
	}
}

func (s *stack) rest(t testing.TB, verb, path, body string) {
	t.Helper()
	err := s.kube.REST().Verb(verb).AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(context.Background()).Error()
	if err != nil {
		t.Fatalf("%s %s: %v", verb, path, err)
	}
}

// merge changes an object by a merge patch.
func (s *stack) merge(t testing.TB, path, patch string) {
	t.Helper()
	if err := s.kube.Patch(context.Background(), path, types.MergePatchType, patch); err != nil {
		t.Fatal(err)
	}
}

func podPath(namespace, name string) string {
	return "/api/v1/namespaces/" + namespace + "/pods/" + name
}

func (s *stack) pod(namespace, name string) (*v1.Pod, error) {
	var p v1.Pod
	err := s.kube.Get(context.Background(), podPath(namespace, name), &p)
	return &p, err
}

// awaitPod waits until the pod is as it should be, and returns it.
func (s *stack) awaitPod(t testing.TB, namespace, name, what string, is func(*v1.Pod) bool) *v1.Pod {
	t.Helper()
	var last *v1.Pod
	await(t, fmt.Sprintf("pod %s is %s", name, what), func() error {
		p, err := s.pod(namespace, name)
		if err != nil {
			return err
		}
		last = p
		if !is(p) {
			return fmt.Errorf("status is %s", brief(p))
		}
		return nil
	})
	return last
}

func (s *stack) awaitGone(t testing.TB, namespace, name string) {
	t.Helper()
	await(t, "pod "+name+" is gone", func() error {
		if p, err := s.pod(namespace, name); err == nil {
			return fmt.Errorf("still there: %s", brief(p))
		}
		return nil
	})
}

func ready(p *v1.Pod) bool { return conditionIs(p, v1.PodReady, v1.ConditionTrue) }

func conditionIs(p *v1.Pod, kind v1.PodConditionType, status v1.ConditionStatus) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == kind && c.Status == status })
}

// brief is a pod's status on one line.
func brief(p *v1.Pod) string {
	words := []string{string(p.Status.Phase)}
	if p.Status.PodIP != "" {
		words = append(words, "ip")
	}
	for _, c := range p.Status.Conditions {
		if c.Status == v1.ConditionTrue {
			words = append(words, string(c.Type))
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		switch {
		case c.State.Running != nil:
			words = append(words, c.Name+"=running")
		case c.State.Terminated != nil:
			words = append(words, fmt.Sprintf("%s=ended(%d)", c.Name, c.State.Terminated.ExitCode))
		case c.State.Waiting != nil:
			words = append(words, c.Name+"="+c.State.Waiting.Reason)
		}
	}
	return strings.Join(words, " ")
}

// history follows a namespace's pods and returns what has been seen of one, each
// state on a line, until it is stopped.
func (s *stack) history(t testing.TB, namespace string) func(name string) []string {
	t.Helper()
	var mu sync.Mutex
	seen := map[string][]string{}
	s.follow(t, namespace, func(kind watch.EventType, p *v1.Pod) {
		line := brief(p)
		if p.DeletionTimestamp != nil {
			line = "terminating " + line
		}
		if kind == watch.Deleted {
			line = "deleted"
		}
		mu.Lock()
		defer mu.Unlock()
		if all := seen[p.Name]; len(all) == 0 || all[len(all)-1] != line {
			seen[p.Name] = append(all, line)
		}
	})
	return func(name string) []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen[name])
	}
}

// follow calls see with every change to a namespace's pods, until the test ends.
func (s *stack) follow(t testing.TB, namespace string, see func(watch.EventType, *v1.Pod)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(s.core, "pods", namespace, fields.Everything()), ObjectType: &v1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { see(watch.Added, o.(*v1.Pod)) },
			UpdateFunc: func(_, o any) { see(watch.Modified, o.(*v1.Pod)) },
			DeleteFunc: func(o any) {
				if p, ok := o.(*v1.Pod); ok {
					see(watch.Deleted, p)
				}
			},
		},
	})
	var wg sync.WaitGroup
	wg.Go(func() { controller.RunWithContext(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	if !cache.WaitForCacheSync(ctx.Done(), controller.HasSynced) {
		t.Fatal("the test ended")
	}
}

func await(t testing.TB, what string, ask func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %s until %s: %v", patience, what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// awaitConnected waits until a connection to a loopback address stands.
func awaitConnected(t testing.TB, address string) {
	t.Helper()
	ap := netip.MustParseAddrPort(address)
	ip := ap.Addr().As4()
	want := fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], ap.Port())
	await(t, "there is a connection to "+address, func() error {
		table, err := os.ReadFile("/proc/net/tcp")
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(table)) {
			if f := strings.Fields(line); len(f) > 3 && f[1] == want && f[3] == "01" { // established
				return nil
			}
		}
		return errors.New("none yet")
	})
}

// client dials published addresses, a connection for each request.
func client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: vpc.Dial, DisableKeepAlives: true}}
}

// get asks a published address and returns status and body.
func get(ctx context.Context, url string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := client().Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// mustGet is get for what has to succeed.
func mustGet(t testing.TB, url string) string {
	t.Helper()
	status, body, err := get(t.Context(), url)
	if err != nil || status != http.StatusOK {
		t.Fatalf("GET %s: status %d, %v", url, status, err)
	}
	return body
}

// who asks a built-in server for its name.
func who(t testing.TB, url string) node.Answer {
	t.Helper()
	var a node.Answer
	if err := json.Unmarshal([]byte(mustGet(t, url)), &a); err != nil {
		t.Fatal(err)
	}
	return a
}
