package gin_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
)

// ipKey returns the key of a request that comes from remote and claims to be forwarded for another address.
func ipKey(t *testing.T, trusted []string, remote, forwarded string) (key ginlock.Key, err error) {
	t.Helper()
	engine := gin.New()
	if err := engine.SetTrustedProxies(trusted); err != nil {
		t.Fatal(err)
	}
	engine.POST("/", func(c *gin.Context) { key, err = ginlock.ByClientIP()(c) })
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.RemoteAddr = remote
	r.Header.Set("X-Forwarded-For", forwarded)
	engine.ServeHTTP(httptest.NewRecorder(), r)
	return key, err
}

func TestByClientIP(t *testing.T) {
	t.Parallel()
	const proxy = "192.0.2.1:1"
	trusted := []string{"192.0.2.1"}
	for name, test := range map[string]struct {
		trusted [2][]string
		remote  [2]string
		header  [2]string
		same    bool
	}{
		"two ports":        {remote: [2]string{"203.0.113.7:1", "203.0.113.7:2"}, same: true},
		"two addresses":    {remote: [2]string{"203.0.113.7:1", "203.0.113.8:1"}},
		"mapped":           {remote: [2]string{"203.0.113.7:1", "[::ffff:203.0.113.7]:1"}, same: true},
		"one /64":          {remote: [2]string{"[2001:db8::1]:1", "[2001:db8::ffff:1:2:3]:1"}, same: true},
		"two /64":          {remote: [2]string{"[2001:db8::1]:1", "[2001:db8:0:1::1]:1"}},
		"header not heard": {remote: [2]string{proxy, proxy}, header: [2]string{"203.0.113.7", "203.0.113.8"}, same: true},
		"two behind proxy": {
			trusted: [2][]string{trusted, trusted},
			remote:  [2]string{proxy, proxy}, header: [2]string{"203.0.113.7", "203.0.113.8"},
		},
		"one through proxy": {
			trusted: [2][]string{nil, trusted},
			remote:  [2]string{"203.0.113.7:1", proxy}, header: [2]string{"", "203.0.113.7"}, same: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var keys [2]ginlock.Key
			for i := range keys {
				var err error
				if keys[i], err = ipKey(t, test.trusted[i], test.remote[i], test.header[i]); err != nil {
					t.Fatal(err)
				}
			}
			if keys[0].Equal(keys[1]) != test.same {
				t.Errorf("one key %v, want %v", !test.same, test.same)
			}
		})
	}
	if key, err := ipKey(t, nil, "@", ""); err == nil || !key.IsZero() {
		t.Errorf("without address: key %v, error %v", key, err)
	}
}
