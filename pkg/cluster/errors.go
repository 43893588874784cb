package cluster

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The classes of an error from a cluster.
var (
	// ErrNotFound: the API server says that the object does not exist.
	ErrNotFound = errors.New("not found")
	// ErrUnauthorized: 401 or 403, no credentials, or no such EKS cluster. Not "out
	// of reach": waiting for the network won't help (P103).
	ErrUnauthorized = errors.New("not authorised")
	// ErrUnreachable: no answer, one that says "later", or one that no API server
	// gives.
	ErrUnreachable = errors.New("API server out of reach")
)

// classify wraps err with its class, the cluster and what was being done.
func (c *Client) classify(doing string, err error) error {
	if err == nil {
		return nil
	}
	if misdirected(err) {
		c.forget()
	}
	class := classOf(err)
	if errors.Is(err, class) {
		return fmt.Errorf("cluster %s: %s: %w", c.name, doing, err)
	}
	return fmt.Errorf("cluster %s: %s: %w: %w", c.name, doing, class, err)
}

func classOf(err error) error {
	switch {
	case errors.Is(err, ErrUnauthorized), apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return ErrUnauthorized
	case apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return ErrNotFound
	default: // a 404 that is no API server's, say a proxy's, tells nothing of a pod (I8)
		return ErrUnreachable
	}
}

// misdirected reports whether nobody is at the endpoint, or somebody else: the
// cluster may have been made anew.
func misdirected(err error) bool {
	var cert *tls.CertificateVerificationError
	var dial *net.OpError
	return errors.As(err, &cert) || errors.As(err, &dial) && dial.Op == "dial"
}

// describeClass is the class of an error of DescribeCluster. A cluster that EKS
// doesn't know is never ErrNotFound: that is said of pods.
func describeClass(err error) error {
	if answer, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		switch answer.HTTPStatusCode() {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
			return ErrUnauthorized
		}
	}
	return ErrUnreachable
}
