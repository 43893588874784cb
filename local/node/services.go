package node

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/elbridge/elbridge/local/node/internal/proxy"
)

// watchServices keeps the proxy in step with Services and EndpointSlices, one
// update for all changes that came meanwhile.
func (a *agent) watchServices(ctx context.Context, k *kube) {
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	var wg sync.WaitGroup
	defer a.proxy.Wait()
	defer wg.Wait()
	services, runServices := follow(k.core, "services", &v1.Service{}, notify)
	slices, runSlices := follow(k.discovery, "endpointslices", &discoveryv1.EndpointSlice{}, notify)
	wg.Go(func() { runServices.RunWithContext(ctx) })
	wg.Go(func() { runSlices.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), runServices.HasSynced, runSlices.HasSynced) {
		return
	}
	notify()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			a.proxy.Update(ctx, proxy.NewTable(list[v1.Service](services), list[discoveryv1.EndpointSlice](slices)))
		}
	}
}

func follow(c rest.Interface, resource string, kind runtime.Object, notify func()) (cache.Store, cache.Controller) {
	return cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(c, resource, v1.NamespaceAll, fields.Everything()), ObjectType: kind,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { notify() },
			UpdateFunc: func(any, any) { notify() },
			DeleteFunc: func(any) { notify() },
		},
	})
}

func list[T any](s cache.Store) []*T {
	var all []*T
	for _, o := range s.List() {
		if t, ok := o.(*T); ok {
			all = append(all, t)
		}
	}
	return all
}
