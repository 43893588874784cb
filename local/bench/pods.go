package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/elbridge/elbridge/local/cloud/core"
	"github.com/elbridge/elbridge/local/stack"
)

const (
	namespace = "bench"
	nodeName  = "bench-node" // nobody runs its pods: their statuses are written here
	// renewEvery keeps the node's lease within its 40 s.
	renewEvery = 10 * time.Second
	// awaitCall bounds the wait for one call.
	awaitCall = 30 * time.Second
)

// bench is a namespace with pods whose statuses are written by hand, so that the
// moment of each write is known.
type bench struct {
	s     *stack.Stack
	say   func(string, ...any)
	group string
	next  int // of the addresses
	stop  context.CancelFunc
}

const node = `
apiVersion: v1
kind: Node
metadata: {name: bench-node}
spec: {providerID: "aws:///eu-west-1a/i-0bbbbbbbbbbbbbbbb", taints: [{key: bench, effect: NoSchedule}]}
`

// setUp makes namespace, node, group and rule.
func (b *bench) setUp(ctx context.Context) (err error) {
	if err := b.s.Admin.Apply(ctx, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n---"+node)); err != nil {
		return err
	}
	if err := b.beat(ctx); err != nil {
		return err
	}
	ready := `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","lastHeartbeatTime":%q,"lastTransitionTime":%[1]q}]}}`
	now := time.Now().UTC().Format(time.RFC3339)
	if err := b.s.Admin.Patch(ctx, "/api/v1/nodes/"+nodeName+"/status", types.StrategicMergePatchType, fmt.Sprintf(ready, now)); err != nil {
		return err
	}
	beats, stop := context.WithCancel(ctx)
	b.stop = stop
	go func() { // ends with stop
		tick := time.NewTicker(renewEvery)
		defer tick.Stop()
		for {
			select {
			case <-beats.Done():
				return
			case <-tick.C:
				if err := b.beat(beats); err != nil {
					b.say("the node's lease was not renewed: %v", err)
				}
			}
		}
	}()
	if b.group, err = b.s.AWS.Group(ctx, "bench", 8080, true); err != nil {
		return err
	}
	return b.s.AWS.Rule(ctx, "bench", `{"cluster":["local"],"namespace":["bench"],"labels":{"app":["bench"]}}`, fmt.Sprintf(`{"targetGroup":%q,"port":8080}`, b.group))
}

func (b *bench) end() { b.stop() }

// beat renews the node's lease.
func (b *bench) beat(ctx context.Context) error {
	return b.s.Admin.Apply(ctx, []byte(fmt.Sprintf("apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: %s, namespace: kube-node-lease}\nspec: {holderIdentity: %[1]s, leaseDurationSeconds: 40, renewTime: %q}\n",
		nodeName, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))))
}

// filler makes a pod about as large as those in the field: three containers with
// variables, and annotations.
var filler = strings.Repeat("x", 200)

// podJSON is a pod of some 5 KB, managedFields aside.
func podJSON(name string) map[string]any {
	var containers []any
	for _, c := range []string{"main", "proxy", "logs"} {
		var env []any
		for i := range 6 {
			env = append(env, map[string]string{"name": fmt.Sprintf("VARIABLE_%d", i), "value": filler})
		}
		containers = append(containers, map[string]any{"name": c, "image": "registry.example.com/team/" + c + ":1.2.3", "env": env,
			"ports":     []any{map[string]any{"name": c, "containerPort": 8080 + len(containers)}},
			"resources": map[string]any{"requests": map[string]string{"cpu": "1m", "memory": "1Mi"}}})
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name, "namespace": namespace, "labels": map[string]string{"app": "bench", "team": "bench"},
			"annotations": map[string]string{"example.com/a": filler, "example.com/b": filler}},
		"spec": map[string]any{"nodeName": nodeName, "containers": containers, "terminationGracePeriodSeconds": 30,
			"tolerations": []any{map[string]string{"operator": "Exists"}}}}
}

func (b *bench) create(ctx context.Context, name string) error {
	return b.s.Admin.Post(ctx, "/api/v1/namespaces/"+namespace+"/pods", podJSON(name), nil)
}

// address returns the next address for a pod.
func (b *bench) address() string {
	b.next++
	return fmt.Sprintf("10.64.%d.%d", 100+b.next/250, 1+b.next%250)
}

// assign writes the status that brings an address.
func (b *bench) assign(ctx context.Context, name, ip string) error {
	return b.s.Admin.Patch(ctx, "/api/v1/namespaces/"+namespace+"/pods/"+name+"/status", types.StrategicMergePatchType,
		fmt.Sprintf(`{"status":{"phase":"Running","podIP":%q,"podIPs":[{"ip":%[1]q}],"hostIP":"10.64.0.99"}}`, ip))
}

// delete deletes a pod with its grace period, or at once.
func (b *bench) delete(ctx context.Context, name string, grace *int64) error {
	body, err := json.Marshal(metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, GracePeriodSeconds: grace})
	if err != nil {
		return err
	}
	return b.s.Admin.REST().Delete().AbsPath("/api/v1/namespaces/"+namespace+"/pods/"+name).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
}

// called returns when the first call of that operation whose parameters have
// text arrived at the local cloud.
func (b *bench) called(ctx context.Context, since time.Time, operation, text string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, awaitCall)
	defer cancel()
	old, live := b.s.Cloud.Server.Recorder.Watch(ctx, 0)
	fits := func(rec core.Record) bool {
		return rec.Operation == operation && !rec.Time.Before(since) && rec.Code == "" && strings.Contains(rec.Params, text)
	}
	for _, rec := range old {
		if fits(rec) {
			return rec.Time, nil
		}
	}
	for rec := range live {
		if fits(rec) {
			return rec.Time, nil
		}
	}
	return time.Time{}, fmt.Errorf("no %s with %s within %s", operation, text, awaitCall)
}
