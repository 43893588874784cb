package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	backdated       = time.Hour // for clocks that disagree a little
)

// authority is a certificate authority of one cluster.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte // the certificate
}

// pair is a certificate with its key, both PEM.
type pair struct{ cert, key []byte }

// loadAuthority reads <dir>/<name>.crt and .key, or makes them.
func loadAuthority(dir, name string, now time.Time) (*authority, error) {
	certFile, keyFile := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	key, err := loadKey(keyFile)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(certFile)
	if errors.Is(err, fs.ErrNotExist) {
		a, err := newAuthority("elbridge local "+name, key, now)
		if err != nil {
			return nil, err
		}
		return a, os.WriteFile(certFile, a.pem, 0o600)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM certificate: remove the folder %s to make new keys", certFile, dir)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: remove the folder %s to make new keys", certFile, err, dir)
	}
	return &authority{cert: cert, key: key, pem: content}, nil
}

func newAuthority(commonName string, key *ecdsa.PrivateKey, now time.Time) (*authority, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	a := &authority{cert: template, key: key}
	der, err := a.sign(template, key)
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	a.pem = encode("CERTIFICATE", der)
	return a, nil
}

// server issues a certificate for a program that listens under names and addresses.
func (a *authority) server(now time.Time, names []string, addresses ...net.IP) (pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: names[0]},
		DNSNames:    names,
		IPAddresses: addresses,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, now)
}

// client issues a certificate that says who its holder is.
func (a *authority) client(now time.Time, id Identity) (pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: id.User, Organization: id.Groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, now)
}

func (a *authority) issue(template *x509.Certificate, now time.Time) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	template.NotBefore, template.NotAfter = now.Add(-backdated), now.Add(certificateLife)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := a.sign(template, key)
	if err != nil {
		return pair{}, err
	}
	keyPEM, err := encodeKey(key)
	return pair{cert: encode("CERTIFICATE", der), key: keyPEM}, err
}

func (a *authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	return x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
}

// loadKey reads a private key, or makes it.
func loadKey(file string) (*ecdsa.PrivateKey, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		content, err := encodeKey(key)
		if err != nil {
			return nil, err
		}
		return key, os.WriteFile(file, content, 0o600)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM key: remove it to make a new one", file)
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: remove it to make a new one", file, err)
	}
	return key, nil
}

// encodeKey uses the form that the API server reads for token signing, too.
func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return encode("EC PRIVATE KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
