package webhook

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/webhook/webhooktest"
)

// script is a fakePods of words: "alive", "terminating", "gone", "error", and
// "other" for a living pod of the same name.
func script(words string) *fakePods {
	f := &fakePods{}
	for w := range strings.FieldsSeq(words) {
		f.reads = append(f.reads, func() (*podevent.Pod, error) {
			pod := &podevent.Pod{Namespace: "ingress", Name: "web-0", UID: "uid-web-0", ResourceVersion: "7", PodIPs: []string{"10.64.1.7"}}
			switch w {
			case "gone":
				return nil, ErrPodGone
			case "error":
				return nil, errors.New("403 Forbidden")
			case "other":
				pod.UID = "uid-2"
			case "terminating":
				pod.Terminating = true
			}
			return pod, nil
		})
	}
	return f
}

func TestEvictions(t *testing.T) {
	tests := map[string]struct {
		reads, uid     string
		events, result string
	}{
		"took effect at once":               {"terminating", "", "Evicted", evictionSeen},
		"took effect a little later":        {"alive alive alive terminating", "", "Evicted", evictionSeen},
		"P077 no grace: gone between reads": {"alive gone", "", "Evicted", evictionSeen},
		"gone and come back as another":     {"alive other", "", "Evicted", evictionSeen},
		"refused by a disruption budget":    {"alive", "", "", evictionRefused},
		"of an unknown pod":                 {"gone", "", "", evictionUnknown},
		"of another pod of that name":       {"other", "uid-web-0", "", evictionUnknown},
		"with its UID":                      {"alive terminating", "uid-web-0", "Evicted", evictionSeen},
		"API server not readable":           {"error", "", "", evictionUnreadable},
		"API server readable in the end":    {"error error terminating", "", "Evicted", evictionSeen},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWebhook(t, &fakeBus{}, script(tt.reads))
			synctest.Test(t, func(t *testing.T) {
				h := w.handler
				results := make(chan string, 1)
				h.evictor = newEvictor(w.deps.Pods, h.evicted, func(r string) { results <- r }, w.deps.Log)
				if got := admit(w, webhooktest.Review{UID: "id-1", Operation: "CREATE pods/eviction", EvictUID: tt.uid}); got != allowedAnswer("id-1") {
					t.Errorf("answer %s", got)
				}
				if got := <-results; got != tt.result {
					t.Errorf("result %s, want %s", got, tt.result)
				}
				h.evictor.stop()
			})
			if got := waiting(w); got != tt.events {
				t.Errorf("events %q, want %q", got, tt.events)
			}
		})
	}
}

func TestEvictions_I11_AreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		results := map[string]int{}
		v := newEvictor(script("alive"), func(_, _ *podevent.Pod) {}, func(r string) {
			mu.Lock()
			defer mu.Unlock()
			results[r]++
		}, slog.New(slog.DiscardHandler))
		for i := range maxEvictions + 10 {
			v.watch(eviction{namespace: "ingress", name: fmt.Sprint("web-", i)})
		}
		v.watch(eviction{namespace: "ingress", name: "web-0"})
		if n := v.waiting(); n != maxEvictions || results[evictionFull] != 10 || results[evictionJoined] != 1 {
			t.Errorf("%d watched, want %d; results %v", n, maxEvictions, results)
		}
		v.stop()
		if n := v.waiting(); n != 0 || results[evictionStopped] != maxEvictions {
			t.Errorf("%d watched after stop; results %v", n, results)
		}
		v.watch(eviction{name: "late"})
		if results[evictionStopped] != maxEvictions+1 {
			t.Errorf("an eviction was taken after stop")
		}
	})
}
