package elb

import (
	"io"
	"net/http"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
)

// Propagation is how long traffic goes on as if a change had not been made.
type Propagation struct {
	Application core.Duration `json:"application"`
	Network     core.Duration `json:"network"`
}

// RouteControl adds to the control API:
//
//	GET /_local/elb/propagation    a Propagation
//	PUT /_local/elb/propagation    the same; in force from the next change on
func (s *Service) RouteControl(server *core.Server) {
	server.HandleLocal("GET /_local/elb/propagation", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		core.WriteJSON(w, http.StatusOK, Propagation{core.Duration(s.application.Load()), core.Duration(s.network.Load())})
	}))
	server.HandleLocal("PUT /_local/elb/propagation", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := Propagation{core.Duration(s.application.Load()), core.Duration(s.network.Load())} // what is left out stays
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err == nil {
			err = core.DecodeStrict(body, &in)
		}
		if err != nil {
			core.WriteError(w, http.StatusBadRequest, err)
			return
		}
		s.SetPropagation(time.Duration(in.Application), time.Duration(in.Network))
		w.WriteHeader(http.StatusNoContent)
	}))
}
