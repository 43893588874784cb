package core

import (
	"fmt"
	"net/http"
)

// Error is an API error as the caller sees it.
type Error struct {
	Code    string // as the SDKs know it: "TargetGroupNotFound", "QueueDoesNotExist"
	Message string
	Status  int // HTTP status; 0 means 400

	// QueryCode is the code that services give which once had another protocol
	// (x-amzn-query-error). Empty means none.
	QueryCode string
}

// Error implements error.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

func (e *Error) status() int {
	if e.Status == 0 {
		return http.StatusBadRequest
	}
	return e.Status
}

// sender says whose fault the error is, in the words of the query protocol.
func (e *Error) sender() string {
	if e.status() >= http.StatusInternalServerError {
		return "Receiver"
	}
	return "Sender"
}

// Errorf returns an error with status 400.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Status: http.StatusBadRequest}
}
