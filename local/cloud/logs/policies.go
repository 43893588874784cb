package logs

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/policy"
)

// resourcePolicy says which services may write into which groups of an account
// and region.
type resourcePolicy struct {
	document string
	rules    *policy.Policy
	changed  time.Time
}

// allowed says whether the policies of a scope allow a request: some has to,
// and none may deny it.
func (s *Service) allowed(scope core.Scope, r policy.Request) bool {
	all := &policy.Policy{}
	for _, p := range s.policies[scope] {
		all.Statement = append(all.Statement, p.rules.Statement...)
	}
	return all.Allows(r)
}

// policyRequest is any request about a resource policy.
type policyRequest struct {
	Name        string `json:"policyName"`
	Document    string `json:"policyDocument"`
	ResourceARN string `json:"resourceArn"`
	pageRequest
}

func (in *policyRequest) read(call *core.Call) error {
	if err := call.Decode(in); err != nil {
		return err
	}
	if in.ResourceARN != "" {
		return invalid("resourceArn: the local cloud has policies of the account only")
	}
	return nil
}

type policyAnswer struct {
	Name        string `json:"policyName"`
	Document    string `json:"policyDocument"`
	LastUpdated int64  `json:"lastUpdatedTime"`
	Scope       string `json:"policyScope"`
}

func (p *resourcePolicy) show(name string) policyAnswer {
	return policyAnswer{Name: name, Document: p.document, LastUpdated: p.changed.UnixMilli(), Scope: "ACCOUNT"}
}

func (s *Service) putPolicy(call *core.Call) (any, error) {
	var in policyRequest
	if err := in.read(call); err != nil {
		return nil, err
	}
	switch {
	case in.Name == "":
		return nil, violation("policyName", "", "Member must not be null")
	case len(in.Document) < 1 || len(in.Document) > maxDocument:
		return nil, violation("policyDocument", "", fmt.Sprintf("Member must have length from 1 to %d", maxDocument))
	}
	rules, err := policy.Parse(in.Document)
	if err != nil || len(rules.Statement) == 0 {
		return nil, invalid("Policy document is not valid: %v", err)
	}
	of := s.policies[call.Scope]
	if of == nil {
		of = map[string]*resourcePolicy{}
		s.policies[call.Scope] = of
	}
	if of[in.Name] == nil && len(of) >= maxPolicies {
		return nil, limitExceeded()
	}
	of[in.Name] = &resourcePolicy{document: in.Document, rules: rules, changed: call.Time}
	return map[string]any{"resourcePolicy": of[in.Name].show(in.Name)}, nil
}

func (s *Service) deletePolicy(call *core.Call) (any, error) {
	var in policyRequest
	if err := in.read(call); err != nil {
		return nil, err
	}
	if s.policies[call.Scope][in.Name] == nil {
		return nil, core.Errorf("ResourceNotFoundException", "Policy with name [%s] does not exist", in.Name)
	}
	delete(s.policies[call.Scope], in.Name)
	return nil, nil
}

func (s *Service) describePolicies(call *core.Call) (any, error) {
	var in policyRequest
	if err := in.read(call); err != nil {
		return nil, err
	}
	of := s.policies[call.Scope]
	page, next, err := in.page(slices.Sorted(maps.Keys(of)))
	if err != nil {
		return nil, err
	}
	out := struct {
		Policies  []policyAnswer `json:"resourcePolicies"`
		NextToken string         `json:"nextToken,omitempty"`
	}{[]policyAnswer{}, next}
	for _, name := range page {
		out.Policies = append(out.Policies, of[name].show(name))
	}
	return out, nil
}
