package testkit_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestTLS: only those with a certificate of the authority come in, also after a restart.
func TestTLS(t *testing.T) {
	t.Parallel()
	a := testkit.NewAuthority(t)
	srv := testkit.Start(t, testkit.TLS(a))
	none := a.ClientConfig()
	none.Certificates = nil
	for range 2 {
		if err := srv.TLSClient(a.ClientConfig(), once).Ping(t.Context()).Err(); err != nil {
			t.Error(err)
		}
		for name, err := range map[string]error{
			"no certificate":    srv.TLSClient(none, once).Ping(t.Context()).Err(),
			"another authority": srv.TLSClient(testkit.NewAuthority(t).ClientConfig(), once).Ping(t.Context()).Err(),
			"no TLS":            srv.TLSClient(nil, once).Ping(t.Context()).Err(),
		} {
			if err == nil {
				t.Errorf("%s: let in", name)
			}
		}
		srv.Restart()
	}
}
