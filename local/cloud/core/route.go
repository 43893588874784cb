package core

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
)

// RESTOperations names the operation of a REST request. A REST service
// implements it beside Service.
type RESTOperations interface {
	// Operation returns an empty name if there is none. The path is escaped.
	Operation(method, path string) string
}

// route is what a request is for.
type route struct {
	service, operation string
	form               url.Values
}

// routeOf finds service and operation. The request's body has been read.
func (s *Server) routeOf(r *http.Request, body []byte) (route, *Error) {
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		prefix, operation, _ := strings.Cut(target, ".")
		for name, w := range wires {
			if w.target == prefix {
				return route{service: name, operation: operation}, nil
			}
		}
		return route{}, Errorf("UnknownOperationException", "X-Amz-Target %q is of no service of the local cloud", target)
	}
	form := r.URL.Query()
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		if posted, err := url.ParseQuery(string(bytes.TrimSpace(body))); err == nil {
			for k, v := range posted {
				form[k] = v
			}
		}
	}
	service := ""
	if sig, err := parseSignature(r); err == nil && sig != nil {
		service = sig.service
	}
	if operation := form.Get("Action"); operation != "" && r.URL.Path == "/" {
		return route{service: queryService(service), operation: operation, form: form}, nil
	}
	for name, reg := range s.services() {
		if rest, ok := reg.(RESTOperations); ok && (service == "" || service == name) {
			if operation := rest.Operation(r.Method, r.URL.EscapedPath()); operation != "" {
				return route{service: name, operation: operation}, nil
			}
		}
	}
	return route{service: service}, &Error{Code: "UnknownOperationException", Status: http.StatusNotFound,
		Message: r.Method + " " + r.URL.Path + " of service " + service + " is no operation of the local cloud"}
}

// queryService is where an Action goes: the service it is signed for, or STS,
// whose calls may come unsigned.
func queryService(signed string) string {
	if signed == "" {
		return "sts"
	}
	return signed
}
