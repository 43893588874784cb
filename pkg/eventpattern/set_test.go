package eventpattern_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/elbridge/elbridge/pkg/eventpattern"
)

// set reads "pattern; pattern; …", each the inside of a pattern's braces. An
// empty one is a nil pattern.
func set(t testing.TB, patterns string) *eventpattern.Set {
	t.Helper()
	var all []*eventpattern.Pattern
	for _, p := range strings.Split(patterns, ";") {
		if p = strings.TrimSpace(p); p == "" {
			all = append(all, nil)
			continue
		}
		all = append(all, mustParse(t, "{"+p+"}"))
	}
	return eventpattern.NewSet(all)
}

func TestSet(t *testing.T) {
	tests := map[string]struct {
		patterns, event string
		want            []int
	}{
		"no pattern":                 {``, `{"a":"x"}`, nil},
		"one of several":             {`"a":["x"]; "a":["y"]; "b":["x"]`, `{"a":"y"}`, []int{1}},
		"the same twice":             {`"a":["x"]; ; "a":["x"]`, `{"a":"x"}`, []int{0, 2}},
		"a value given twice":        {`"a":["x","x"]; "a":["y"]`, `{"a":["x","x","y"]}`, []int{0, 1}},
		"several branches match":     {`"$or":[{"a":["x"]},{"b":["y"]}]; "b":["y"]`, `{"a":"x","b":"y"}`, []int{0, 1}},
		"without plain strings":      {`"a":[{"prefix":"x"}]; "a":["z",{"exists":false}]; "a":[1]`, `{"a":"xy"}`, []int{0}},
		"absent":                     {`"a":["z",{"exists":false}]; "b":[{"exists":false}],"a":["x"]`, `{"a":"x"}`, []int{1}},
		"shared conditions":          {`"a":["x"],"b":["1"]; "a":["x"],"b":["2"]; "a":["x"],"b":["2"],"c":[3]`, `{"a":"x","b":"2","c":3.0}`, []int{1, 2}},
		"same text, other path":      {`"a":["x"],"b":["y"]; "b":["x"],"a":["y"]`, `{"a":"y","b":"x"}`, []int{1}},
		"one array element":          {`"m":{"a":["x"],"b":["y"]}; "m":{"a":["x"],"b":["z"]}`, `{"m":[{"a":"x","b":"z"},{"a":"w","b":"y"}]}`, []int{1}},
		"addresses in a spelling":    {`"ip":["10.0.0.1"]; "ip":["10.0.0.2"]`, `{"ip":"010.0.0.1"}`, []int{0}},
		"dotted and nested":          {`"a.b":["x"]; "a":{"b":["x"]}; "a":{"b":["y"]}`, `{"a":{"b":"x"}}`, []int{0, 1}},
		"a long list":                {`"a":["1","2","3","4","5","6","7","8","9"]; "a":[{"anything-but":["1","2","3","4","5","6","7","8","9"]}]`, `{"a":"7"}`, []int{0}},
		"nothing of it in the event": {`"a":["x"]; "b":[{"anything-but":"x"}]`, `{"c":"x"}`, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := set(t, tt.patterns)
			got, err := s.Match([]byte(tt.event))
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("Match: %v, %v, want %v", got, err, tt.want)
			}
			e, err := eventpattern.ParseEvent([]byte(tt.event))
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Matches(e); !slices.Equal(got, tt.want) {
				t.Errorf("Matches: %v, want %v", got, tt.want)
			}
		})
	}
}

func TestSet_ErrorsAndLargeEventsLeaveItUsable(t *testing.T) {
	s := set(t, `"a":["x"]; "k":{"z":[1]}`)
	large := `{"k":[` + strings.Repeat(`{"z":0},`, 50_000) + `{"z":1}]}`
	for range 3 {
		if _, err := s.Match([]byte(`{"a":["x"`)); err == nil {
			t.Error("an event that is cut off was read")
		}
		if got, err := s.Match([]byte(large)); err != nil || !slices.Equal(got, []int{1}) {
			t.Errorf("large event: %v, %v", got, err)
		}
		if got, err := s.Match([]byte(`{"a":"x"}`)); err != nil || !slices.Equal(got, []int{0}) {
			t.Errorf("small event: %v, %v", got, err)
		}
	}
}

// Sets, patterns and events are shared by goroutines (run with -race).
func TestSet_Concurrent(t *testing.T) {
	s := set(t, `"a":["0"]; "a":["1"]; "m":{"x":["1"],"y":["1"]}; "a":[{"prefix":"1"}]`)
	e, err := eventpattern.ParseEvent([]byte(`{"a":"1","m":[{"x":"1","y":"1"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				if got := s.Matches(e); !slices.Equal(got, []int{1, 2, 3}) {
					t.Errorf("Matches: %v", got)
				}
				got, err := s.Match(fmt.Appendf(nil, `{"a":"%d"}`, i%2))
				want := map[int][]int{0: {0}, 1: {1, 3}}[i%2]
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("Match: %v, %v, want %v", got, err, want)
				}
			}
		})
	}
	wg.Wait()
}
