package node

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// callTimeout bounds every single call to the API server.
const callTimeout = 35 * time.Second // admission webhooks may take 30

// kube holds the clients of one identity, over a scheme of the few groups used.
type kube struct {
	core         rest.Interface
	coordination rest.Interface
	discovery    rest.Interface
	params       runtime.ParameterCodec

	host, port string // of the API server, as pods are told
	ca         []byte
}

func loadREST(kubeconfig string, given *rest.Config) (*rest.Config, error) {
	if given != nil {
		return rest.CopyConfig(given), nil
	}
	r, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	return r, nil
}

func newKube(base *rest.Config) (*kube, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1.AddToScheme, coordinationv1.AddToScheme, discoveryv1.AddToScheme, authenticationv1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	k := &kube{params: runtime.NewParameterCodec(scheme)}
	codecs := serializer.NewCodecFactory(scheme).WithoutConversion()
	for _, c := range []struct {
		to   *rest.Interface
		gv   schema.GroupVersion
		path string
	}{
		{&k.core, v1.SchemeGroupVersion, "/api"},
		{&k.coordination, coordinationv1.SchemeGroupVersion, "/apis"},
		{&k.discovery, discoveryv1.SchemeGroupVersion, "/apis"},
	} {
		r := rest.CopyConfig(base)
		r.GroupVersion, r.APIPath, r.NegotiatedSerializer = &c.gv, c.path, codecs
		r.ContentType, r.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
		r.DisableCompression = true // it never leaves the machine
		r.QPS = -1                  // the agent bounds its own writes
		r.UserAgent = "elbridge-local-node"
		client, err := rest.RESTClientFor(r)
		if err != nil {
			return nil, fmt.Errorf("client for %s: %w", c.gv, err)
		}
		*c.to = client
	}
	return k, k.readServer(base)
}

func (k *kube) readServer(base *rest.Config) error {
	u, err := url.Parse(base.Host)
	if err != nil {
		return fmt.Errorf("API server address %q: %w", base.Host, err)
	}
	k.host, k.port = u.Hostname(), u.Port()
	if k.port == "" {
		k.port = "443"
	}
	if k.host == "" { // a bare host:port
		if k.host, k.port, err = net.SplitHostPort(base.Host); err != nil {
			return fmt.Errorf("API server address %q: want https://host:port", base.Host)
		}
	}
	k.ca = base.CAData
	if len(k.ca) == 0 && base.CAFile != "" {
		k.ca, err = os.ReadFile(base.CAFile)
	}
	return err
}
