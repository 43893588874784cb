package policy_test

import (
	"testing"

	"github.com/elbridge/elbridge/local/cloud/policy"
)

func TestAllows(t *testing.T) {
	t.Parallel()
	const rule, queue = "arn:aws:events:eu-west-1:111122223333:rule/elbridge/web", "arn:aws:sqs:eu-west-1:111122223333:q"
	allow := func(rest string) string {
		return `{"Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"` + queue + `"` + rest + `}]}`
	}
	event := policy.Request{Service: "events.amazonaws.com", Action: "sqs:SendMessage", Resource: queue, Context: map[string]string{"aws:sourcearn": rule}}
	other := policy.Request{Account: "444455556666", ARN: "arn:aws:iam::444455556666:role/r", Action: "sqs:SendMessage", Resource: queue}
	tests := map[string]struct {
		document string
		request  policy.Request
		want     bool
	}{
		"no policy":                  {"", event, false},
		"service":                    {allow(""), event, true},
		"service, not an account":    {allow(""), other, false},
		"source is this bus":         {allow(`,"Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:events:*:*:rule/elbridge/*"}}`), event, true},
		"source is another bus":      {allow(`,"Condition":{"ArnEquals":{"aws:SourceArn":"arn:aws:events:*:*:rule/other/*"}}`), event, false},
		"one of two conditions":      {allow(`,"Condition":{"ArnLike":{"aws:SourceArn":"*"},"StringEquals":{"aws:SourceAccount":"1"}}`), event, false},
		"unknown condition":          {allow(`,"Condition":{"IpAddress":{"aws:SourceIp":"0.0.0.0/0"}}`), event, false},
		"account":                    {`{"Statement":{"Effect":"Allow","Principal":{"AWS":"444455556666"},"Action":["sqs:*"],"Resource":"*"}}`, other, true},
		"account's root":             {`{"Statement":[{"Effect":"Allow","Principal":{"AWS":["arn:aws:iam::444455556666:root"]},"Action":"sqs:Send*"}]}`, other, true},
		"another action":             {`{"Statement":[{"Effect":"Allow","Principal":"*","Action":"sqs:ReceiveMessage"}]}`, other, false},
		"denied beside allowed":      {`{"Statement":[{"Effect":"Allow","Principal":"*","Action":"*"},{"Effect":"Deny","Principal":"*","Action":"sqs:SendMessage"}]}`, other, false},
		"denied but for that source": {`{"Statement":[{"Effect":"Allow","Principal":"*","Action":"*"},{"Effect":"Deny","Principal":"*","Action":"*","Condition":{"ArnNotLike":{"aws:SourceArn":"` + rule + `"}}}]}`, event, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := policy.Parse(tt.document)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.Allows(tt.request); got != tt.want {
				t.Errorf("Allows = %v, want %v\npolicy %s\nrequest %+v", got, tt.want, tt.document, tt.request)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, document := range []string{"{", `{"Statement":3}`, `{"Statement":[{"Effect":"Maybe"}]}`} {
		if _, err := policy.Parse(document); err == nil {
			t.Errorf("Parse(%s) gave no error", document)
		}
	}
}
