package functions

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// scripted answers by the function's name.
type scripted struct{}

func (scripted) Invoke(_ context.Context, name string, payload []byte) (Result, error) {
	switch name {
	case "good":
		return Result{RequestID: "id", Payload: payload}, nil
	case "bad":
		return Result{RequestID: "id", Payload: []byte(`{"errorType":"E","errorMessage":"m"}`), FunctionError: "Unhandled"}, nil
	case "busy":
		return Result{}, fmt.Errorf("invoking: %w", ErrThrottled)
	case "broken":
		return Result{}, fmt.Errorf("connection refused")
	}
	return Result{}, fmt.Errorf("invoking: %w", ErrNotFound)
}

func (s scripted) InvokeAsync(ctx context.Context, name string, payload []byte) (string, error) {
	_, err := s.Invoke(ctx, name, payload)
	return "id", err
}

func TestInvokeAPI(t *testing.T) {
	server := httptest.NewServer(NewHandler(scripted{}))
	defer server.Close()
	const arn = "arn:aws:lambda:eu-west-1:111122223333:function:"
	tests := map[string]struct {
		path, kind, body string
		want             string // "STATUS BODY", and " error=X" for the header of a function or service error
	}{
		"by name":            {path: "good", body: `{"a":1}`, want: `200 {"a":1}`},
		"by ARN":             {path: arn + "good", kind: "RequestResponse", body: `1`, want: `200 1`},
		"by escaped ARN":     {path: strings.ReplaceAll(arn, ":", "%3A") + "good%3A$LATEST", body: `1`, want: `200 1`},
		"by partial ARN":     {path: "111122223333:function:good", body: `1`, want: `200 1`},
		"with qualifier":     {path: "good:$LATEST", body: `1`, want: `200 1`},
		"other qualifier":    {path: "good?Qualifier=7", body: `1`, want: `404  error=ResourceNotFoundException`},
		"function error":     {path: "bad", body: `1`, want: `200 {"errorType":"E","errorMessage":"m"} error=Unhandled`},
		"throttled":          {path: "busy", want: `429  error=TooManyRequestsException`},
		"unknown":            {path: "none", want: `404  error=ResourceNotFoundException`},
		"broken":             {path: "broken", want: `500  error=ServiceException`},
		"asynchronous":       {path: "good", kind: "Event", body: `1`, want: `202 `},
		"asynchronous, none": {path: "none", kind: "Event", want: `404  error=ResourceNotFoundException`},
		"other type":         {path: "good", kind: "Later", want: `400  error=InvalidParameterValueException`},
		"no JSON":            {path: "good", body: `{`, want: `400  error=InvalidRequestContentException`},
		"too large":          {path: "good", body: strings.Repeat("1", maxSyncPayload+1), want: `413  error=RequestTooLargeException`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path, query, _ := strings.Cut(tt.path, "?")
			url := server.URL + "/2015-03-31/functions/" + path + "/invocations?" + query
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Amz-Invocation-Type", tt.kind)
			resp, err := server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode >= 400 {
				body = nil // its wording is free
			}
			got := fmt.Sprintf("%d %s", resp.StatusCode, body)
			if e := resp.Header.Get("X-Amz-Function-Error") + resp.Header.Get("X-Amzn-Errortype"); e != "" {
				got += " error=" + e
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
