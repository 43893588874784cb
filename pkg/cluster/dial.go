package cluster

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// dialTimeout: a control plane answers a SYN within milliseconds; two
	// seconds leave room for one lost packet and its retransmission.
	dialTimeout = 2 * time.Second
	// callTimeout bounds one read; the batch's own deadline is in the context.
	callTimeout = 5 * time.Second
	// idleMax: a pooled connection that was silent for longer may have died in a
	// freeze unseen, which costs the HTTP/2 ping's time to find out.
	idleMax = 30 * time.Second
	// maxRetries bounds client-go's own retries on Retry-After, which can sleep
	// for half a minute each: the queue is the one that retries.
	maxRetries = 0
)

// EKSAPI is what of the EKS client is used.
type EKSAPI interface {
	DescribeCluster(context.Context, *eks.DescribeClusterInput, ...func(*eks.Options)) (*eks.DescribeClusterOutput, error)
}

// Dialer makes clients of clusters.
type Dialer struct {
	AWS       aws.Config
	EKS       EKSAPI
	UserAgent string // seen in the audit log: "elbridge-registrar/<version>"
	Now       func() time.Time
}

// Client reads one cluster. It is safe for concurrent use.
type Client struct {
	name string
	dial func(ctx context.Context) (*rest.RESTClient, error)
	now  func() time.Time

	mu   sync.Mutex
	rest *rest.RESTClient
	used time.Time
}

// Client returns a client that connects at its first use, so that one cluster
// out of reach keeps nobody from the others.
func (d *Dialer) Client(c Config) *Client {
	return &Client{name: c.Name, now: d.Now, dial: func(ctx context.Context) (*rest.RESTClient, error) {
		cfg, err := d.restConfig(ctx, c)
		if err != nil {
			return nil, err
		}
		return newREST(cfg, d.UserAgent)
	}}
}

func (d *Dialer) restConfig(ctx context.Context, c Config) (*rest.Config, error) {
	if c.EKS == nil {
		cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("%w: kubeconfig %s: %w", ErrUnauthorized, c.Kubeconfig, err)
		}
		return cfg, nil
	}
	region := c.EKS.Region
	if region == "" {
		region = d.AWS.Region
	}
	out, err := d.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &c.EKS.Name}, func(o *eks.Options) { o.Region = region })
	if err != nil {
		return nil, fmt.Errorf("%w: describing EKS cluster %s in %s: %w", ErrUnreachable, c.EKS.Name, region, err)
	}
	if out.Cluster == nil || out.Cluster.Endpoint == nil || out.Cluster.CertificateAuthority == nil || out.Cluster.CertificateAuthority.Data == nil {
		return nil, fmt.Errorf("%w: EKS cluster %s has no endpoint yet", ErrUnreachable, c.EKS.Name)
	}
	ca, err := base64.StdEncoding.DecodeString(*out.Cluster.CertificateAuthority.Data)
	if err != nil {
		return nil, fmt.Errorf("%w: EKS cluster %s: certificate authority is not base64: %w", ErrUnreachable, c.EKS.Name, err)
	}
	ts := newTokens(d.AWS, region, c.EKS.Name, d.Now)
	return &rest.Config{
		Host:            *out.Cluster.Endpoint,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca},
		WrapTransport:   func(rt http.RoundTripper) http.RoundTripper { return bearer{tokens: ts, next: rt} },
	}, nil
}

// newREST makes a REST client with a scheme of our own: the typed clients pull
// in every API group, which doubles the size of a function.
func newREST(cfg *rest.Config, userAgent string) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	cfg.APIPath = "/api"
	cfg.GroupVersion = &schema.GroupVersion{Version: "v1"}
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	cfg.UserAgent = userAgent
	cfg.QPS = -1 // the batch and its parallelism are the limit
	cfg.Timeout = callTimeout
	cfg.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	return rest.RESTClientFor(cfg)
}

// connect returns the client, connecting at first use. After a freeze it drops
// connections that may be dead.
func (c *Client) connect(ctx context.Context) (*rest.RESTClient, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now().Round(0)
	if c.rest == nil {
		r, err := c.dial(ctx)
		if err != nil {
			return nil, err
		}
		c.rest = r
	} else if now.Sub(c.used) > idleMax {
		c.rest.Client.CloseIdleConnections()
	}
	c.used = now
	return c.rest, nil
}

// forget drops the client after its endpoint or CA proved wrong, so that the
// next call describes the cluster again.
func (c *Client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest = nil
}
