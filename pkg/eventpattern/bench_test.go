package eventpattern_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/eventpattern"
)

// benchEvent is a pod event of about 900 bytes, the shape of the vectors' group
// typical-binding.
func benchEvent(tb testing.TB) []byte {
	tb.Helper()
	for _, v := range readVectors(tb, "testdata/vectors.jsonl.gz") {
		if v.Group == "typical-binding" && v.Match && len(v.Event) > 850 {
			return v.Event
		}
	}
	tb.Fatal("no such vector")
	return nil
}

// benchKinds are rules of which number 0 matches benchEvent.
var benchKinds = []struct{ name, pattern string }{
	{"exact", `{"source":["elbridge"],"detail-type":["Pod State Change"],"detail":{"cluster":["blue"],"namespace":["%[2]s"],"labels":{"app.kubernetes.io/name":["%[3]s"]}}}`},
	{"wildcard", `{"source":["elbridge"],"detail":{"cluster":["blue"],"name":[{"wildcard":"%[3]s-*-*"}]}}`},
	{"numeric", `{"source":["elbridge"],"detail":{"cluster":["blue"],"restartCount":[{"numeric":[">=",%[4]d,"<",%[5]d]}]}}`},
	{"prefix", `{"source":["elbridge"],"detail":{"cluster":["blue"],"name":[{"prefix":"%[3]s-"}]}}`},
	{"suffix", `{"source":["elbridge"],"detail":{"cluster":["blue"],"labels":{"app.kubernetes.io/name":[{"suffix":"%[3]s"}]}}}`},
	{"ignore-case", `{"source":["elbridge"],"detail":{"cluster":["blue"],"labels":{"application":[{"equals-ignore-case":"%[3]s"}]}}}`},
	{"label-keys", `{"source":["elbridge"],"detail":{"cluster":["blue"],"labels":{"application%[7]s":["checkout"]}}}`},
	{"anything-but", `{"source":["elbridge"],"detail":{"cluster":["blue"],"labels":{"application":[{"anything-but":["%[6]s","x%[1]d"]}]}}}`},
}

// benchTexts are n rules of a kind.
func benchTexts(pattern string, n int) []string {
	texts := make([]string, n)
	for i := range texts {
		namespace, app, low, other, key := "shop", "checkout", 3, "none", ""
		if i > 0 {
			namespace, app, low, other, key = fmt.Sprintf("shop-%d", i%50), fmt.Sprintf("app-%d", i), 1000+i, "checkout", fmt.Sprintf("-%d", i)
		}
		text := fmt.Sprintf(pattern+"\n%[1]d%[2]s%[3]s%[4]d%[5]d%[6]s%[7]s", i, namespace, app, low, low+1, other, key)
		texts[i], _, _ = strings.Cut(text, "\n") // every argument has been used
	}
	return texts
}

func benchPatterns(tb testing.TB, pattern string, n int) []*eventpattern.Pattern {
	tb.Helper()
	patterns := make([]*eventpattern.Pattern, n)
	for i, text := range benchTexts(pattern, n) {
		patterns[i] = mustParse(tb, text)
	}
	return patterns
}

func benchSet(tb testing.TB, pattern string, n int) *eventpattern.Set {
	tb.Helper()
	return eventpattern.NewSet(benchPatterns(tb, pattern, n))
}

// BenchmarkSet is what a bus does with each event: read it, and find
// the one rule that matches.
func BenchmarkSet(b *testing.B) {
	event := benchEvent(b)
	for _, kind := range benchKinds {
		for _, n := range []int{1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/rules=%d", kind.name, n), func(b *testing.B) {
				set := benchSet(b, kind.pattern, n)
				b.SetBytes(int64(len(event)))
				b.ReportAllocs()
				for b.Loop() {
					if hits, err := set.Match(event); len(hits) != 1 || err != nil {
						b.Fatalf("%d rules match, error %v", len(hits), err)
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			})
		}
	}
}

// BenchmarkGrowth reports how much longer an event takes with 1,000 rules than with
// one: the best of rounds that alternate, so that a busy machine troubles both alike.
func BenchmarkGrowth(b *testing.B) {
	const events = 200 // a round
	event := benchEvent(b)
	for _, kind := range benchKinds {
		b.Run(kind.name, func(b *testing.B) {
			sets := [2]*eventpattern.Set{benchSet(b, kind.pattern, 1), benchSet(b, kind.pattern, 1000)}
			best := [2]time.Duration{time.Hour, time.Hour}
			for b.Loop() {
				for i, set := range sets {
					begun := time.Now()
					for range events {
						if _, err := set.Match(event); err != nil {
							b.Fatal(err)
						}
					}
					best[i] = min(best[i], time.Since(begun))
				}
			}
			b.ReportMetric(float64(best[1])/float64(best[0]), "growth")
			b.ReportMetric(events/best[1].Seconds(), "events/s-with-1000")
		})
	}
}

// BenchmarkParsedEvent is the same as BenchmarkSet without reading the event.
func BenchmarkParsedEvent(b *testing.B) {
	e, err := eventpattern.ParseEvent(benchEvent(b))
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			set := benchSet(b, benchKinds[0].pattern, n)
			b.ReportAllocs()
			for b.Loop() {
				set.Matches(e)
			}
		})
	}
}

func BenchmarkParseEvent(b *testing.B) {
	event := benchEvent(b)
	b.SetBytes(int64(len(event)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := eventpattern.ParseEvent(event); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	pattern := []byte(`{"source":["elbridge"],"detail-type":["Pod State Change"],"detail":{"cluster":["blue"],"namespace":["shop"],"labels":{"app.kubernetes.io/name":["checkout"]}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := eventpattern.Parse(pattern); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNewSet is what a change of a bus's rules costs.
func BenchmarkNewSet(b *testing.B) {
	for _, kind := range benchKinds {
		b.Run(kind.name+"/rules=1000", func(b *testing.B) {
			patterns := benchPatterns(b, kind.pattern, 1000)
			b.ReportAllocs()
			for b.Loop() {
				eventpattern.NewSet(patterns)
			}
		})
	}
}

// BenchmarkMemory reports the memory that 1,000 patterns and a set of them keep.
func BenchmarkMemory(b *testing.B) {
	for _, kind := range benchKinds {
		b.Run(kind.name, func(b *testing.B) {
			texts := benchTexts(kind.pattern, 1000)
			for b.Loop() {
				patterns := make([]*eventpattern.Pattern, len(texts))
				before := heap()
				for i, text := range texts {
					patterns[i] = mustParse(b, text)
				}
				parsed := heap()
				set := eventpattern.NewSet(patterns)
				after := heap()
				b.ReportMetric(float64(parsed-before)/1000, "bytes/pattern")
				b.ReportMetric(float64(after-parsed)/1000, "bytes/rule-in-set")
				runtime.KeepAlive(patterns)
				runtime.KeepAlive(set)
			}
		})
	}
}

// heap is the memory in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools held
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
