package configuration_test

import (
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/webhook/configuration"
)

// ca is a certificate in form only.
const ca = "-----BEGIN CERTIFICATE-----\nMTIz\n-----END CERTIFICATE-----\n"

func options() configuration.Options {
	return configuration.Options{Namespace: "elbridge-system", Service: "elbridge-webhook", CABundle: []byte(ca)}
}

func build(t *testing.T, o configuration.Options) *admission.ValidatingWebhookConfiguration {
	t.Helper()
	c, err := configuration.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Each of these switches a webhook off, or turns it against the cluster, and no
// API server says so.
func TestWebhooks_I11_AreHarmlessAndNotSilentlyOff(t *testing.T) {
	for _, w := range build(t, options()).Webhooks {
		t.Run(w.Name, func(t *testing.T) {
			for problem, wrong := range map[string]bool{
				"P071 P073 failurePolicy is not Ignore, and the default is Fail":         w.FailurePolicy == nil || *w.FailurePolicy != admission.Ignore,
				"P070 P080 timeoutSeconds is not 1, and the default is 10":               w.TimeoutSeconds == nil || *w.TimeoutSeconds != 1,
				"sideEffects is not NoneOnDryRun: dry runs fail":                         w.SideEffects == nil || *w.SideEffects != admission.SideEffectClassNoneOnDryRun,
				"matchPolicy is not Equivalent":                                          w.MatchPolicy == nil || *w.MatchPolicy != admission.Equivalent,
				"an objectSelector: an Eviction has no labels to meet it":                w.ObjectSelector == nil || len(w.ObjectSelector.MatchLabels)+len(w.ObjectSelector.MatchExpressions) != 0,
				"admissionReviewVersions is not v1":                                      len(w.AdmissionReviewVersions) != 1 || w.AdmissionReviewVersions[0] != "v1",
				"neither service nor URL, or both":                                       (w.ClientConfig.Service == nil) == (w.ClientConfig.URL == nil),
				"path is not the one that is served":                                     w.ClientConfig.Service == nil || w.ClientConfig.Service.Path == nil || *w.ClientConfig.Service.Path != "/admit",
				"name has fewer than three parts: the configuration is refused":          strings.Count(w.Name, ".") < 2,
				"more than one rule or operation: one bad condition would blind another": len(w.Rules) != 1 || len(w.Rules[0].Operations) != 1,
			} {
				if wrong {
					t.Error(problem)
				}
			}
			n := w.NamespaceSelector
			if n == nil || len(n.MatchLabels) != 0 || len(n.MatchExpressions) != 1 || n.MatchExpressions[0].Key != "kubernetes.io/metadata.name" ||
				n.MatchExpressions[0].Operator != "NotIn" || strings.Join(n.MatchExpressions[0].Values, " ") != "elbridge-system" {
				t.Errorf("namespaceSelector %+v: want all namespaces but the webhook's own", n)
			}
			r := w.Rules[0].Rule
			if len(r.APIGroups) != 1 || r.APIGroups[0] != "" || r.APIVersions[0] != "v1" || r.Scope == nil || *r.Scope != admission.NamespacedScope {
				t.Errorf("rule %+v: want pods of the core group, namespaced", r)
			}
		})
	}
}

func TestWebhooksCoverEveryChange(t *testing.T) {
	var got []string
	for _, w := range build(t, options()).Webhooks {
		got = append(got, string(w.Rules[0].Operations[0])+" "+strings.Join(w.Rules[0].Resources, " "))
		if hasCondition := len(w.MatchConditions) > 0; hasCondition != strings.HasPrefix(got[len(got)-1], "UPDATE") {
			t.Errorf("%s: condition %v: deletes and evictions must pass whatever they look like, updates must not", w.Name, hasCondition)
		}
	}
	if want := "UPDATE pods/status, DELETE pods, CREATE pods/eviction, UPDATE pods"; strings.Join(got, ", ") != want {
		t.Errorf("webhooks for %s, want %s", strings.Join(got, ", "), want)
	}
}

// With Ignore an expression that errs on a missing field loses events silently.
func TestConditionsTakeEveryFieldAsOptional(t *testing.T) {
	o := options()
	o.Annotations = podevent.AllowList{"a.b/c", "d.e/*"}
	for _, w := range build(t, o).Webhooks {
		for _, c := range w.MatchConditions {
			for word := range strings.FieldsFuncSeq(c.Expression, func(r rune) bool { return strings.ContainsRune(" ()!&|", r) }) {
				for _, root := range []string{"object.", "oldObject."} {
					if rest, ok := strings.CutPrefix(word, root); ok && !strings.HasPrefix(rest, "?") {
						t.Errorf("%s: %s is not optional", w.Name, word)
					}
				}
				if strings.Contains(strings.ReplaceAll(word, ".?", ""), ".status") || strings.Contains(strings.ReplaceAll(word, ".?", ""), ".metadata") {
					t.Errorf("%s: %s is not optional", w.Name, word)
				}
			}
			if len(c.Expression) > 5<<10 {
				t.Errorf("%s: %d characters", w.Name, len(c.Expression))
			}
		}
	}
}

func TestAnnotationsInConditions(t *testing.T) {
	condition := func(l podevent.AllowList) string {
		o := options()
		o.Annotations = l
		ws := build(t, o).Webhooks
		return ws[len(ws)-1].MatchConditions[0].Expression
	}
	if got := condition(nil); strings.Contains(got, "annotations") {
		t.Errorf("no annotation allowed, but changes of some pass: %s", got)
	}
	if got := condition(podevent.AllowList{"a.b/c"}); !strings.Contains(got, `annotations[?"a.b/c"]`) {
		t.Errorf("changes of a.b/c do not pass: %s", got)
	}
	if got := condition(podevent.AllowList{"a.b/*"}); !strings.Contains(got, `annotations.orValue({})`) {
		t.Errorf("changes of a.b/* do not pass: %s", got)
	}
}

func TestClients(t *testing.T) {
	o := options()
	o.Port = 8443
	s := build(t, o).Webhooks[0].ClientConfig
	if s.Service.Namespace != "elbridge-system" || s.Service.Name != "elbridge-webhook" || *s.Service.Port != 8443 || string(s.CABundle) != ca {
		t.Errorf("service %+v", s.Service)
	}
	o.Service, o.URL, o.CABundle = "", "https://127.0.0.1:8443/", []byte(ca+ca) // P076: two CAs
	if u := build(t, o).Webhooks[0].ClientConfig; u.URL == nil || *u.URL != "https://127.0.0.1:8443/admit" || u.Service != nil {
		t.Errorf("client %+v", u)
	}
}

func TestOptionsListEveryFault(t *testing.T) {
	tests := map[string]struct {
		o    configuration.Options
		want []string
	}{
		"nothing":        {configuration.Options{}, []string{"no namespace", "exactly one of service and URL"}},
		"both":           {configuration.Options{Namespace: "a", Service: "b", URL: "https://c"}, []string{"exactly one of service and URL"}},
		"plain URL":      {configuration.Options{URL: "http://c", CABundle: []byte("x")}, []string{"no namespace", `URL "http://c": want https`, "CA bundle: want PEM"}},
		"URL with path":  {configuration.Options{Namespace: "a", URL: "https://c/x"}, []string{"want https://host:port"}},
		"port":           {configuration.Options{Namespace: "a", Service: "b", Port: 70000}, []string{"port 70000: want 1 to 65535"}},
		"key in the CAs": {configuration.Options{Namespace: "a", Service: "b", CABundle: []byte(ca + "-----BEGIN PRIVATE KEY-----\nMTIz\n-----END PRIVATE KEY-----\n")}, []string{"CA bundle"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := configuration.New(tt.o)
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q in it", err, want)
				}
			}
		})
	}
}

func TestYAML(t *testing.T) {
	text, err := configuration.YAML(options())
	if err != nil {
		t.Fatal(err)
	}
	var c admission.ValidatingWebhookConfiguration
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		t.Fatal(err)
	}
	if c.Kind != "ValidatingWebhookConfiguration" || c.APIVersion != "admissionregistration.k8s.io/v1" || c.Name != configuration.Name || len(c.Webhooks) != 4 {
		t.Errorf("YAML:\n%s", text)
	}
	if strings.Contains(string(text), "creationTimestamp") {
		t.Error("YAML has fields that are the API server's")
	}
}
