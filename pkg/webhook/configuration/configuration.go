// Package configuration generates the ValidatingWebhookConfiguration that sends
// pods' changes to the webhook. It stands apart so that the webhook itself does
// not link the Kubernetes types. It decides what is asked for and what is kept
// inside the API server as noise; what an answer means, it leaves to others.
//
// Nearly everything that is wrong with such a configuration is silent: with
// failurePolicy Ignore an API server skips a webhook whose condition errs, whose
// selector matches nothing, whose path or certificate is wrong. So there is one
// function, and its test goes through them.
package configuration

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/elbridge/elbridge/pkg/podevent"
	"github.com/elbridge/elbridge/pkg/webhook"
)

// Name is the name of the configuration where Options give none.
const Name = "elbridge"

// suffix makes the webhooks' names fully qualified, as they have to be.
const suffix = ".webhook.elbridge.internal"

// timeoutSeconds is the least there is. A webhook that can't be reached costs
// every write of a pod this much (P070, P080).
const timeoutSeconds = 1

// Options say where the webhook is.
type Options struct {
	Name   string            // of the configuration, default Name
	Labels map[string]string // of the configuration
	// Namespace is the webhook's own. It is left out, so that the webhook never
	// waits for itself. The price: no binding hears of pods in it.
	Namespace string
	// ExcludedNamespaces are left out as well.
	ExcludedNamespaces []string
	// Service is the name of the webhook's Service in its namespace. The
	// certificate has to name <service>.<namespace>.svc.
	Service string // exactly one of Service and URL
	Port    int32  // of the Service, default 443
	URL     string // https://host:port
	// CABundle is PEM. Two CAs in it are both trusted: put the new one in before
	// certificates change, take the old one out afterwards (P076). Empty where
	// something else, such as cert-manager, fills it in.
	CABundle []byte
	// Annotations is the webhook's own list. Changes of others are noise.
	Annotations podevent.AllowList
}

// New returns the configuration. Its error lists every fault of the options.
func New(o Options) (*admission.ValidatingWebhookConfiguration, error) {
	client, err := o.client()
	if err := errors.Join(err, o.check()); err != nil {
		return nil, fmt.Errorf("webhook configuration: %w", err)
	}
	name := o.Name
	if name == "" {
		name = Name
	}
	c := &admission.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admission.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: o.Labels},
	}
	// Several webhooks, so that one bad condition can't blind all of them.
	for _, w := range []struct {
		name, resource string
		operation      admission.OperationType
		condition      string
	}{
		{"status", "pods/status", admission.Update, statusCondition},
		{"delete", "pods", admission.Delete, ""},
		{"eviction", "pods/eviction", admission.Create, ""},
		{"labels", "pods", admission.Update, updateCondition(o.Annotations)},
	} {
		c.Webhooks = append(c.Webhooks, o.webhook(w.name, w.resource, w.operation, w.condition, client))
	}
	return c, nil
}

// YAML returns the configuration as it is applied.
func YAML(o Options) ([]byte, error) {
	c, err := New(o)
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(c)
}

func (o Options) webhook(name, resource string, operation admission.OperationType, condition string, client admission.WebhookClientConfig) admission.ValidatingWebhook {
	// The API server's default of each of these that has one is another.
	var (
		ignore     = admission.Ignore
		equivalent = admission.Equivalent
		noDryRuns  = admission.SideEffectClassNoneOnDryRun
		timeout    = int32(timeoutSeconds)
		namespaced = admission.NamespacedScope
	)
	w := admission.ValidatingWebhook{
		Name:         name + suffix,
		ClientConfig: client,
		Rules: []admission.RuleWithOperations{{
			Operations: []admission.OperationType{operation},
			Rule:       admission.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resource}, Scope: &namespaced},
		}},
		FailurePolicy:           &ignore,
		MatchPolicy:             &equivalent,
		NamespaceSelector:       o.namespaces(),
		ObjectSelector:          &metav1.LabelSelector{}, // any other loses all evictions
		SideEffects:             &noDryRuns,
		TimeoutSeconds:          &timeout,
		AdmissionReviewVersions: []string{"v1"},
	}
	if condition != "" {
		w.MatchConditions = []admission.MatchCondition{{Name: "may-change-a-claim", Expression: condition}}
	}
	return w
}

// namespaces selects by a label that the API server itself puts on every
// namespace.
func (o Options) namespaces() *metav1.LabelSelector {
	values := append([]string{o.Namespace}, o.ExcludedNamespaces...)
	slices.Sort(values)
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: slices.Compact(values),
	}}}
}

func (o Options) client() (admission.WebhookClientConfig, error) {
	c := admission.WebhookClientConfig{CABundle: o.CABundle}
	switch {
	case (o.Service == "") == (o.URL == ""):
		return c, errors.New("want exactly one of service and URL")
	case o.Service != "":
		path, port := webhook.AdmitPath, o.Port
		if port == 0 {
			port = 443
		}
		c.Service = &admission.ServiceReference{Namespace: o.Namespace, Name: o.Service, Path: &path, Port: &port}
		if port < 1 || port > 65535 {
			return c, fmt.Errorf("port %d: want 1 to 65535", port)
		}
	default:
		u, err := url.Parse(o.URL)
		if err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return c, fmt.Errorf("URL %q: want https://host:port", o.URL)
		}
		full := "https://" + u.Host + webhook.AdmitPath
		c.URL = &full
	}
	return c, nil
}

func (o Options) check() error {
	var faults []error
	if o.Namespace == "" {
		faults = append(faults, errors.New("no namespace: want the one that the webhook runs in"))
	}
	for rest := o.CABundle; len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			faults = append(faults, errors.New("CA bundle: want PEM certificates and nothing else"))
			break
		}
		if strings.TrimSpace(string(rest)) == "" {
			break
		}
	}
	return errors.Join(faults...)
}
