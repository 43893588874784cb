package core

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// routeControl sets up the part of the control API that the core answers:
//
//	GET    /_local/health
//	GET    /_local/calls?since=N&service=S&operation=O&follow=true   records as a list; with follow one a line, until the client leaves
//	GET    /_local/faults
//	POST   /_local/faults        one Fault, or a list of them
//	DELETE /_local/faults        all
//	DELETE /_local/faults/{id}
//
// It is not signed: it is there for whoever runs the stack.
func (s *Server) routeControl() {
	s.local.HandleFunc("GET /_local/health", func(w http.ResponseWriter, _ *http.Request) { WriteJSON(w, http.StatusOK, map[string]bool{"ok": true}) })
	s.local.HandleFunc("GET /_local/calls", s.getCalls)
	s.local.HandleFunc("GET /_local/faults", func(w http.ResponseWriter, _ *http.Request) { WriteJSON(w, http.StatusOK, s.Faults.List()) })
	s.local.HandleFunc("POST /_local/faults", s.postFaults)
	s.local.HandleFunc("DELETE /_local/faults", func(w http.ResponseWriter, _ *http.Request) {
		s.Faults.Clear()
		w.WriteHeader(http.StatusNoContent)
	})
	s.local.HandleFunc("DELETE /_local/faults/{id}", func(w http.ResponseWriter, r *http.Request) {
		if !s.Faults.Remove(r.PathValue("id")) {
			WriteError(w, http.StatusNotFound, fmt.Errorf("fault %q: there is none of that id", r.PathValue("id")))
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

func (s *Server) getCalls(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	since, err := strconv.ParseInt("0"+q.Get("since"), 10, 64)
	if err != nil {
		WriteError(w, http.StatusBadRequest, fmt.Errorf("since %q: want the sequence number of a record", q.Get("since")))
		return
	}
	wanted := func(rec Record) bool {
		return (q.Get("service") == "" || q.Get("service") == rec.Service) && (q.Get("operation") == "" || q.Get("operation") == rec.Operation)
	}
	if q.Get("follow") == "true" {
		s.followCalls(w, r, since, wanted)
		return
	}
	out := []Record{}
	for _, rec := range s.Recorder.Since(since) {
		if wanted(rec) {
			out = append(out, rec)
		}
	}
	WriteJSON(w, http.StatusOK, out)
}

func (s *Server) followCalls(w http.ResponseWriter, r *http.Request, since int64, wanted func(Record) bool) {
	past, coming := s.Recorder.Watch(r.Context(), since)
	w.Header().Set("Content-Type", "application/x-ndjson")
	control, enc := http.NewResponseController(w), json.NewEncoder(w)
	send := func(rec Record) bool {
		return !wanted(rec) || enc.Encode(rec) == nil && control.Flush() == nil
	}
	if control.Flush() != nil {
		return
	}
	for _, rec := range past {
		if !send(rec) {
			return
		}
	}
	for rec := range coming {
		if !send(rec) {
			return
		}
	}
}

func (s *Server) postFaults(w http.ResponseWriter, r *http.Request) {
	body, err := readSmall(r.Body)
	if err != nil {
		WriteError(w, http.StatusBadRequest, err)
		return
	}
	var all []Fault
	if strings.HasPrefix(strings.TrimSpace(string(body)), "[") {
		err = DecodeStrict(body, &all)
	} else {
		all = make([]Fault, 1)
		err = DecodeStrict(body, &all[0])
	}
	for i := 0; err == nil && i < len(all); i++ {
		err = all[i].Validate()
	}
	if err != nil {
		WriteError(w, http.StatusBadRequest, err)
		return
	}
	ids := make([]string, len(all))
	for i, f := range all {
		if ids[i], err = s.Faults.Add(f); err != nil {
			WriteError(w, http.StatusBadRequest, err)
			return
		}
	}
	WriteJSON(w, http.StatusCreated, map[string][]string{"ids": ids})
}

// WriteJSON answers a control request.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // a client that left needs no answer
}

// WriteError answers a control request that could not be done.
func WriteError(w http.ResponseWriter, status int, err error) {
	WriteJSON(w, status, map[string]string{"error": err.Error()})
}

// DecodeStrict reads a JSON document and refuses fields that v does not have.
func DecodeStrict(body []byte, v any) error {
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	return d.Decode(v)
}
