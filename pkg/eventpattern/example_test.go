package eventpattern_test

import (
	"fmt"

	"github.com/elbridge/elbridge/pkg/eventpattern"
)

// A rule of the elbridge bus selects pods by their cluster, namespace and labels.
func Example() {
	pattern, err := eventpattern.Parse([]byte(`{
		"source": ["elbridge"],
		"detail": {"cluster": ["prod"], "labels": {"app.kubernetes.io/name": ["web", {"prefix": "web-"}]}}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	match, err := pattern.Match([]byte(`{
		"source": "elbridge",
		"detail": {"cluster": "prod", "namespace": "shop", "labels": {"app.kubernetes.io/name": "web-blue", "tier": "front"}}
	}`))
	fmt.Println(match, err)

	_, err = eventpattern.Parse([]byte(`{"detail": {"cluster": [{"startswith": "prod"}]}}`))
	fmt.Println(err)
	// Output:
	// true <nil>
	// event pattern: detail.cluster: unknown operator "startswith": known are prefix, suffix, equals-ignore-case, wildcard, anything-but, numeric, cidr, exists, exactly (at byte 38)
}

// A set tells which of many rules match.
func ExampleSet() {
	var patterns []*eventpattern.Pattern
	for _, text := range []string{
		`{"detail":{"namespace":["shop"]}}`,
		`{"detail":{"namespace":["pay"]}}`,
		`{"detail":{"namespace":[{"anything-but":"kube-system"}]}}`,
	} {
		p, err := eventpattern.Parse([]byte(text))
		if err != nil {
			fmt.Println(err)
			return
		}
		patterns = append(patterns, p)
	}
	event, err := eventpattern.ParseEvent([]byte(`{"detail":{"namespace":"shop"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(eventpattern.NewSet(patterns).Matches(event))
	// Output: [0 2]
}

// An explanation names the first condition that fails, and what the event has there.
func ExamplePattern_Explain() {
	pattern, err := eventpattern.Parse([]byte(`{"detail":{"namespace":["shop"],"ports":{"name":["http"],"containerPort":[8080]}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{
		`{"detail":{"namespace":"pay","ports":[{"name":"http","containerPort":8080}]}}`,
		`{"detail":{"namespace":"shop","ports":[{"name":"http","containerPort":80},{"name":"admin","containerPort":8080}]}}`,
	} {
		event, err := eventpattern.ParseEvent([]byte(text))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(pattern.Explain(event))
	}
	// Output:
	// no match: detail.namespace is "pay", want ["shop"]
	// no match: no array element has detail.ports.containerPort [8080] (detail.ports[1].containerPort) together with detail.ports.name ["http"] (detail.ports[0].name)
}

// An event can be built from values that are at hand.
func ExampleBuilder() {
	pattern, err := eventpattern.Parse([]byte(`{"detail":{"labels":{"app":["web"]},"ports":{"containerPort":[8080]}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	b := eventpattern.NewBuilder()
	detail := b.Root().Object("detail")
	detail.Object("labels").String("app", "web")
	detail.Array("ports").Object(0).Int("containerPort", 8080)
	fmt.Println(pattern.Matches(b.Event()))
	// Output: true
}
