package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/elbridge/elbridge/local/cloud/eks"
)

// Ready is what a fleet's process says when it serves.
type Ready struct {
	API     string  `json:"api"` // https
	CA      []byte  `json:"ca"`  // PEM
	AWS     string  `json:"aws"`
	Control string  `json:"control"`
	PodSize float64 `json:"podSize"` // bytes of a pod's protobuf, on average
}

// Counts are what a fleet was asked for so far.
type Counts struct {
	Lists, Pages, Watches, Gets, Events int64
	BytesIn, BytesOut                   int64
	AWS                                 map[string]int // calls by operation
	Refused                             int            // calls of AWS that got an error
}

// Serve makes a fleet, tells of it on out as one line of JSON, and serves it until
// ctx ends.
func Serve(ctx context.Context, spec Spec, out io.Writer) error {
	if err := spec.check(); err != nil {
		return err
	}
	st, err := newStore(spec)
	if err != nil {
		return err
	}
	f := &process{spec: spec, api: newAPI(st, &Stats{}), rate: make(chan float64)}
	server, ca, err := f.serveAPI(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	f.account, err = newAccount(ctx, spec, eks.Cluster{Name: ClusterName, Account: Account, Region: Region, Endpoint: server.URL, CA: ca})
	if err != nil {
		return err
	}
	awsListener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	controlListener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	control := &http.Server{Handler: f.control(), ReadHeaderTimeout: 10 * time.Second}
	defer control.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := control.Serve(controlListener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error { <-ctx.Done(); return control.Close() })
	g.Go(func() error { return f.account.cloud.Serve(ctx, awsListener) })
	g.Go(func() error { f.change(ctx); return nil })
	var size int
	for _, p := range st.pods {
		size += len(p)
	}
	line, err := json.Marshal(Ready{API: server.URL, CA: ca, AWS: "http://" + awsListener.Addr().String(), Control: "http://" + controlListener.Addr().String(), PodSize: float64(size) / float64(spec.Pods)})
	if err == nil {
		_, err = fmt.Fprintln(out, string(line))
	}
	if err != nil {
		return err
	}
	return g.Wait()
}

type process struct {
	spec    Spec
	api     *api
	account *account
	rate    chan float64
}

// counted counts the bytes of a connection.
type counted struct {
	net.Conn
	stats *Stats
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.stats.BytesIn.Add(int64(n))
	return n, err
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.stats.BytesOut.Add(int64(n))
	return n, err
}

type counting struct {
	net.Listener
	stats *Stats
}

func (l counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return counted{c, l.stats}, nil
}

// control is how the bench speaks with the fleet: what is not on the wire of
// Kubernetes or AWS.
func (f *process) control() http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(v) // a client that went away needs none
	}
	mux.HandleFunc("GET /counts", func(w http.ResponseWriter, _ *http.Request) { answer(w, f.counts(), nil) })
	mux.HandleFunc("POST /compression", func(w http.ResponseWriter, r *http.Request) {
		on, err := strconv.ParseBool(r.FormValue("on"))
		f.api.noZip.Store(!on)
		answer(w, on, err)
	})
	mux.HandleFunc("POST /changes", func(w http.ResponseWriter, r *http.Request) {
		perSecond, err := strconv.ParseFloat(r.FormValue("per-second"), 64)
		if err == nil && (perSecond < 0 || perSecond > 10_000) {
			err = errors.New("per-second: want 0 to 10000")
		}
		if err == nil {
			select {
			case f.rate <- perSecond:
			case <-r.Context().Done():
				err = r.Context().Err()
			}
		}
		answer(w, perSecond, err)
	})
	mux.HandleFunc("POST /take-out", func(w http.ResponseWriter, r *http.Request) {
		group, err := strconv.Atoi(r.FormValue("group"))
		if err != nil || group < 0 || group >= Groups {
			answer(w, nil, fmt.Errorf("group: want 0 to %d", Groups-1))
			return
		}
		target, err := f.account.takeOut(r.Context(), group, f.spec)
		answer(w, target, err)
	})
	return mux
}

func (f *process) counts() Counts {
	s := f.api.stats
	c := Counts{Lists: s.Lists.Load(), Pages: s.Pages.Load(), Watches: s.Watches.Load(), Gets: s.Gets.Load(), Events: s.Events.Load(),
		BytesIn: s.BytesIn.Load(), BytesOut: s.BytesOut.Load(), AWS: map[string]int{}}
	for _, r := range f.account.cloud.Server.Recorder.Since(0) {
		c.AWS[r.Operation]++
		if r.Code != "" {
			c.Refused++
		}
	}
	return c
}

// change changes pods at the rate that was asked for last, until ctx ends.
func (f *process) change(ctx context.Context) {
	r := rand.New(rand.NewPCG(1, 2))
	never := make(<-chan time.Time)
	tick, due := never, (*time.Ticker)(nil)
	for {
		select {
		case <-ctx.Done():
			return
		case perSecond := <-f.rate:
			if due != nil {
				due.Stop()
			}
			if tick = never; perSecond > 0 {
				due = time.NewTicker(time.Duration(float64(time.Second) / perSecond))
				tick = due.C
			}
		case <-tick:
			if err := f.api.touch(r.IntN(f.spec.Pods)); err != nil {
				log.Printf("fleet: %v", err)
				return
			}
		}
	}
}
