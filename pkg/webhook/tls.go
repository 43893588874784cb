package webhook

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"
)

// certificateAge is how long a certificate is served before the files are looked
// at again. A renewed one reaches the files a minute or two after the Secret.
const certificateAge = 10 * time.Second

// certificate serves the key pair that is on disk, without a restart (P074).
// While the files do not fit together, as in the middle of an update, the last
// good pair is served.
type certificate struct {
	certFile, keyFile string
	now               func() time.Time
	onError           func(error)

	mu        sync.Mutex
	checked   time.Time
	cert, key []byte
	pair      *tls.Certificate
}

// loadCertificate fails if there is no good pair to begin with.
func loadCertificate(certFile, keyFile string, now func() time.Time, onError func(error)) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, now: now, onError: onError, checked: now()}
	return c, c.load()
}

// config is for a server that API servers call. They present no certificate by
// default; a forged review can do no more than a hint can (I1).
func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); now.Sub(c.checked) >= certificateAge {
		c.checked = now
		if err := c.load(); err != nil {
			c.onError(err)
		}
	}
	return c.pair, nil
}

// notAfter is when the served certificate expires.
func (c *certificate) notAfter() time.Time {
	pair, err := c.get(nil)
	if err != nil || pair == nil {
		return time.Time{}
	}
	return pair.Leaf.NotAfter
}

func (c *certificate) load() error {
	cert, err := os.ReadFile(c.certFile)
	if err != nil {
		return fmt.Errorf("serving certificate: %w", err)
	}
	key, err := os.ReadFile(c.keyFile)
	if err != nil {
		return fmt.Errorf("key of the serving certificate: %w", err)
	}
	if bytes.Equal(cert, c.cert) && bytes.Equal(key, c.key) {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("serving certificate %s and key %s: %w", c.certFile, c.keyFile, err)
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return fmt.Errorf("serving certificate %s: %w", c.certFile, err)
		}
	}
	c.cert, c.key, c.pair = cert, key, &pair
	return nil
}
