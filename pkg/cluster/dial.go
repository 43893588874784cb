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
	utilnet "k8s.io/apimachinery/pkg/util/net"
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
	// describePause is the least time between two looks at where the cluster is,
	// so that an outage is not answered with calls to EKS, whose rate is small.
	describePause = 10 * time.Second
	// failedPause is how long a failed look is the answer to all who ask.
	failedPause = time.Second
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
	Silence   time.Duration // after which Watch gives a stream up; 0 is silenceMax
}

// Client reads one cluster. It is safe for concurrent use.
type Client struct {
	name    string
	dial    func(ctx context.Context) (*link, error)
	now     func() time.Time
	silence time.Duration

	mu     sync.Mutex
	link   *link
	dialed time.Time // when link was made, or could not be
	used   time.Time
	failed error // of the last dial
}

// link is two clients over one pool of connections.
type link struct {
	calls   *rest.RESTClient // each call within callTimeout
	streams *rest.RESTClient // for pages and streams, which have bounds of their own
}

// Client returns a client that connects at its first use, so that one cluster
// out of reach keeps nobody from the others.
func (d *Dialer) Client(c Config) *Client {
	silence := d.Silence
	if silence == 0 {
		silence = silenceMax
	}
	return &Client{name: c.Name, now: d.Now, silence: silence, dial: func(ctx context.Context) (*link, error) {
		cfg, err := d.restConfig(ctx, c)
		if err != nil {
			return nil, err
		}
		return newLink(cfg, d.UserAgent)
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
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := d.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &c.EKS.Name}, func(o *eks.Options) { o.Region = region })
	if err != nil {
		return nil, fmt.Errorf("%w: describing EKS cluster %s in %s: %w", describeClass(err), c.EKS.Name, region, err)
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

// newScheme has the core group alone: the typed clients pull in every API group,
// which doubles the size of a function.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, corev1.AddToScheme(scheme)
}

// newLink makes REST clients with a scheme of our own.
func newLink(cfg *rest.Config, userAgent string) (*link, error) {
	scheme, err := newScheme()
	if err != nil {
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
	quick, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, err
	}
	patient := &http.Client{Transport: quick.Transport} // http.Client.Timeout would cut a stream
	calls, err := rest.RESTClientForConfigAndClient(cfg, quick)
	if err != nil {
		return nil, err
	}
	streams, err := rest.RESTClientForConfigAndClient(cfg, patient)
	return &link{calls: calls, streams: streams}, err
}

// connect returns the client for calls, connecting at first use.
func (c *Client) connect(ctx context.Context) (*rest.RESTClient, error) {
	l, err := c.connected(ctx)
	if err != nil {
		return nil, err
	}
	return l.calls, nil
}

// connected returns the clients, connecting at first use. After a freeze it
// drops connections that may be dead.
func (c *Client) connected(ctx context.Context) (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now().Round(0)
	switch {
	case c.link != nil:
		if now.Sub(c.used) > idleMax {
			closeIdle(c.link)
		}
	case c.failed != nil && now.Sub(c.dialed) < failedPause:
		return nil, c.failed
	default:
		l, err := c.dial(ctx)
		if err != nil {
			if ctx.Err() == nil { // else it is the caller who had no time
				c.failed, c.dialed = err, now
			}
			return nil, err
		}
		c.link, c.failed, c.dialed = l, nil, now
	}
	c.used = now
	return c.link, nil
}

// forget drops the client after its endpoint or CA proved wrong, so that the
// next call describes the cluster again; not more often than is of use.
func (c *Client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil || c.now().Round(0).Sub(c.dialed) < describePause {
		return
	}
	closeIdle(c.link)
	c.link = nil
}

// closeIdle closes pooled connections. http.Client's own method doesn't see the
// transport below client-go's wrappers.
func closeIdle(l *link) { utilnet.CloseIdleConnectionsFor(l.calls.Client.Transport) }
