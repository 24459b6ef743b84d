package gin_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// holdfastCommand builds the command, and returns a function that runs it on a server, without an inherited secret.
func holdfastCommand(t *testing.T, srv *testkit.Server) func(args ...string) (stdout, stderr string) {
	t.Helper()
	// The results of tests are cached until files change that the test has looked at.
	if err := filepath.WalkDir("../../cmd/holdfast", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			_, err = os.ReadFile(path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "holdfast")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Dir = "../../cmd/holdfast"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return func(args ...string) (string, string) {
		var stdout, stderr bytes.Buffer
		cmd := exec.Command(path, args...)
		cmd.Env = append(os.Environ(), "HOLDFAST_REDIS=unix://"+srv.Addr(), "HOLDFAST_KEY_SECRET=")
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Errorf("%q: %v: %s", args, err, &stderr)
		}
		return stdout.String(), stderr.String()
	}
}

type ctxUser struct{}

// TestCommandNamesRecords: for each key function, a request through a guard of net/http and one of gin make records that
// http-key names, however the route is written, and says that they exist.
func TestCommandNamesRecords(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	command := holdfastCommand(t, srv)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	hUser, gUser := httplock.ByContext(ctxUser{}), httplock.ByContext("user")
	for i, test := range []struct {
		theirs, ours string // routes
		path         string
		http         httplock.KeyFunc
		gin          httplock.KeyFunc
		args         string // behind the route
		method       string // of the command; none by default
		options      []httplock.Option
	}{
		{"/orders", "/orders", "/orders", httplock.ByRoute(), httplock.ByRoute(), "", "POST", nil},
		{"/orders/{event}", "/orders/:event", "/orders/7", httplock.ByRoute(), httplock.ByRoute(), "", "POST", nil},
		{"/orders/{$}", "/orders/", "/orders/", httplock.ByRoute(), httplock.ByRoute(), "", "POST", nil},
		{
			"/events/{event}/seats/{seat}", "/events/:event/seats/:seat", "/events/7/seats/9",
			httplock.Keys(httplock.ByRoute(), hUser, httplock.ByPathValue("event"), httplock.ByPathValue("seat")),
			httplock.Keys(httplock.ByRoute(), gUser, httplock.ByPathValue("event"), httplock.ByPathValue("seat")),
			"--user ada --part path:event=7 --part path:seat=9", "POST", nil,
		},
		{
			"/cart/{id}/checkout", "/cart/:id/checkout", "/cart/a%2Fb%20c/checkout", httplock.ByPathValue("id"), httplock.ByPathValue("id"),
			"--part path:id=a/b\x00c", "", nil,
		},
		{
			"/files/{file...}", "/files/*file", "/files/a/b%20c", httplock.Keys(httplock.ByRoute(), httplock.ByPathValue("file")),
			httplock.Keys(httplock.ByRoute(), httplock.ByPathValue("file")), "--part path:file=a/b\x00c", "POST", nil,
		},
		{"/", "/", "/", hUser, gUser, "--user ada", "", nil},
		{
			"/", "/", "/", httplock.ByPrincipal(func(r *http.Request) (string, error) { return r.Context().Value(ctxUser{}).(string), nil }),
			httplock.ByPrincipal(func(r *http.Request) (string, error) { return ginlock.Context(r).GetString("user"), nil }), "--part user=ada", "", nil,
		},
		{
			"/orders", "/orders", "/orders", httplock.Keys(hUser, httplock.ByRoute()), httplock.Keys(gUser, httplock.ByRoute()),
			"--part user=ada --part route", "POST", nil,
		},
		{"/", "/", "/", httplock.ByHeader("x-cart"), httplock.ByHeader("x-cart"), "--part header:x-cart=9", "", nil},
		{"/", "/", "/", httplock.ByCookie("cart"), httplock.ByCookie("cart"), "--part cookie:cart=c9", "", nil},
		{"/", "/", "/?cart=9%20a", httplock.ByQuery("cart"), httplock.ByQuery("cart"), "--part query:cart=9\x00a", "", nil},
		{"/", "/", "/form", httplock.ByForm("cart"), httplock.ByForm("cart"), "--part form:cart=9=9", "", nil},
		{"/", "/", "/json", httplock.ByJSON("/cart/id"), httplock.ByJSON("/cart/id"), "--part json:/cart/id=9", "", nil},
		{"/", "/", "/json", httplock.ByJSON("/cart/a~1b"), httplock.ByJSON("/cart/a~1b"), "--part json:/cart/a~1b=text", "", nil},
		{"/", "/", "/", httplock.ByHost(), httplock.ByHost(), "--part host=shop.example.com", "", nil},
		{"/", "/", "/", httplock.ByClientIP(httplock.RemoteAddr), ginlock.ByClientIP(), "--part ip=2001:db8::1", "", nil},
		{"/", "/", "/", httplock.Constant("all"), httplock.Constant("all"), "--part constant=all", "", nil},
		{"/", "/", "/", httplock.Unscoped(), httplock.Unscoped(), "--part unscoped", "", nil},
		{
			"/", "/", "/", func(*http.Request) (httplock.Key, error) { return httplock.NewKey("tenant", "7") },
			func(*http.Request) (httplock.Key, error) { return httplock.NewKey("tenant", "7") }, "--part key:tenant=7", "", nil,
		},
		{"/", "/", "/", hUser, gUser, "--user ada --secret-file " + secret, "", []httplock.Option{httplock.WithKeySecret([]byte("0123456789abcdef"))}},
		{"/", "/", "/", nil, nil, "--user ada --idempotency-key k1", "", nil}, // Idempotent
	} {
		for framework, route := range map[string]string{"nethttp": test.theirs, "gin": test.ours} {
			prefix := fmt.Sprintf("%s%d:", framework, i)
			locks := newLocks(t, srv.Client(), core.WithPrefix(prefix))
			var handler http.Handler
			if framework == "gin" {
				guard := ginlock.Idempotent(locks, gUser)
				if test.gin != nil {
					guard = ginlock.Once(locks, test.gin, test.options...)
				}
				engine := gin.New()
				engine.UseRawPath = true
				if err := engine.SetTrustedProxies(nil); err != nil {
					t.Fatal(err)
				}
				engine.Use(func(c *gin.Context) { c.Set("user", "ada") })
				engine.POST(route, guard, func(c *gin.Context) { c.Status(http.StatusOK) })
				handler = engine
			} else {
				guard := httplock.Idempotent(locks, hUser)
				if test.http != nil {
					guard = httplock.Once(locks, test.http, test.options...)
				}
				mux := http.NewServeMux()
				mux.Handle(route, guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })))
				handler = mux
			}
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, keyedRequest(test.path))
			var names []string
			for record, err := range locks.Records(t.Context(), "") {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, record.Key)
			}
			if w.Code != http.StatusOK || len(names) != 1 {
				t.Errorf("%s %s: status %d %s, records %q", framework, route, w.Code, w.Body, names)
				continue
			}
			args := []string{"http-key", "--prefix", prefix}
			if test.method != "" {
				args = append(args, test.method, route)
			} else if strings.Contains(test.args, "path:") {
				args = append(args, route)
			}
			for arg := range strings.FieldsSeq(test.args) {
				args = append(args, strings.ReplaceAll(arg, "\x00", " "))
			}
			stdout, stderr := command(args...)
			if stdout != names[0]+"\n" || !strings.Contains(stderr, "a record has this name: completed, attempt 1") {
				t.Errorf("%q: printed %q and %q, want %q", args, stdout, stderr, names[0])
			}
		}
	}
}

// keyedRequest returns a request in which each key function finds its value.
func keyedRequest(path string) *http.Request {
	body, mediaType := "", ""
	switch path {
	case "/form":
		path, body, mediaType = "/", "cart=9%3D9", "application/x-www-form-urlencoded"
	case "/json":
		path, body, mediaType = "/", `{"cart":{"id":9,"a/b":"text"}}`, "application/json"
	}
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header = http.Header{
		"X-Cart": {"9"}, "Cookie": {"cart=c9"}, "Content-Type": {mediaType}, "Idempotency-Key": {`"k1"`},
	}
	r.Host, r.RemoteAddr = "Shop.example.com:443", "[2001:db8::1]:1234"
	return r.WithContext(context.WithValue(r.Context(), ctxUser{}, "ada"))
}

// TestCommandNamesLocks: http-key says that the lock of a request in progress is held, and which name it has.
func TestCommandNamesLocks(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	command := holdfastCommand(t, srv)
	locks := newLocks(t, srv.Client())
	var stdout, stderr string
	engine := gin.New()
	engine.POST("/orders/:event", ginlock.Exclusive(locks.Mutex, httplock.Keys(httplock.ByRoute(), httplock.ByPathValue("event"))), func(*gin.Context) {
		stdout, stderr = command("http-key", "POST", "/orders/:event", "--part", "path:event=7")
	})
	engine.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/orders/7", nil))
	if !strings.HasPrefix(stdout, "http:") || !strings.Contains(stderr, "a lock with this name is held (mutex)") {
		t.Errorf("printed %q and %q", stdout, stderr)
	}
}
