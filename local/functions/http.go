package functions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// InvokePattern is the route of Lambda's Invoke API, for http.ServeMux.
const InvokePattern = "POST /2015-03-31/functions/{name}/invocations"

// An Invoker is what Runner offers to those who invoke functions.
type Invoker interface {
	Invoke(ctx context.Context, name string, payload []byte) (Result, error)
	InvokeAsync(ctx context.Context, name string, payload []byte) (requestID string, err error)
}

// NewHandler serves Lambda's Invoke API: unmodified clients invoke functions by
// name, partial ARN or ARN. Of the invocation types it knows RequestResponse and
// Event, of qualifiers only $LATEST. It asks for no signature.
func NewHandler(r Invoker) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(InvokePattern, func(w http.ResponseWriter, req *http.Request) {
		if err := serveInvoke(w, req, r); err != nil {
			writeError(w, err)
		}
	})
	return mux
}

func serveInvoke(w http.ResponseWriter, req *http.Request, r Invoker) error {
	name, qualifier := functionRef(req.PathValue("name"))
	if q := req.URL.Query().Get("Qualifier"); q != "" {
		qualifier = q
	}
	if qualifier != "" && qualifier != "$LATEST" {
		return fmt.Errorf("invoking %s: qualifier %q: %w", name, qualifier, ErrNotFound)
	}
	payload, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxSyncPayload))
	if err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return fmt.Errorf("invoking %s: %w: want at most %d bytes", name, ErrTooLarge, maxSyncPayload)
		}
		return fmt.Errorf("invoking %s: reading the payload: %w", name, err)
	}
	if len(payload) > 0 && !json.Valid(payload) {
		return &apiError{http.StatusBadRequest, "InvalidRequestContentException", "could not parse request body into json"}
	}
	switch kind := req.Header.Get("X-Amz-Invocation-Type"); kind {
	case "", "RequestResponse":
		return invokeNow(w, req, r, name, payload)
	case "Event":
		id, err := r.InvokeAsync(req.Context(), name, payload)
		if err != nil {
			return err
		}
		w.Header().Set("X-Amzn-Requestid", id)
		w.WriteHeader(http.StatusAccepted)
		return nil
	default:
		return &apiError{http.StatusBadRequest, "InvalidParameterValueException", fmt.Sprintf("invocation type %q: want RequestResponse or Event", kind)}
	}
}

func invokeNow(w http.ResponseWriter, req *http.Request, r Invoker, name string, payload []byte) error {
	result, err := r.Invoke(req.Context(), name, payload)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Amzn-Requestid", result.RequestID)
	h.Set("X-Amz-Executed-Version", "$LATEST")
	if result.FunctionError != "" {
		h.Set("X-Amz-Function-Error", result.FunctionError)
	}
	_, _ = w.Write(result.Payload) // a caller that is gone misses it
	return nil
}

// functionRef reads the three forms of a function's name: NAME[:QUALIFIER],
// ACCOUNT:function:NAME[:QUALIFIER] and arn:aws:lambda:REGION:ACCOUNT:function:...
func functionRef(ref string) (name, qualifier string) {
	if i := strings.LastIndex(ref, "function:"); i >= 0 {
		ref = ref[i+len("function:"):]
	}
	name, qualifier, _ = strings.Cut(ref, ":")
	return name, qualifier
}

// apiError is an error as Lambda's API words it.
type apiError struct {
	status  int
	code    string
	message string
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

func writeError(w http.ResponseWriter, err error) {
	e, ok := errors.AsType[*apiError](err)
	if !ok {
		e = &apiError{status: http.StatusInternalServerError, code: "ServiceException", message: err.Error()}
		switch {
		case errors.Is(err, ErrNotFound):
			e.status, e.code = http.StatusNotFound, "ResourceNotFoundException"
		case errors.Is(err, ErrThrottled):
			e.status, e.code = http.StatusTooManyRequests, "TooManyRequestsException"
		case errors.Is(err, ErrTooLarge):
			e.status, e.code = http.StatusRequestEntityTooLarge, "RequestTooLargeException"
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Errortype", e.code)
	w.WriteHeader(e.status)
	fault := "User"
	if e.status >= http.StatusInternalServerError {
		fault = "Service"
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"Type": fault, "Message": e.message}) // a caller that is gone misses it
}
