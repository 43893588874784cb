package events

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/elbridge/elbridge/local/cloud/core"
)

func invalid(format string, args ...any) *core.Error {
	return core.Errorf("ValidationException", format, args...)
}

func notFound(format string, args ...any) *core.Error {
	return core.Errorf("ResourceNotFoundException", format, args...)
}

func limitExceeded() *core.Error {
	return core.Errorf("LimitExceededException", "The requested resource exceeds the maximum number allowed.")
}

func denied(call *core.Call, resource string) *core.Error {
	return &core.Error{Code: "AccessDeniedException", Status: http.StatusBadRequest,
		Message: "User: " + call.Principal.ARN + " is not authorized to perform: events:" + call.Operation + " on resource: " + resource +
			" because no resource-based policy allows the events:" + call.Operation + " action"}
}

// violation is the error of a value that the service's model does not allow.
func violation(member, value, rule string) *core.Error {
	return invalid("1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: %s", value, member, rule)
}

// constraint checks a name against its form and length.
func constraint(member, value string, form *regexp.Regexp, pattern string, most int) error {
	switch {
	case value == "":
		return violation(member, value, "Member must have length greater than or equal to 1")
	case len(value) > most:
		return violation(member, value, "Member must have length less than or equal to "+strconv.Itoa(most))
	case !form.MatchString(value):
		return violation(member, value, "Member must satisfy regular expression pattern: "+pattern)
	}
	return nil
}

// paged sorts names and cuts a page of at most 100 from them.
func paged(names []string, limit json.Number, token string) ([]string, string, error) {
	slices.Sort(names)
	page, next, err := core.Page(names, limit.String(), 100, token)
	if err != nil {
		if strings.HasPrefix(err.Error(), "limit") {
			return nil, "", violation("limit", limit.String(), "Member must have value between 1 and 100")
		}
		return nil, "", invalid("Parameter NextToken is not valid. Reason: %v.", err)
	}
	return page, next, nil
}
