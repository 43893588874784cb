package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

func TestCertificate_P074_IsReloaded(t *testing.T) {
	dir := t.TempDir()
	first, second := newPair(t, noon.AddDate(0, 0, 30)), newPair(t, noon.AddDate(0, 0, 90))
	certFile, keyFile := first.write(t, dir)
	now := noon
	var problems []error
	c, err := loadCertificate(certFile, keyFile, func() time.Time { return now }, func(err error) { problems = append(problems, err) })
	if err != nil {
		t.Fatal(err)
	}
	days := func() int { return int(c.notAfter().Sub(noon).Hours() / 24) }
	if days() != 30 {
		t.Fatalf("first certificate ends in %d days", days())
	}

	second.write(t, dir)
	now = now.Add(certificateAge - time.Second)
	if days() != 30 {
		t.Error("files looked at again too early")
	}
	now = now.Add(time.Second)
	if days() != 90 {
		t.Errorf("certificate ends in %d days, want the new one", days())
	}

	// In the middle of an update, and when the files are gone, the last good one stays.
	for _, spoil := range []func() error{
		func() error { return os.WriteFile(certFile, first.cert, 0o600) }, // key of the second
		func() error { return os.WriteFile(certFile, []byte("half a certif"), 0o600) },
		func() error { return os.Remove(certFile) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		before := len(problems)
		now = now.Add(certificateAge)
		if days() != 90 || len(problems) != before+1 {
			t.Errorf("certificate ends in %d days, %d problems: want the last good one and a report", days(), len(problems)-before)
		}
	}
	first.write(t, dir)
	now = now.Add(certificateAge)
	if days() != 30 {
		t.Errorf("certificate ends in %d days, want it to recover", days())
	}
}

// P076: while a CA is replaced, clients that trust both accept either certificate.
func TestCertificate_P076_OverlappingCAs(t *testing.T) {
	dir := t.TempDir()
	old, renewed := newPair(t, time.Now().AddDate(0, 0, 1)), newPair(t, time.Now().AddDate(0, 0, 2))
	both := x509.NewCertPool()
	both.AppendCertsFromPEM(append(append([]byte{}, old.cert...), renewed.cert...))
	certFile, keyFile := old.write(t, dir)
	now := noon
	c, err := loadCertificate(certFile, keyFile, func() time.Time { return now }, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []pair{old, renewed} {
		p.write(t, dir)
		now = now.Add(certificateAge)
		client, server := net.Pipe()
		go func() { _ = tls.Server(server, c.config()).Handshake() }()
		if err := tls.Client(client, &tls.Config{RootCAs: both, ServerName: "localhost"}).HandshakeContext(t.Context()); err != nil {
			t.Error(err)
		}
		client.Close()
	}
}

func TestLoadCertificateRefuses(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := newPair(t, noon).write(t, dir)
	for _, files := range [][2]string{{certFile + "x", keyFile}, {certFile, keyFile + "x"}, {keyFile, keyFile}} {
		if _, err := loadCertificate(files[0], files[1], time.Now, nil); err == nil || !strings.Contains(err.Error(), files[0]) && !strings.Contains(err.Error(), files[1]) {
			t.Errorf("loadCertificate(%v) = %v, want an error that names the file", files, err)
		}
	}
}
