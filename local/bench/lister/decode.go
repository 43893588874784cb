package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// decode reads the pages and decodes each into a corev1.PodList: what any client
// does that is made of Kubernetes' own types.
func decode(ctx context.Context, kubeconfig string, pageSize int) (int, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return 0, err
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return 0, err
	}
	pods, from := 0, ""
	for {
		l, err := page(ctx, client, cfg.Host+"/api/v1/pods?"+url.Values{"limit": {fmt.Sprint(pageSize)}, "continue": {from}}.Encode())
		if err != nil {
			return 0, err
		}
		pods += len(l.Items)
		if from = l.Continue; from == "" {
			return pods, nil
		}
	}
}

func page(ctx context.Context, client *http.Client, address string) (*corev1.PodList, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", runtime.ContentTypeProtobuf)
	res, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %w", address, res.Status, err)
	}
	var u runtime.Unknown
	if err := u.Unmarshal(body[len("k8s\x00"):]); err != nil {
		return nil, err
	}
	l := &corev1.PodList{}
	return l, l.Unmarshal(u.Raw)
}
