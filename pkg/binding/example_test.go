package binding_test

import (
	"fmt"

	"github.com/elbridge/elbridge/pkg/binding"
)

// A rule on the bus is read as the service would act on it.
func Example() {
	rule := binding.Rule{
		ARN:     "arn:aws:events:eu-west-1:111122223333:rule/elbridge/web",
		Name:    "web",
		State:   "ENABLED",
		Pattern: `{"source":["elbridge"],"detail-type":["Pod State Change"],"detail":{"namespace":["ingress"],"labels":{"application":["skipper-ingress"]}}}`,
	}
	targets := []binding.Target{{
		ID:  "registrar",
		ARN: "arn:aws:sqs:eu-west-1:111122223333:elbridge-bindings",
		Transformer: &binding.Transformer{
			Template: `{"binding":{"targetGroup":{"name":"web"},"port":9999},"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`,
		},
	}}
	bindings, err := binding.FromRule(rule, targets, "arn:aws:sqs:eu-west-1:111122223333:elbridge-bindings")
	if err != nil {
		fmt.Println(err)
		return
	}
	b := bindings[0]
	selection := b.Pattern.Selection()
	fmt.Println("group", b.Group.Name, "port", b.Port.Number, "from", b.RegisterWhen)
	fmt.Println("pods in", selection.Namespaces, "with", selection.LabelSelector())
	// Output:
	// group web port 9999 from HasIP
	// pods in [ingress] with application=skipper-ingress
}
