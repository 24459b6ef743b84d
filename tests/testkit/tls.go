package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Authority issues certificates that last as long as a test. Make it with [NewAuthority].
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

// NewAuthority returns an authority that nobody else knows.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, pool: x509.NewCertPool()}
	template := a.template("holdfast test authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	a.key = a.newKey()
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatalf("testkit: authority: %v", err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatalf("testkit: authority: %v", err)
	}
	a.pool.AddCert(a.cert)
	return a
}

// ClientConfig is for those who trust the authority and have a certificate of it.
func (a *Authority) ClientConfig() *tls.Config {
	a.t.Helper()
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		RootCAs:      a.pool,
		Certificates: []tls.Certificate{a.issue("client")},
	}
}

// Files are the paths of what a program needs for TLS, in PEM.
type Files struct {
	Authority, Cert, Key string
}

// ClientFiles writes what [Authority.ClientConfig] has into files, which are removed when the test ends.
func (a *Authority) ClientFiles() Files {
	a.t.Helper()
	files, err := a.write(a.t.TempDir(), "client")
	if err != nil {
		a.t.Fatalf("testkit: certificate: %v", err)
	}
	return files
}

// write makes a certificate and writes it into files of a folder.
func (a *Authority) write(dir, name string) (Files, error) {
	own := a.issue(name)
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	if err != nil {
		return Files{}, err
	}
	files := Files{filepath.Join(dir, "authority.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	for _, file := range []struct {
		path, block string
		der         []byte
	}{
		{files.Authority, "CERTIFICATE", a.cert.Raw},
		{files.Cert, "CERTIFICATE", own.Certificate[0]},
		{files.Key, "PRIVATE KEY", key},
	} {
		text := pem.EncodeToMemory(&pem.Block{Type: file.block, Bytes: file.der})
		if err := os.WriteFile(file.path, text, 0o600); err != nil {
			return Files{}, err
		}
	}
	return files, nil
}

// issue makes a certificate for a client, and for a server of 127.0.0.1.
func (a *Authority) issue(name string) tls.Certificate {
	a.t.Helper()
	key, template := a.newKey(), a.template(name)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatalf("testkit: certificate: %v", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *Authority) template(name string) *x509.Certificate {
	a.t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		a.t.Fatalf("testkit: certificate: %v", err)
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}

func (a *Authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatalf("testkit: key: %v", err)
	}
	return key
}

// TLS makes the server listen on a port with TLS too, see [Server.TLSAddr], with a certificate of the authority, and
// demand one of it from clients. The test is skipped if the server was built without TLS.
func TLS(a *Authority) Option {
	return optionFunc(func(cfg *config) { cfg.authority = a })
}

// TLSAddr returns the host:port at which the server speaks TLS.
func (s *Server) TLSAddr() string { return s.tlsAddr }

// TLSClient returns a new client of the server that connects with TLS, closed when the test ends. Each edit may change
// its options.
func (s *Server) TLSClient(config *tls.Config, edit ...func(*redis.Options)) *redis.Client {
	return newClient(s.t, &redis.Options{Addr: s.tlsAddr, TLSConfig: config}, edit, s.thaw)
}

// setUpTLS writes the certificates and configures the server for them.
func (s *Server) setUpTLS() error {
	port, release, err := takePort(false)
	if err != nil {
		return err
	}
	s.t.Cleanup(release)
	s.tlsAddr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	files, err := s.cfg.authority.write(s.dir, "server")
	if err != nil {
		return err
	}
	s.cfg.directives = append(s.cfg.directives,
		directive{"bind", "127.0.0.1"}, directive{"tls-port", strconv.Itoa(port)}, directive{"tls-auth-clients", "yes"})
	for name, path := range map[string]string{
		"tls-cert-file": files.Cert, "tls-key-file": files.Key, "tls-ca-cert-file": files.Authority,
	} {
		s.cfg.directives = append(s.cfg.directives, directive{name, fmt.Sprintf("%q", path)})
	}
	return nil
}

// lacksTLS reports whether the server has refused its configuration because it was built without TLS.
func (s *Server) lacksTLS() bool {
	log := s.log()
	return strings.Contains(log, "'tls-port") && strings.Contains(log, "Bad directive")
}
