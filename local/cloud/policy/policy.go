// Package policy decides what a resource policy (of a queue, a bus or log groups) allows.
// It knows the parts of the policy language that such policies are written
// with: Effect, Principal, Action, Resource and the common conditions. A
// condition it does not know holds never, as nothing is allowed on doubt.
package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Request is what a policy is asked about.
type Request struct {
	Service  string            // calling AWS service, as "events.amazonaws.com", or empty
	Account  string            // of the calling principal
	ARN      string            // of the calling principal, empty for a service
	Action   string            // as "sqs:SendMessage"
	Resource string            // ARN
	Context  map[string]string // condition keys in lower case, as "aws:sourcearn"
}

// Policy is a parsed policy document.
type Policy struct {
	Statement []statement `json:"Statement"`
}

type statement struct {
	Effect    string                     `json:"Effect"`
	Principal principals                 `json:"Principal"`
	Action    list                       `json:"Action"`
	Resource  list                       `json:"Resource"`
	Condition map[string]map[string]list `json:"Condition"`
}

// list is one string or several.
type list []string

// UnmarshalJSON reads "a" or ["a","b"].
func (l *list) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*l = list{one}
		return nil
	}
	var flag bool
	if json.Unmarshal(b, &flag) == nil {
		*l = list{fmt.Sprint(flag)}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(l))
}

// principals is "*", or kinds (AWS, Service) with their values.
type principals map[string]list

// UnmarshalJSON reads "*" or {"Service": "events.amazonaws.com"}.
func (p *principals) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*p = principals{"*": {one}}
		return nil
	}
	return json.Unmarshal(b, (*map[string]list)(p))
}

// Parse reads a policy document. An empty one allows nothing.
func Parse(document string) (*Policy, error) {
	p := &Policy{}
	if strings.TrimSpace(document) == "" {
		return p, nil
	}
	var doc struct{ Statement json.RawMessage }
	if err := json.Unmarshal([]byte(document), &doc); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if !strings.HasPrefix(strings.TrimSpace(string(doc.Statement)), "[") {
		doc.Statement = slices.Concat(json.RawMessage("["), doc.Statement, json.RawMessage("]"))
	}
	if err := json.Unmarshal(doc.Statement, &p.Statement); err != nil {
		return nil, fmt.Errorf("policy: Statement: %w", err)
	}
	for i, s := range p.Statement {
		if s.Effect != "Allow" && s.Effect != "Deny" {
			return nil, fmt.Errorf("policy: Statement[%d].Effect %q: want Allow or Deny", i, s.Effect)
		}
	}
	return p, nil
}

// Allows says whether some statement allows r and none denies it.
func (p *Policy) Allows(r Request) bool {
	allowed := false
	for _, s := range p.Statement {
		if !s.matches(r) {
			continue
		}
		if s.Effect == "Deny" {
			return false
		}
		allowed = true
	}
	return allowed
}

func (s statement) matches(r Request) bool {
	action := slices.ContainsFunc(s.Action, func(a string) bool { return like(strings.ToLower(a), strings.ToLower(r.Action)) })
	resource := len(s.Resource) == 0 || slices.ContainsFunc(s.Resource, func(a string) bool { return like(a, r.Resource) })
	return action && resource && s.Principal.match(r) && s.conditions(r)
}

func (p principals) match(r Request) bool {
	if slices.Contains(p["*"], "*") {
		return true
	}
	if r.Service != "" {
		return slices.Contains(p["Service"], r.Service)
	}
	return slices.ContainsFunc(p["AWS"], func(a string) bool {
		return a == "*" || a == r.Account || a == "arn:aws:iam::"+r.Account+":root" || a == r.ARN
	})
}

func (s statement) conditions(r Request) bool {
	for operator, keys := range s.Condition {
		for key, values := range keys {
			if !condition(operator, r.Context[strings.ToLower(key)], values) {
				return false
			}
		}
	}
	return true
}

func condition(operator, got string, values list) bool {
	test := func(match func(want, got string) bool) bool {
		return got != "" && slices.ContainsFunc(values, func(want string) bool { return match(want, got) })
	}
	equal := func(want, got string) bool { return want == got }
	switch operator {
	case "StringEquals":
		return test(equal)
	case "StringLike", "ArnLike", "ArnEquals":
		return test(like)
	case "StringNotEquals":
		return !test(equal)
	case "StringNotLike", "ArnNotLike", "ArnNotEquals":
		return !test(like)
	case "Bool":
		return test(strings.EqualFold)
	}
	return false
}

// like compares with a pattern of * and ?.
func like(pattern, s string) bool {
	star, mark, i, j := -1, 0, 0, 0
	for j < len(s) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == s[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}
