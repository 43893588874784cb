package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
)

// kubeconfigOf serves pods of namespace ingress, given by their addresses, and
// returns the path of a kubeconfig that leads to them.
func kubeconfigOf(t *testing.T, addresses ...string) string {
	t.Helper()
	var items []string
	for i, a := range addresses {
		items = append(items, fmt.Sprintf(`{"metadata":{"namespace":"ingress","name":"web-%d","uid":"u%d"},"spec":{"nodeName":"n"},
			"status":{"phase":"Running","podIP":"%s","podIPs":[{"ip":"%s"}],"conditions":[{"type":"Ready","status":"True"}]}}`, i, i, a, a))
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/pods" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[%s]}`, strings.Join(items, ","))
	}))
	t.Cleanup(s.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n", s.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// bound puts a rule on the bus that binds the pods of namespace ingress to the
// group, which it returns.
func bound(t *testing.T, cfg aws.Config, more string) (group string) {
	t.Helper()
	events := eventbridge.NewFromConfig(cfg)
	out, err := elb.NewFromConfig(cfg).DescribeTargetGroups(t.Context(), &elb.DescribeTargetGroupsInput{Names: []string{"web"}})
	if err != nil {
		t.Fatal(err)
	}
	group = *out.TargetGroups[0].TargetGroupArn
	if _, err := events.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: new("web"), EventBusName: new("elbridge"), EventPattern: new(docPattern)}); err != nil {
		t.Fatal(err)
	}
	_, err = events.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: new("web"), EventBusName: new("elbridge"), Targets: []types.Target{{Id: new("registrar"), Arn: new(docQueue),
		InputTransformer: &types.InputTransformer{InputTemplate: new(`{"binding":{"targetGroup":"` + group + `"` + more + `},"rule":<aws.events.rule-arn>,"event":<aws.events.event.json>}`)}}}})
	if err != nil {
		t.Fatal(err)
	}
	return group
}

// TestOperator_Living: what rules do to living groups is read over the wire, and
// nothing is changed by it (I19).
func TestOperator_Living_I19(t *testing.T) {
	cfg := cloudOf(t)
	group := bound(t, cfg, "")
	targets := elb.NewFromConfig(cfg)
	if _, err := targets.RegisterTargets(t.Context(), &elb.RegisterTargetsInput{TargetGroupArn: &group, Targets: []elbtypes.TargetDescription{{Id: new("10.64.1.1")}, {Id: new("10.64.1.9")}}}); err != nil {
		t.Fatal(err)
	}
	kube := kubeconfigOf(t, "10.64.1.1", "10.64.1.2")
	file := filepath.Join(t.TempDir(), "bindings.yaml")
	if err := os.WriteFile(file, []byte(planHead+entryOf("web", "{name: web}", "    mode: observe\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		line, want string
		code       int
	}{
		{"status --kubeconfig " + kube, "not right: 1 of 1 group", 2},
		{"status --kubeconfig " + kube + " -o json", `"missing": 1`, 2},
		{"observe report --kubeconfig " + kube, "no binding of bus elbridge is in mode observe", 0},
		{"observe report --all --kubeconfig " + kube, "register 10.64.1.2:80 pod ingress/web-1: rule web selects the pod", 2},
		{"plan bus " + file, "only texts were compared", 0},
		{"plan bus " + file + " --live --kubeconfig " + kube, "? would register 10.64.1.2:80 pod ingress/web-1", 0},
		{"plan " + file + " bus --live --kubeconfig " + kube, "mode observe → manage", 2},
		{"plan bus:other " + file + " --live --kubeconfig " + kube, "no such event bus", 1},
		{"adopt web", " owns ", 0},
		{"status -o yaml --kubeconfig " + kube, "extra: 1", 2},
		{"bindings --kubeconfig " + kube, "+1 -1", 0},
	} {
		out, errs, code := elbridge(t, step.line)
		if code != step.code || !strings.Contains(out+errs, step.want) {
			t.Errorf("%s: exit code %d, said\n%s%s\nwant %d, %q", step.line, code, out, errs, step.code, step.want)
		}
	}
	out, err := targets.DescribeTargetHealth(t.Context(), &elb.DescribeTargetHealthInput{TargetGroupArn: &group})
	if err != nil || len(out.TargetHealthDescriptions) != 2 {
		t.Errorf("the group holds %v, %v", out.TargetHealthDescriptions, err)
	}
}
