package cluster

import (
	"crypto/tls"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The classes of an error from a cluster.
var (
	// ErrNotFound: the API server says that the object does not exist.
	ErrNotFound = errors.New("not found")
	// ErrUnauthorized: 401 or 403, or no credentials. Not "out of reach": waiting
	// for the network won't help (P103).
	ErrUnauthorized = errors.New("not authorised")
	// ErrUnreachable: no answer, or one that says "later".
	ErrUnreachable = errors.New("API server out of reach")
)

// classify wraps err with its class, the cluster and what was being done.
func (c *Client) classify(doing string, err error) error {
	var class error
	var cert *tls.CertificateVerificationError
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		class = ErrNotFound
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err), errors.Is(err, ErrUnauthorized):
		class = ErrUnauthorized
	case errors.As(err, &cert):
		c.forget()
		class = ErrUnreachable
	default:
		class = ErrUnreachable
	}
	if errors.Is(err, class) {
		return fmt.Errorf("cluster %s: %s: %w", c.name, doing, err)
	}
	return fmt.Errorf("cluster %s: %s: %w: %w", c.name, doing, class, err)
}
