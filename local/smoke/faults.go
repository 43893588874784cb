package smoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	certutil "k8s.io/client-go/util/cert"

	"crypto/tls"
	"encoding/base64"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/stack"
)

// otherWebhook is somebody else's admission webhook for deletes of pods in
// namespace shop.
const otherWebhook = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: other}
webhooks:
- name: other.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  timeoutSeconds: 30
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [pods]}]
  clientConfig: {url: %q, caBundle: %s}
`

// withOther runs act while another webhook answers deletes as told.
func (r *Runner) withOther(ctx context.Context, delay time.Duration, allow bool, act func(hit func() int) error) error {
	cert, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return err
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		return err
	}
	hits := make(chan struct{}, 1000)
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var review struct {
			Request struct{ UID string }
		}
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		hits <- struct{}{}
		select {
		case <-time.After(delay):
		case <-req.Context().Done():
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
			"response": map[string]any{"uid": review.Request.UID, "allowed": allow}})
	})}
	go server.Serve(l) //nolint:errcheck // it ends with Close
	defer server.Close()
	manifest := []byte(fmt.Sprintf(otherWebhook, "https://"+l.Addr().String(), base64.StdEncoding.EncodeToString(cert)))
	if err := r.S.Admin.Apply(ctx, manifest); err != nil {
		return err
	}
	defer func() { _ = r.S.Admin.Delete(context.WithoutCancel(ctx), manifest) }() // failurePolicy is Ignore: a leftover delays nothing
	if err := r.otherIsAsked(ctx, hits); err != nil {
		return err
	}
	return act(func() int { return len(hits) })
}

// otherIsAsked deletes pods until the API server knows of the other webhook.
func (r *Runner) otherIsAsked(ctx context.Context, hits chan struct{}) error {
	return r.until(ctx, "the API server asks the other webhook", func(ctx context.Context) (bool, error) {
		// A dry run asks webhooks without side effects and deletes nothing.
		err := r.S.Admin.REST().Delete().AbsPath("/api/v1/namespaces/shop/pods/nobody").Param("dryRun", "All").Do(ctx).Error()
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return false, err
		}
		p, err := r.one(ctx, "app=web")
		if err != nil {
			return false, err
		}
		err = r.S.Admin.REST().Delete().AbsPath("/api/v1/namespaces/shop/pods/"+p.Name).Param("dryRun", "All").Do(ctx).Error()
		if err != nil && !apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "denied the request") {
			return false, err
		}
		select {
		case <-hits:
			return true, nil
		default:
			return false, nil
		}
	})
}

func deleteDelayed(ctx context.Context, r *Runner) (note string, err error) {
	const delay = 5 * time.Second
	err = r.withOther(ctx, delay, true, func(func() int) error {
		p, err := r.one(ctx, "app=web")
		if err != nil {
			return err
		}
		key := p.Status.PodIP + ":8080"
		start := time.Now()
		if err := r.deletePod(ctx, p.Name, -1); err != nil {
			return err
		}
		stored := time.Since(start)
		if stored < delay-time.Second {
			return fmt.Errorf("the delete took %s: the other webhook did not delay it", stored)
		}
		if err := r.becomes(ctx, r.web, key, "draining"); err != nil {
			return err
		}
		note = fmt.Sprintf("stored after %.1f s, deregistered %.1f s later", stored.Seconds(), (time.Since(start) - stored).Seconds())
		return nil
	})
	if err != nil {
		return note, err
	}
	return note, r.exactly(ctx, want{pods: 2})
}

func deleteRefused(ctx context.Context, r *Runner) (string, error) {
	err := r.withOther(ctx, 0, false, func(func() int) error {
		p, err := r.one(ctx, "app=web")
		if err != nil {
			return err
		}
		if err := r.deletePod(ctx, p.Name, -1); err == nil {
			return errors.New("the delete was not refused")
		}
		key := p.Status.PodIP + ":8080"
		return r.stays(ctx, r.quiet(), r.web, "a delete that was refused changes nothing", func(t map[string]string) bool {
			return t[key] != "" && t[key] != "draining"
		})
	})
	if err != nil {
		return "", err
	}
	return "", r.exactly(ctx, want{pods: 2})
}

func webhookKilled(ctx context.Context, r *Runner) (string, error) {
	pods, err := r.S.Nodes.Pods(ctx)
	if err != nil {
		return "", err
	}
	killed := 0
	for _, p := range pods {
		for _, c := range p.Containers {
			if p.Namespace == stack.WebhookSpace && c.PID > 0 {
				if err := syscall.Kill(c.PID, syscall.SIGKILL); err != nil {
					return "", fmt.Errorf("killing the webhook: %w", err)
				}
				killed++
			}
		}
	}
	if killed == 0 {
		return "", errors.New("found no webhook process to kill")
	}
	err = r.until(ctx, "the webhook is down", func(ctx context.Context) (bool, error) {
		return r.S.WebhookReady(ctx) == 0, nil
	})
	if err != nil {
		return "", err
	}
	if err := r.S.WaitDeployment(ctx, stack.WebhookSpace, stack.WebhookName, killed); err != nil {
		return "", err
	}
	if err := r.scale(ctx, "web", 3); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, want{pods: 3}); err != nil {
		return "", err
	}
	if err := r.scale(ctx, "web", 2); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d processes killed", killed), r.exactly(ctx, want{pods: 2})
}

// outage is how long the API server or ELB's rate is out of reach.
const outage = 10 * time.Second

// during scales web while something is broken, lets outage pass, mends it and
// returns how long the group took from then.
func (r *Runner) during(ctx context.Context, mend func()) (string, error) {
	if err := r.scale(ctx, "web", 4); err != nil {
		return "", err
	}
	before := r.S.Held.Serving(r.web)
	err := r.stays(ctx, outage, r.web, "nothing can change in an outage", func(map[string]string) bool {
		return len(r.S.Held.Serving(r.web)) == len(before)
	})
	if err != nil {
		return "", err
	}
	mend()
	start := time.Now()
	if err := r.exactly(ctx, want{pods: 4}); err != nil {
		return "", err
	}
	note := fmt.Sprintf("right %.1f s after its end", time.Since(start).Seconds())
	if err := r.scale(ctx, "web", 2); err != nil {
		return note, err
	}
	return note, r.exactly(ctx, want{pods: 2})
}

func apiServerUnreachable(ctx context.Context, r *Runner) (string, error) {
	r.S.Gate.Shut()
	defer r.S.Gate.Open()
	return r.during(ctx, r.S.Gate.Open)
}

func throttled(ctx context.Context, r *Runner) (string, error) {
	faults := r.S.Cloud.Server.Faults
	var ids []string
	mend := func() {
		for _, id := range ids {
			faults.Remove(id)
		}
	}
	defer mend()
	for _, role := range []string{stack.RegistrarRole, stack.ResyncRole} {
		id, err := faults.Add(core.Fault{Service: "elasticloadbalancing", Principal: role, Kind: core.FaultThrottle})
		if err != nil {
			return "", err
		}
		ids = append(ids, id)
	}
	return r.during(ctx, mend)
}

// forged puts events that no webhook sent: of a pod that does not exist, and of
// an unknown one with a live pod's address.
func forged(ctx context.Context, r *Runner) (string, error) {
	p, err := r.one(ctx, "app=web")
	if err != nil {
		return "", err
	}
	event := func(address, reason string, terminating bool) types.PutEventsRequestEntry {
		return types.PutEventsRequestEntry{EventBusName: new(stack.Bus), Source: new("elbridge"), DetailType: new("Pod State Change"), Detail: new(fmt.Sprintf(
			`{"schema":1,"cluster":"local","namespace":"shop","name":"ghost","uid":"no-such-uid","resourceVersion":"1","podIP":%q,"podIPs":[%q],"nodeName":%q,`+
				`"hostNetwork":false,"phase":"Running","ready":true,"containersReady":true,"terminating":%t,"labels":{"app":"web"},"annotations":{},"reason":%q,`+
				`"observedAt":%q,"webhook":{"version":"0","instance":"forged"}}`, address, address, p.Spec.NodeName, terminating, reason, time.Now().UTC().Format("2006-01-02T15:04:05.000Z")))}
	}
	out, err := r.S.AWS.Events.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{
		event("10.64.3.250", "IPAssigned", false), event(p.Status.PodIP, "Terminating", true), event(p.Status.PodIP, "Deleted", true)}})
	if err != nil {
		return "", err
	}
	if out.FailedEntryCount > 0 {
		return "", fmt.Errorf("the bus took not all events: %v", out.Entries)
	}
	before := strings.Join(r.S.Held.Serving(r.web), " ")
	err = r.stays(ctx, r.quiet(), r.web, "forged events change nothing", func(map[string]string) bool {
		return strings.Join(r.S.Held.Serving(r.web), " ") == before
	})
	if err != nil {
		return "", err
	}
	return "", r.exactly(ctx, want{pods: 2})
}

// deadLetter waits for a message in the dead-letter queue whose reason has text,
// and removes it.
func (r *Runner) deadLetter(ctx context.Context, text string) (reason string, err error) {
	err = r.until(ctx, "a dead letter", func(ctx context.Context) (bool, error) {
		out, err := r.S.AWS.SQS.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &r.S.AWS.DeadURL, MessageAttributeNames: []string{"All"}, WaitTimeSeconds: 1, VisibilityTimeout: 1})
		if err != nil {
			return false, err
		}
		for _, m := range out.Messages {
			if a, ok := m.MessageAttributes["elbridge.reason"]; ok && a.StringValue != nil && strings.Contains(*a.StringValue, text) {
				reason = *a.StringValue
				_, err := r.S.AWS.SQS.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &r.S.AWS.DeadURL, ReceiptHandle: m.ReceiptHandle})
				return true, err
			}
		}
		return false, nil
	})
	if len(reason) > 60 {
		reason = reason[:60] + "…"
	}
	return "dead letter: " + reason, err
}

func (r *Runner) dropRule(ctx context.Context, name string) error {
	if _, err := r.S.AWS.Events.RemoveTargets(ctx, &eventbridge.RemoveTargetsInput{Rule: &name, EventBusName: new(stack.Bus), Ids: []string{"registrar"}}); err != nil {
		return err
	}
	_, err := r.S.AWS.Events.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: &name, EventBusName: new(stack.Bus)})
	return err
}

// partitioned cuts a node off and deletes its pods one by one and then together,
// while they go on serving.
func partitioned(ctx context.Context, r *Runner) (string, error) {
	group, err := r.group(ctx, "held", true, "")
	if err != nil {
		return "", err
	}
	onB := "\n      nodeSelector: {kubernetes.io/hostname: node-b}"
	if err := r.apply(ctx, deployment("held", 4, "1", onB)); err != nil {
		return "", err
	}
	w := want{group: group, selector: "app=held", pods: 4, healthy: true}
	if err := r.exactly(ctx, w); err != nil {
		return "", err
	}
	if err := r.S.Nodes.Partition(ctx, "node-b"); err != nil {
		return "", err
	}
	healed := false
	defer func() {
		if !healed {
			_ = r.S.Nodes.Heal(context.WithoutCancel(ctx), "node-b") // a later step says so if it failed
		}
	}()
	if err := r.nodeReady(ctx, "node-b", false); err != nil {
		return "", err
	}
	start := time.Now()
	pods, err := r.pods(ctx, "app=held")
	if err != nil {
		return "", err
	}
	for _, p := range pods {
		if err := r.deletePod(ctx, p.Name, -1); err != nil {
			return "", err
		}
	}
	if err := r.records(ctx, start, "Removal Held", "targetgroup/held/"); err != nil {
		return "", err
	}
	// One removal without a witness is within the limit; all that follow are held.
	err = r.stays(ctx, r.quiet(), group, "without a witness at most one of four targets goes", func(map[string]string) bool {
		return len(r.S.Held.Serving(group)) >= 3
	})
	if err != nil {
		return "", err
	}
	kept := len(r.S.Held.Serving(group))
	if err := r.S.Nodes.Heal(ctx, "node-b"); err != nil {
		return "", err
	}
	healed = true
	if err := r.nodeReady(ctx, "node-b", true); err != nil {
		return "", err
	}
	if err := r.exactly(ctx, w); err != nil {
		return "", fmt.Errorf("after the partition: %w", err)
	}
	if err := r.scale(ctx, "held", 0); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d of 4 targets kept", kept), r.exactly(ctx, want{group: group, selector: "app=held"})
}

// nodeReady waits until the cluster says so of a node's readiness.
func (r *Runner) nodeReady(ctx context.Context, name string, ready bool) error {
	return r.until(ctx, fmt.Sprintf("node %s ready: %t", name, ready), func(ctx context.Context) (bool, error) {
		var n struct {
			Status struct {
				Conditions []struct{ Type, Status string }
			}
		}
		if err := r.S.Admin.Get(ctx, "/api/v1/nodes/"+name, &n); err != nil {
			return false, err
		}
		for _, c := range n.Status.Conditions {
			if c.Type == "Ready" {
				return (c.Status == "True") == ready, nil
			}
		}
		return false, nil
	})
}
