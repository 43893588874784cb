package targetevent_test

import (
	"strings"
	"testing"

	"github.com/elbridge/elbridge/pkg/targetevent"
)

func TestDecode(t *testing.T) {
	got, err := targetevent.Decode[targetevent.RemovalHeld]([]byte(`{"schema":1,"hash":"a","held":[{"id":"10.64.1.7","port":9999,"later":{}}],"later":1}`))
	if err != nil || got.Hash != "a" || len(got.Held) != 1 || got.Held[0].Port != 9999 {
		t.Errorf("Decode = %+v, %v", got, err)
	}
	for detail, want := range map[string]string{
		`{"schema":2}`:            "detail.schema 2: want 1",
		`{}`:                      "detail.schema 0: want 1",
		`{"schema":1,"held":"x"}`: "RemovalHeld",
		`held`:                    "RemovalHeld",
	} {
		if _, err := targetevent.Decode[targetevent.RemovalHeld]([]byte(detail)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Decode(%s) = %v, want %q", detail, err, want)
		}
	}
}
