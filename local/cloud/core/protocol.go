package core

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
)

// Protocol is how a service's requests and answers look on the wire.
type Protocol int

// The protocols of the services that the local cloud has.
const (
	Query  Protocol = iota + 1 // form in, XML out
	JSON10                     // X-Amz-Target, application/x-amz-json-1.0
	JSON11                     // X-Amz-Target, application/x-amz-json-1.1
	REST                       // method and path, JSON documents
)

// wire is what the core knows of a service.
type wire struct {
	protocol  Protocol
	target    string // prefix of X-Amz-Target
	namespace string // of the XML answer, or of __type in JSON
}

var wires = map[string]wire{
	"events":               {protocol: JSON11, target: "AWSEvents"},
	"sqs":                  {protocol: JSON10, target: "AmazonSQS", namespace: "com.amazonaws.sqs#"},
	"logs":                 {protocol: JSON11, target: "Logs_20140328"},
	"elasticloadbalancing": {protocol: Query, namespace: "http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/"},
	"sts":                  {protocol: Query, namespace: "https://sts.amazonaws.com/doc/2011-06-15/"},
	"eks":                  {protocol: REST},
	"lambda":               {protocol: REST},
}

func serviceProtocol(service string) Protocol { return wires[service].protocol }

// answer is what goes back to the client.
type answer struct {
	status      int
	contentType string
	header      map[string]string
	body        []byte
}

// Raw is a result that is sent as it is (REST services only).
type Raw struct {
	Status int
	Header map[string]string
	Body   []byte
}

func render(c *Call, result any) (answer, error) {
	w := wires[c.Service]
	if raw, ok := result.(Raw); ok {
		return answer{status: raw.Status, contentType: "application/json", header: raw.Header, body: raw.Body}, nil
	}
	if w.protocol == Query && c.wantsJSON() {
		body, err := json.Marshal(map[string]any{c.Operation + "Response": map[string]any{
			c.Operation + "Result": result, "ResponseMetadata": map[string]string{"RequestId": c.RequestID}}})
		return answer{status: http.StatusOK, contentType: "application/json", body: body}, err
	}
	if w.protocol == Query {
		body, err := queryResult(c, w, result)
		return answer{status: http.StatusOK, contentType: "text/xml", body: body}, err
	}
	body := []byte("{}")
	if result != nil {
		var err error
		if body, err = json.Marshal(result); err != nil {
			return answer{}, fmt.Errorf("result of %s %s: %w", c.Service, c.Operation, err)
		}
	}
	return answer{status: http.StatusOK, contentType: jsonType(w.protocol), body: body}, nil
}

// wantsJSON says whether a client of the query protocol asks for JSON, as
// aws-iam-authenticator does.
func (c *Call) wantsJSON() bool {
	return c.Service == "sts" && c.HTTP.Header.Get("Accept") == "application/json"
}

func jsonType(p Protocol) string {
	switch p {
	case JSON10:
		return "application/x-amz-json-1.0"
	case JSON11:
		return "application/x-amz-json-1.1"
	}
	return "application/json"
}

func queryResult(c *Call, w wire, result any) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<%sResponse xmlns=%q>", c.Operation, w.namespace)
	if result == nil {
		result = struct{}{}
	}
	e := xml.NewEncoder(&b)
	if err := e.EncodeElement(result, xml.StartElement{Name: xml.Name{Local: c.Operation + "Result"}}); err != nil {
		return nil, fmt.Errorf("result of %s %s: %w", c.Service, c.Operation, err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("result of %s %s: %w", c.Service, c.Operation, err)
	}
	fmt.Fprintf(&b, "<ResponseMetadata><RequestId>%s</RequestId></ResponseMetadata></%sResponse>", c.RequestID, c.Operation)
	return b.Bytes(), nil
}

// renderError writes e as the service does.
func renderError(service, requestID string, e *Error) answer {
	w := wires[service]
	if w.protocol == Query || w.protocol == 0 {
		return answer{status: e.status(), contentType: "text/xml", body: queryError(w, requestID, e)}
	}
	a := answer{status: e.status(), contentType: jsonType(w.protocol), header: map[string]string{}}
	doc := map[string]string{"message": e.Message}
	if w.protocol == REST {
		a.header["X-Amzn-Errortype"] = e.Code
	} else {
		doc["__type"] = w.namespace + e.Code
	}
	if e.QueryCode != "" {
		a.header["X-Amzn-Query-Error"] = e.QueryCode + ";" + e.sender()
	}
	a.body, _ = json.Marshal(doc) // strings always marshal
	return a
}

func queryError(w wire, requestID string, e *Error) []byte {
	var message strings.Builder
	_ = xml.EscapeText(&message, []byte(e.Message)) // a Builder takes everything
	return fmt.Appendf(nil, "<ErrorResponse xmlns=%q><Error><Type>%s</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>%s</RequestId></ErrorResponse>",
		w.namespace, e.sender(), e.Code, message.String(), requestID)
}
