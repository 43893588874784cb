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
