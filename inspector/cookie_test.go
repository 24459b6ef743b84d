package inspector_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestSecureCookies: over HTTPS, also where a proxy ends it, cookies are Secure and of this host alone, and actions work. A cookie
// of the plain name, which another host of the domain could set, does not count there.
func TestSecureCookies(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	for name, test := range map[string]struct {
		proxy  bool
		opts   []inspector.Option
		header string // X-Forwarded-Proto
		secure bool
	}{
		"TLS":                             {false, nil, "", true},
		"TLS ends at a proxy":             {true, []inspector.Option{inspector.WithSecureCookies()}, "", true},
		"a proxy, without the option":     {true, nil, "", false},
		"a header that anybody may send":  {true, nil, "https", false},
		"a header that denies the option": {true, []inspector.Option{inspector.WithSecureCookies()}, "http", true},
	} {
		page, err := inspector.New(locks, append(test.opts, inspector.WithActions(asAda))...)
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		mux.Handle(mount, page)
		server := httptest.NewUnstartedServer(mux)
		if test.proxy {
			plain := httptest.NewServer(mux)
			t.Cleanup(plain.Close)
			to, err := url.Parse(plain.URL)
			if err != nil {
				t.Fatal(err)
			}
			server.Config.Handler = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(to)
				r.Out.Host = r.In.Host
				if test.header != "" {
					r.Out.Header.Set("X-Forwarded-Proto", test.header)
				}
			}}
		}
		server.StartTLS()
		t.Cleanup(server.Close)
		t.Cleanup(func() { _ = page.Close() })
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		client := server.Client()
		client.Jar = jar
		s := &site{server, t, client, page}
		mustLock(t, locks.Mutex("name"))
		const path = "force-unlock?name=name"
		resp, body := s.do(http.MethodGet, path, nil)
		cookies := resp.Cookies()
		if resp.StatusCode != http.StatusOK || len(cookies) != 1 {
			t.Fatalf("%s: status %d, cookies %v: %s", name, resp.StatusCode, cookies, body)
		}
		c := cookies[0]
		if c.Secure != test.secure || strings.HasPrefix(c.Name, "__Host-") != test.secure || (c.Path == "/") != test.secure ||
			c.Domain != "" || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
			t.Errorf("%s: the cookie is %v", name, c)
		}
		if test.secure {
			planted := "holdfast-inspector=planted"
			client.Jar = nil
			form := url.Values{"token": {"planted"}, "confirm": {"name"}}
			if resp, body := s.do(http.MethodPost, path, form, "Cookie", planted); resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s: status %d with a planted cookie: %s", name, resp.StatusCode, body)
			}
			client.Jar = jar
		}
		form := s.form(path)
		form.Set("confirm", "name")
		if resp, body := s.do(http.MethodPost, path, form); resp.StatusCode != http.StatusOK || !strings.Contains(body, "The lock was taken") {
			t.Errorf("%s: status %d: %s", name, resp.StatusCode, body)
		}
	}
}
