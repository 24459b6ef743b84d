package connect

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
)

// clientName is what CLIENT LIST of Redis shows for connections of the command.
const clientName = "holdfast"

// Settings say how to reach Redis.
type Settings struct {
	// URL of the deployment, see the package.
	URL string
	// Username and Password override the ones in the URL, if they are not empty.
	Username, Password string
	// PasswordFile has the password in its first line; it overrides Password.
	PasswordFile string
	// CAFile has the certificates of the authorities to trust, in PEM. Defaults to the system's.
	CAFile string
	// CertFile and KeyFile are the certificate of this client and its key, in PEM.
	CertFile, KeyFile string
}

// Open returns a client. It does no I/O over the network. The caller must close the client. No error has the password.
func Open(s Settings) (redis.UniversalClient, error) {
	t, err := parse(s.URL)
	if err != nil {
		return nil, fmt.Errorf("the URL of Redis: %w", err)
	}
	*t.onConnect = setName
	if err := s.authenticate(t); err != nil {
		return nil, err
	}
	if err := s.secure(t.tls); err != nil {
		return nil, err
	}
	return t.open(), nil
}

// setName sets the name of a new connection in Redis. Errors are ignored: the user may lack the right to
// "client|setname", which locks do not need. go-redis gives a connection up if it cannot set ClientName.
func setName(ctx context.Context, conn *redis.Conn) error {
	_ = conn.ClientSetName(ctx, clientName).Err()
	return nil
}

// authenticate sets the user and the password. It refuses a user alone, because the connection would have other rights.
func (s Settings) authenticate(t target) error {
	password := s.Password
	if s.PasswordFile != "" {
		text, err := os.ReadFile(s.PasswordFile)
		if err != nil {
			return fmt.Errorf("the file of the password: %w", err)
		}
		password, _, _ = strings.Cut(string(text), "\n")
		if password = strings.TrimSuffix(password, "\r"); password == "" {
			return errors.New("the file of the password has an empty first line")
		}
	}
	*t.username = cmp.Or(s.Username, *t.username)
	*t.password = cmp.Or(password, *t.password)
	if *t.username != "" && *t.password == "" {
		return errors.New("a user needs a password, or go-redis connects as the default user: set HOLDFAST_REDIS_PASSWORD, " +
			"to any text if the user has none")
	}
	return nil
}

// secure sets what TLS needs.
func (s Settings) secure(config *tls.Config) error {
	if s.CAFile == "" && s.CertFile == "" && s.KeyFile == "" {
		return nil
	}
	if config == nil {
		return errors.New("certificates need a URL with TLS: rediss, rediss+sentinel or rediss+cluster")
	}
	if s.CAFile != "" {
		text, err := os.ReadFile(s.CAFile)
		if err != nil {
			return fmt.Errorf("the file of the authorities: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("%s has no certificate in PEM", s.CAFile)
		}
	}
	if s.CertFile != "" || s.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
		if err != nil {
			return fmt.Errorf("the certificate of this client: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// Server returns the part of a URL that says where the server is: neither user and password, nor parameters. The URL is one that
// [Open] has accepted.
func Server(text string) string {
	scheme, _, _ := strings.Cut(text, "://")
	authority, behind := split(text)
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		authority = authority[at+1:]
	}
	path, _, _ := strings.Cut(behind, "?")
	return scheme + "://" + authority + path
}

// Silence switches off the lines that go-redis itself writes to standard error: errors are returned.
func Silence() { redis.SetLogger(quiet{}) }

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
