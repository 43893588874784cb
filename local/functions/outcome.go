package functions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// An outcome is what one invocation came to.
type outcome struct {
	payload      []byte
	failed       bool
	errorType    string
	errorMessage string
	spent        bool // the instance must not be used again
}

// The error types that Lambda itself reports for a function.
const (
	errorTypeTimeout = "Sandbox.Timedout"
	errorTypeExit    = "Runtime.ExitError"
)

// judge reads the emulator's answer. Time-outs and errors of the function come
// with status 200 too, so the body decides: a time-out is a plain sentence where
// JSON is due, an error is an object that has errorType and errorMessage and
// nothing that an error has not. An error return of a function that looks just
// like that is taken for an error.
//
// A crash comes with status 502. After it and after a time-out the emulator
// would start the function anew by itself; we end the instance instead, so that
// an instance is one process of the function.
func judge(requestID string, status int, body []byte) (outcome, error) {
	switch status {
	case http.StatusOK:
		if isTimeout(body) {
			message := fmt.Sprintf("RequestId: %s Error: %s", requestID, bytes.TrimSpace(body))
			return failure(errorTypeTimeout, message), nil
		}
		if e, ok := functionError(body); ok {
			return outcome{payload: body, failed: true, errorType: e.Type, errorMessage: e.Message}, nil
		}
		return outcome{payload: body}, nil
	case http.StatusBadGateway:
		if e, ok := functionError(body); ok {
			return outcome{payload: body, failed: true, errorType: e.Type, errorMessage: e.Message, spent: true}, nil
		}
		return failure(errorTypeExit, fmt.Sprintf("RequestId: %s Error: Runtime exited", requestID)), nil
	}
	return outcome{spent: true}, fmt.Errorf("emulator answered status %d: %q", status, body)
}

// failure is an outcome that Lambda words, not the function.
func failure(errorType, message string) outcome {
	payload, _ := json.Marshal(map[string]string{"errorType": errorType, "errorMessage": message}) // strings cannot fail
	return outcome{payload: payload, failed: true, errorType: errorType, errorMessage: message, spent: true}
}

func isTimeout(body []byte) bool {
	return strings.HasPrefix(string(body), "Task timed out after ")
}

type errorBody struct{ Type, Message string }

func functionError(body []byte) (errorBody, bool) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '{' {
		return errorBody{}, false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return errorBody{}, false
	}
	var e errorBody
	for name, value := range fields {
		var err error
		switch name {
		case "errorType":
			err = json.Unmarshal(value, &e.Type)
		case "errorMessage":
			err = json.Unmarshal(value, &e.Message)
		case "stackTrace", "cause":
		default:
			return errorBody{}, false
		}
		if err != nil {
			return errorBody{}, false
		}
	}
	_, hasType := fields["errorType"]
	_, hasMessage := fields["errorMessage"]
	return e, hasType && hasMessage
}
