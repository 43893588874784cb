package resync_test

import (
	"strings"
	"testing"
	"time"

	"github.com/elbridge/elbridge/pkg/targetgroup"
)

// shared has the group web serve ten pods of the rule "web2", one of them unhealthy,
// which would be a witness against it (I9); the rule "web", which shares the group,
// selects others.
func (w *world) shared(web, web2 string) (all string) {
	all = w.serve(10)
	w.web().hold("10.0.1.3=unhealthy")
	w.bind("web", "app=old", web)
	w.bind("web2", "app=web", web2)
	return all
}

// constantsOf gives the rule's one target other constants.
func (w *world) constantsOf(rule, text string) {
	w.do(func() { w.rules[rule].constants[0] = text })
}

// TestRuleInDoubt_I8: while a rule can't be understood, or names several groups,
// nothing goes from any that it named or speaks of, however the group's other
// rules are; what is missing is added all the same.
func TestRuleInDoubt_I8(t *testing.T) {
	empty := constants("web", `"empty":true`)
	plain := constants("web")
	tagged := `{"targetGroup":{"tags":{"app":"web"}},"port":8080}`
	typo := func(w *world) { w.constantsOf("web2", constants("web", `"minTragets":2`)) }
	tests := map[string]struct {
		web, web2 string
		cold      bool // it is so from the first round on
		lose      func(w *world)
	}{
		"a typo beside a rule that empties":         {empty, constants("web"), false, typo},
		"a typo beside another rule":                {plain, constants("web"), false, typo},
		"a typo, after a cold start":                {plain, constants("web"), true, typo},
		"an ARN that is cut off, after cold start":  {plain, constants("web"), true, func(w *world) { w.constantsOf("web2", strings.ReplaceAll(constants("web"), "abcdef", "")) }},
		"a name that is no ARN, after a cold start": {plain, constants("web"), true, func(w *world) { w.constantsOf("web2", `{"targetGroup":"web","port":8080}`) }},
		"a group that is spelt in another way":      {plain, constants("web"), false, func(w *world) { w.constantsOf("web2", `{"targetGroup":"wbe","port":8080}`) }},
		"no JSON at all":                            {plain, constants("web"), false, func(w *world) { w.constantsOf("web2", `{`) }},
		"the pattern can't be read":                 {plain, constants("web"), true, func(w *world) { w.do(func() { w.rules["web2"].pattern = `{"detail":{}` }) }},
		"tags that suddenly match two groups":       {plain, tagged, false, func(w *world) { w.do(func() { w.groups["other"].tags["app"] = "web" }) }},
		"tags of two groups, after a cold start":    {plain, tagged, true, func(w *world) { w.do(func() { w.groups["other"].tags["app"] = "web" }) }},
		"tags and a typo":                           {empty, tagged, false, func(w *world) { w.constantsOf("web2", tagged[:len(tagged)-1]+`,"minTragets":2}`) }},
		"tags and a typo, after a cold start":       {plain, tagged, true, func(w *world) { w.constantsOf("web2", tagged[:len(tagged)-1]+`,"minTragets":2}`) }},
		"tags that no group has any more":           {plain, tagged, false, func(w *world) { w.do(func() { delete(w.groups["web"].tags, "app") }) }},
		"tags that can't be read":                   {plain, tagged, false, func(w *world) { w.do(func() { w.describeErr = targetgroup.ErrDenied }) }},
		"another type of group": {plain, tagged, false, func(w *world) {
			w.do(func() { w.groups["web"].tags["app"], w.groups["lambda"].tags["app"] = "", "web" })
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				all := w.shared(tt.web, tt.web2)
				w.web().tags["app"] = "web"
				w.group("other")
				w.group("lambda").kind = "lambda"
				if tt.cold {
					tt.lose(w)
				}
				w.start()
				w.rounds(2)
				if !tt.cold {
					tt.lose(w)
				}
				w.rounds(50)
				w.local().pod("n ip=10.0.7.7 app=old")
				w.rounds(1)
				w.wantTold(0, "changed web -")
				if !strings.Contains(tt.web, "empty") {
					w.web().wantHolds(all + " 10.0.7.7")
					w.wantTold(1, "changed web +10.0.7.7")
				} else {
					w.web().wantHolds(all)
				}
				w.wantSome("problem target group " + arnOf("web") + ": nothing is removed from it, as rule " + ruleARN("web2"))
				w.wantTold(0, "finding web unbound")
			})
		})
	}
	t.Run("what is mended goes on", func(t *testing.T) {
		story(t, func(w *world) {
			all := w.shared(constants("web"), constants("web"))
			w.start()
			w.rounds(2)
			typo(w)
			w.rounds(5)
			w.web().hold("10.9.9.9=unhealthy")
			w.rounds(2)
			w.web().wantHolds(all + " 10.9.9.9")
			w.constantsOf("web2", constants("web"))
			w.rounds(4)
			w.web().wantHolds(all)
		})
	})
	t.Run("other groups are not concerned", func(t *testing.T) {
		story(t, func(w *world) {
			w.shared(constants("web"), constants("web"))
			w.group("api").hold("10.9.9.9=unhealthy")
			w.bind("api", "app=api", constants("api"))
			w.local().pod("x ip=10.0.0.5 app=api")
			typo(w)
			w.start()
			w.rounds(3)
			w.group("api").wantHolds("10.0.0.5")
		})
	})
}

// TestUnlisted_I6_I8: what can't be found out in one account holds the groups that
// may be meant, and no others; what was listed once goes on serving.
func TestUnlisted_I6_I8(t *testing.T) {
	const role = `"roleArn":"arn:aws:iam::111122223333:role/r"`
	tests := map[string]struct {
		constants string // of a rule of which the role is refused
		holds     bool   // the group api keeps its target
	}{
		"an ARN means itself":                    {constants("far", role), false},
		"an ARN, of the very group":              {constants("api", role), true},
		"a name means a group of the name":       {`{"targetGroup":{"name":"far"},"port":80,` + role + `}`, false},
		"the group's name":                       {`{"targetGroup":{"name":"api"},"port":80,` + role + `}`, true},
		"tags may mean any group of the account": {`{"targetGroup":{"tags":{"a":"b"}},"port":80,` + role + `}`, true},
		"tags of another account":                {`{"targetGroup":{"tags":{"a":"b"}},"port":80,` + strings.Replace(role, "1111", "4444", 1) + `}`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				w.group("api").hold("10.9.9.9=unhealthy")
				w.bind("api", "app=api", constants("api"))
				w.local().pod("x ip=10.0.0.5 app=api")
				w.bind("far", "app=far", tt.constants)
				w.listErr["arn:aws:iam::111122223333:role/r"] = targetgroup.ErrDenied
				w.listErr["arn:aws:iam::444422223333:role/r"] = targetgroup.ErrDenied
				w.start()
				w.rounds(3)
				want := "10.0.0.5"
				if tt.holds {
					want += " 10.9.9.9"
				}
				w.group("api").wantHolds(want)
				w.wantSome("problem what rule " + ruleARN("far") + " names was not found out")
			})
		})
	}
	t.Run("a listing that fails later", func(t *testing.T) {
		story(t, func(w *world) {
			all := w.serve(3)
			w.group("api")
			w.bind("api", "app=api", `{"targetGroup":{"name":"api"},"port":8080}`)
			w.local().pod("x ip=10.0.0.5 app=api")
			w.start()
			w.rounds(2)
			w.do(func() { w.listErr[""] = targetgroup.ErrDenied })
			w.pass(20 * time.Minute)
			w.web().hold("10.9.9.9=unhealthy")
			w.web().drop("10.0.1.1")
			w.group("api").drop("10.0.0.5")
			before := w.callsOf("list", "")
			w.rounds(3)
			w.web().wantHolds(all)
			w.group("api").wantHolds("10.0.0.5")
			w.wantSome("problem target groups as they were known before are used")
			if n := w.callsOf("list", "") - before; n > 4 {
				t.Errorf("the groups were listed %d times in 3 rounds", n)
			}
		})
	})
}

// TestTags_P058: all bindings by tags are resolved by one reading of the account's
// tags, at most once a minute, and every call of it is counted.
func TestTags_P058_P064(t *testing.T) {
	story(t, func(w *world) {
		for _, name := range []string{"a", "b", "c", "d"} {
			w.group(name).tags["app"] = name
			w.bind(name, "app="+name, `{"targetGroup":{"tags":{"app":"`+name+`"}},"port":8080}`)
			w.local().pod(name + " ip=10.0.0.1 app=" + name)
		}
		for _, ip := range many(40) {
			w.group("g" + strings.ReplaceAll(ip, ".", "-"))
		}
		w.start()
		w.pass(4*time.Minute - time.Second)
		for _, name := range []string{"a", "b", "c", "d"} {
			w.group(name).wantHolds("10.0.0.1")
		}
		tags, counted := w.callsOf("tags", ""), w.metric("aws_calls_total", "operation", "DescribeTags")
		if tags > 4*3+3 || float64(tags) != counted {
			t.Errorf("%d calls for tags in 4 minutes, %v counted: want three a minute and three for unbound groups", tags, counted)
		}
		if n := w.callsOf("describe", ""); n > 0 {
			t.Errorf("%d groups were described", n)
		}
		w.do(func() { w.groups["a"].tags["app"], w.groups["b"].tags["app"] = "b", "a" })
		w.rounds(5)
		w.wantTold(0, "invalid")
	})
}
