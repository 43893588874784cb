package functions

import (
	"fmt"
	"testing"
)

// The emulator answers 200 to success, function errors and time-outs alike.
func TestJudge(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		want   string // "ok", "failed TYPE", "broken", with " spent" if the instance must go
	}{
		"success":                     {200, `{"batchItemFailures":[]}`, "ok"},
		"no answer":                   {200, ``, "ok"},
		"null":                        {200, `null`, "ok"},
		"a string like an error":      {200, `"errorType"`, "ok"},
		"error":                       {200, `{"errorMessage":"bad","errorType":"errorString"}`, "failed errorString"},
		"error with trace":            {200, `{"errorMessage":"bad","errorType":"E","stackTrace":[{"line":1}]}`, "failed E"},
		"answer with more than that":  {200, `{"errorMessage":"bad","errorType":"E","pods":3}`, "ok"},
		"answer with less than that":  {200, `{"errorMessage":"bad"}`, "ok"},
		"answer with another type":    {200, `{"errorMessage":["bad"],"errorType":"E"}`, "ok"},
		"time-out":                    {200, `Task timed out after 3.00 seconds`, "failed Sandbox.Timedout spent"},
		"a string like a time-out":    {200, `"Task timed out after 3.00 seconds"`, "ok"},
		"exit":                        {502, `{"errorType":"Runtime.ExitError","errorMessage":"exit status 1"}`, "failed Runtime.ExitError spent"},
		"panic":                       {502, `{"errorMessage":"oh","errorType":"string","stackTrace":[]}`, "failed string spent"},
		"crash without words":         {502, ``, "failed Runtime.ExitError spent"},
		"second invocation at a time": {400, ``, "broken spent"},
		"reservation gone":            {504, ``, "broken spent"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := judge("id", tt.status, []byte(tt.body))
			got := "ok"
			switch {
			case err != nil:
				got = "broken"
			case out.failed:
				got = fmt.Sprintf("failed %s", out.errorType)
			}
			if out.spent {
				got += " spent"
			}
			if got != tt.want {
				t.Errorf("judge(%d, %q) = %s, want %s", tt.status, tt.body, got, tt.want)
			}
		})
	}
}
