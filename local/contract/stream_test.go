package contract_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/elbridge/elbridge/infra/kubernetes"
	"github.com/elbridge/elbridge/local/cloud/elb"
	local "github.com/elbridge/elbridge/local/cluster"
	"github.com/elbridge/elbridge/pkg/cluster"
	"github.com/elbridge/elbridge/pkg/podevent"
)

// TestStreamsOfAnAPIServer holds list and watch of pkg/cluster against a real API
// server with the rights that resync has.
func TestStreamsOfAnAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	k := startKube(t, start(t, elb.Config{}))
	admin, err := k.Client(local.Admin)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := errors.Join(admin.Apply(ctx, kubernetes.RBAC), admin.Apply(ctx, []byte(namespaces))); err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/kubeconfig"
	if err := k.WriteKubeconfig(path, local.Identity{User: "elbridge:resync:run-1", Groups: []string{"elbridge:resync"}}); err != nil {
		t.Fatal(err)
	}
	c := (&cluster.Dialer{Now: time.Now}).Client(cluster.Config{Name: "local", Kubeconfig: path})
	scope := cluster.Scope{Namespace: "ingress", LabelSelector: "app in (many,web)"}
	list := func() (string, map[string]bool, error) {
		seen := map[string]bool{}
		rv, err := c.Each(ctx, scope, func(p *podevent.Pod) { seen[p.Name] = true })
		return rv, seen, err
	}
	await(t, "the roles are known", func() bool { _, _, err := list(); return err == nil })
	pods(t, admin, "ingress", "node-a", "many", 520)
	pods(t, admin, "ingress", "node-a", "other", 1)
	pods(t, admin, "other", "node-a", "web", 1)

	rv, seen, err := list()
	if err != nil || len(seen) != 520 || rv == "" {
		t.Fatalf("%d pods as of %q, error %v; want 520", len(seen), rv, err)
	}

	of := func(name string) string { return "/api/v1/namespaces/ingress/pods/" + name }
	pods(t, admin, "ingress", "node-a", "web", 2)
	steps := errors.Join(
		admin.Patch(ctx, of("web-0")+"/status", types.StrategicMergePatchType, `{"status":{"podIP":"10.64.1.7","podIPs":[{"ip":"10.64.1.7"}]}}`),
		admin.Patch(ctx, of("web-0"), types.MergePatchType, `{"metadata":{"labels":{"app":"other"}}}`),
		admin.Patch(ctx, of("other-0"), types.MergePatchType, `{"metadata":{"labels":{"app":"web"}}}`),
		admin.REST().Delete().AbsPath(of("web-1")).Do(ctx).Error(), // by its node's leave
		admin.REST().Delete().AbsPath(of("web-1")).Param("gracePeriodSeconds", "0").Do(ctx).Error())
	if steps != nil {
		t.Fatal(steps)
	}
	want := "Opened, Changed web-0, Changed web-1, Changed web-0 at 10.64.1.7, Gone web-0 at 10.64.1.7 as web, Changed other-0, Changed web-1 ending, Changed web-1 ending, Gone web-1 ending as web"
	watch, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var got []string
	last := ""
	err = c.Watch(watch, scope, rv, func(ch cluster.Change) {
		text := string(ch.Kind)
		if p := ch.Pod; p != nil {
			text += " " + p.Name
			if p.PodIP() != "" {
				text += " at " + p.PodIP()
			}
			if p.Terminating {
				text += " ending"
			}
			if ch.Kind == cluster.Gone {
				text += " as " + p.Labels["app"] // as it was in the scope
			}
		}
		if ch.Kind != cluster.Bookmark {
			got = append(got, text)
		}
		if last = ch.ResourceVersion; len(got) == strings.Count(want, ",")+1 {
			cancel()
		}
	})
	if strings.Join(got, ", ") != want || !errors.Is(err, context.Canceled) {
		t.Errorf("changes %q, error %v; want %q", strings.Join(got, ", "), err, want)
	}

	t.Run("a stream goes on where another ended", func(t *testing.T) {
		if err := admin.Patch(ctx, of("other-0"), types.MergePatchType, `{"metadata":{"annotations":{"again":"yes"}}}`); err != nil {
			t.Fatal(err)
		}
		watch, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		var got []string
		err := c.Watch(watch, scope, last, func(ch cluster.Change) {
			if ch.Pod != nil {
				got = append(got, ch.Pod.Name)
				cancel()
			}
		})
		if fmt.Sprint(got) != "[other-0]" || !errors.Is(err, context.Canceled) {
			t.Errorf("changes of %v, error %v; want one of other-0", got, err)
		}
	})
	t.Run("who has no rights is not authorised", func(t *testing.T) {
		nobody := kubeconfigOf(t, k, "nobody")
		_, listing := nobody.Each(ctx, scope, func(*podevent.Pod) {})
		watching := nobody.Watch(ctx, scope, rv, func(cluster.Change) {})
		if !errors.Is(listing, cluster.ErrUnauthorized) || !errors.Is(watching, cluster.ErrUnauthorized) {
			t.Errorf("listing: %v; watching: %v", listing, watching)
		}
	})
}
