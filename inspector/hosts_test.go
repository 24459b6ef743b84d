package inspector_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestHosts: a request for another host than the named ones gets nothing, so a name of another site may point to this address.
func TestHosts(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	mustLock(t, locks.Mutex("secret"))
	page, err := inspector.New(locks, inspector.WithHosts("localhost", "127.0.0.1", "::1"))
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, page, page)
	for host, want := range map[string]int{
		"localhost": 200, "localhost:6060": 200, "LOCALHOST:6060": 200, "127.0.0.1:1": 200, "[::1]:6060": 200, "[::1]": 200,
		"evil.example": 421, "evil.example:6060": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example:6060": 421,
	} {
		for _, path := range []string{"/", "/lock?name=secret", "/style.css", "/?format=events"} {
			ctx, cancel := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			resp, err := s.client.Do(req)
			if err != nil || resp.StatusCode != want {
				t.Errorf("%s%s: %v, error %v, want %d", host, path, resp, err, want)
			}
			if cancel(); err == nil {
				resp.Body.Close()
			}
		}
	}
}
