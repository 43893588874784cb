package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// AdmitPath is where the API server sends its reviews to.
const AdmitPath = "/admit"

// shutdownTimeout is for the reviews that are being answered at the end.
const shutdownTimeout = 5 * time.Second

// newServer has time-outs for everything a client may be slow at. HTTP/2 is off:
// the API server speaks HTTP/1.1 to webhooks, and "Connection: close" is how it
// learns to look for another instance.
func newServer(h http.Handler, log *slog.Logger) *http.Server {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:           h,
		Protocols:         protocols,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // port scans and broken handshakes
	}
}

func admitMux(h http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(AdmitPath, h)
	return mux
}

// opsMux serves metrics and the two probes. Ready says that reviews are
// answered. AWS has no part in it (I11), but for one certain answer: a bus that
// does not exist, and that this process never saw, is a wrong setting. Not being
// ready then keeps a rollout from replacing webhooks that have the right one.
func opsMux(metrics http.Handler, draining, noBus *atomic.Bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if draining.Load() {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
			return
		}
		if noBus.Load() {
			http.Error(w, "there is no such event bus: see the log", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

// serve serves until stop.
func serve(s *http.Server, l net.Listener) error {
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving on %s: %w", l.Addr(), err)
	}
	return nil
}

// stop lets the requests that are being answered end.
func stop(ctx context.Context, s *http.Server) {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	if s.Shutdown(ctx) != nil {
		_ = s.Close()
	}
}
