package stack

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/wait"
	certutil "k8s.io/client-go/util/cert"

	"github.com/elbridge/elbridge/pkg/webhook/configuration"
)

// WebhookImage is the image name that stands for the webhook's local binary.
const WebhookImage = "elbridge.local/webhook"

// webhookPort is the container's and the Service's: without root a Service's
// port is 1024 or higher here.
const webhookPort = 8443

// webhookMetricsPort is the container's for metrics and probes.
const webhookMetricsPort = 8080

// webhookManifest is the webhook as the chart will deploy it, as far as the
// local stack is concerned.
var webhookManifest = template.Must(template.New("webhook").Parse(`
apiVersion: v1
kind: Namespace
metadata:
  name: {{.Namespace}}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{.Name}}
  namespace: {{.Namespace}}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{.Name}}-tls
  namespace: {{.Namespace}}
type: kubernetes.io/tls
data:
  tls.crt: {{.Cert}}
  tls.key: {{.Key}}
---
apiVersion: v1
kind: Service
metadata:
  name: {{.Name}}
  namespace: {{.Namespace}}
spec:
  selector: {app: {{.Name}}}
  ports:
  - {name: https, port: {{.Port}}, targetPort: {{.Port}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{.Name}}
  namespace: {{.Namespace}}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {app: {{.Name}}}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{.Name}}
  namespace: {{.Namespace}}
spec:
  replicas: {{.Replicas}}
  selector:
    matchLabels: {app: {{.Name}}}
  strategy:
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  template:
    metadata:
      labels: {app: {{.Name}}}
    spec:
      serviceAccountName: {{.Name}}
      terminationGracePeriodSeconds: 15
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: {{.Name}}}}}
      containers:
      - name: webhook
        image: {{.Image}}
        args: ["--cluster={{.Cluster}}", "--bus={{.Bus}}", "--listen=$(POD_IP):{{.Port}}", "--metrics-listen=$(POD_IP):8080",
               "--tls-cert=/tls/tls.crt", "--tls-key=/tls/tls.key", "--drain=2s",
               "--token-file=/var/run/secrets/kubernetes.io/serviceaccount/token", "--ca-file=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"]
        env:
        - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
{{- range .Env}}
        - {name: {{.Name}}, value: "{{.Value}}"}
{{- end}}
        ports:
        - {name: https, containerPort: {{.Port}}}
        - {name: metrics, containerPort: 8080}
        readinessProbe:
          httpGet: {path: /readyz, port: 8080}
          periodSeconds: 1
        volumeMounts:
        - {name: tls, mountPath: /tls, readOnly: true}
      volumes:
      - {name: tls, secret: {secretName: {{.Name}}-tls}}
`))

type variable struct{ Name, Value string }

// startWebhook deploys the webhook, waits until it serves, and only then tells
// the API server of it.
func (s *Stack) startWebhook(ctx context.Context) error {
	host := WebhookName + "." + WebhookSpace + ".svc"
	cert, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		return err
	}
	env := webhookRole.env(s.AWS.Endpoint)
	var vars []variable
	for _, name := range slices.Sorted(maps.Keys(env)) {
		vars = append(vars, variable{name, env[name]})
	}
	var text strings.Builder
	err = webhookManifest.Execute(&text, map[string]any{
		"Namespace": WebhookSpace, "Name": WebhookName, "Image": WebhookImage, "Cluster": ClusterName, "Bus": Bus, "Port": webhookPort,
		"Replicas": s.Config.WebhookReplicas, "Env": vars,
		"Cert": base64.StdEncoding.EncodeToString(cert), "Key": base64.StdEncoding.EncodeToString(key),
	})
	if err != nil {
		return err
	}
	if err := s.Admin.Apply(ctx, []byte(text.String())); err != nil {
		return err
	}
	if err := s.WaitDeployment(ctx, WebhookSpace, WebhookName, s.Config.WebhookReplicas); err != nil {
		return fmt.Errorf("%w; the webhook's output is in %s", err, s.Config.Dir)
	}
	s.webhookConfig, err = configuration.YAML(configuration.Options{Name: "elbridge", Namespace: WebhookSpace, Service: WebhookName, Port: webhookPort, CABundle: cert})
	if err != nil {
		return err
	}
	if err := s.Admin.Apply(ctx, s.webhookConfig); err != nil {
		return err
	}
	return s.waitAdmission(ctx)
}

// WaitDeployment waits until a Deployment has exactly n pods, all of them ready
// and of its newest template.
func (s *Stack) WaitDeployment(ctx context.Context, namespace, name string, n int) error {
	var d struct {
		Metadata struct{ Generation int64 } `json:"metadata"`
		Status   struct {
			ObservedGeneration                       int64
			Replicas, ReadyReplicas, UpdatedReplicas int
		} `json:"status"`
	}
	err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		d.Status.Replicas, d.Status.ReadyReplicas, d.Status.UpdatedReplicas = 0, 0, 0 // zero values are left out of JSON
		if err := s.Admin.Get(ctx, "/apis/apps/v1/namespaces/"+namespace+"/deployments/"+name, &d); err != nil {
			return false, nil //nolint:nilerr // it may not exist yet; the context bounds the wait
		}
		st := d.Status
		return st.ObservedGeneration >= d.Metadata.Generation && st.Replicas == n && st.ReadyReplicas == n && st.UpdatedReplicas == n, nil
	})
	if err != nil {
		return fmt.Errorf("deployment %s/%s: %d of %d pods ready, %d updated: %w", namespace, name, d.Status.ReadyReplicas, n, d.Status.UpdatedReplicas, err)
	}
	return nil
}

// WithoutWebhook takes the webhook's configuration away and returns what brings
// it back.
func (s *Stack) WithoutWebhook(ctx context.Context) (restore func(context.Context) error, err error) {
	if err := s.Admin.Delete(ctx, s.webhookConfig); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		if err := s.Admin.Apply(ctx, s.webhookConfig); err != nil {
			return err
		}
		return s.waitAdmission(ctx)
	}, nil
}
