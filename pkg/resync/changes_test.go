package resync_test

import "testing"

// TestChanges_P008: a changed rule is told of with what it does to groups; the
// groups that it names, and named, are compared at once.
func TestChanges_P008(t *testing.T) {
	w200 := func(w *world) { // so many groups that each has its turn each 80 s
		for i := range 200 {
			name := "g" + string(rune('a'+i/26)) + string(rune('a'+i%26))
			w.group(name)
			w.bind(name, "app="+name, constants(name))
		}
	}
	tests := map[string]struct {
		prepare, change func(w *world)
		want            string
		holds           string
		lists           bool // the cluster is listed anew
		after           int  // rounds: patterns are read in each, constants each minute
	}{
		"added": {func(w *world) { delete(w.rules, "api") }, func(w *world) { w.bind("api", "app=api", constants("api")) },
			"rule api [added] api gain=1 lose=0 hold=0", "10.0.0.5", true, 1},
		"pattern": {nil, func(w *world) { w.bind("api", "app=none", constants("api")) },
			"rule api [pattern] api gain=0 lose=0 hold=1", "10.0.0.5", true, 1},
		"disabled": {nil, func(w *world) { w.do(func() { w.rules["api"].state = "DISABLED" }) }, "rule api [disabled]", "10.0.0.5", false, 1},
		"enabled": {func(w *world) { w.rules["api"].state = "DISABLED" }, func(w *world) { w.do(func() { w.rules["api"].state = "ENABLED" }) },
			"rule api [enabled] api gain=1 lose=0 hold=0", "10.0.0.5", false, 1},
		"constants": {nil, func(w *world) { w.do(func() { w.rules["api"].constants[0] = constants("api", `"minTargets":2`) }) },
			"rule api [constants] api gain=0 lose=0 hold=0", "10.0.0.5", false, 4},
		"another group, and the old one": {nil, func(w *world) { w.do(func() { w.rules["api"].constants[0] = constants("new") }) },
			"rule api [constants] api gain=0 lose=0 hold=0 new gain=1 lose=0 hold=0", "10.0.0.5", false, 4},
		"removed":         {nil, func(w *world) { w.do(func() { delete(w.rules, "api") }) }, "rule api [removed] api gain=0 lose=0 hold=0", "10.0.0.5", false, 1},
		"of 200 groups":   {w200, func(w *world) { w.bind("api", "app=none", constants("api")) }, "rule api [pattern] api gain=0 lose=0 hold=1", "10.0.0.5", true, 2},
		"nothing changed": {nil, func(*world) {}, "", "10.0.0.5", false, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				w.two()
				w.group("new")
				if tt.prepare != nil {
					tt.prepare(w)
				}
				w.start()
				w.rounds(5) // 200 groups have had their first turn
				lists := w.local().readsOf("list")
				tt.change(w)
				w.rounds(tt.after)
				if tt.want == "" {
					w.wantTold(0, "rule [")
				} else {
					w.wantTold(1, tt.want)
				}
				w.group("api").wantHolds(tt.holds)
				if again := w.local().readsOf("list") > lists; again != tt.lists {
					t.Errorf("listed anew: %t, want %t", again, tt.lists)
				}
			})
		})
	}
}
