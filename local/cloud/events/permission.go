package events

import (
	"encoding/json"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/cloud/policy"
)

// statement is one that PutPermission writes.
type statement struct {
	Sid       string
	Effect    string
	Principal any
	Action    string
	Resource  string
	Condition map[string]map[string]string `json:",omitempty"`
}

// permissionRequest gives or takes a permission.
type permissionRequest struct {
	busName
	Action, Principal, StatementId, Policy string
	Condition                              *struct{ Type, Key, Value string }
	RemoveAllPermissions                   bool
}

func (s *Service) putPermission(call *core.Call) (any, error) {
	return onBus(s, call, func(b *bus, in permissionRequest) (any, error) {
		if in.Policy != "" {
			return nil, b.setPolicy(in.Policy)
		}
		if in.Action == "" || in.Principal == "" || in.StatementId == "" {
			return nil, invalid("Parameter(s) Action, Principal and StatementId, or Policy, must be specified.")
		}
		one := statement{Sid: in.StatementId, Effect: "Allow", Principal: "*", Action: in.Action, Resource: b.id.arn()}
		if in.Principal != "*" {
			one.Principal = map[string]string{"AWS": "arn:aws:iam::" + in.Principal + ":root"}
		}
		if in.Condition != nil {
			one.Condition = map[string]map[string]string{in.Condition.Type: {in.Condition.Key: in.Condition.Value}}
		}
		kept := b.statementsWithout(in.StatementId)
		text, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		return nil, b.setStatements(append(kept, text))
	})
}

func (s *Service) removePermission(call *core.Call) (any, error) {
	return onBus(s, call, func(b *bus, in permissionRequest) (any, error) {
		if in.RemoveAllPermissions {
			return nil, b.setStatements(nil)
		}
		return nil, b.setStatements(b.statementsWithout(in.StatementId))
	})
}

func (b *bus) statementsWithout(sid string) []json.RawMessage {
	var doc struct{ Statement []json.RawMessage }
	_ = json.Unmarshal([]byte(b.policy), &doc) // set by setPolicy, which checked it; empty has none
	var kept []json.RawMessage
	for _, raw := range doc.Statement {
		var one struct{ Sid string }
		if json.Unmarshal(raw, &one) == nil && one.Sid != sid {
			kept = append(kept, raw)
		}
	}
	return kept
}

func (b *bus) setStatements(all []json.RawMessage) error {
	if len(all) == 0 {
		return b.setPolicy("")
	}
	text, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": all})
	if err != nil {
		return err
	}
	return b.setPolicy(string(text))
}

// maxPolicy is the longest policy of a bus, in characters.
const maxPolicy = 10240

func (b *bus) setPolicy(text string) error {
	if len(text) > maxPolicy {
		return core.Errorf("PolicyLengthExceededException", "The policy is %d characters long, the limit is %d.", len(text), maxPolicy)
	}
	p, err := policy.Parse(text)
	if err != nil {
		return invalid("Parameter Policy is not valid. Reason: %v.", err)
	}
	b.policy, b.allow = text, p
	return nil
}
