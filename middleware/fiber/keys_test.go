package fiberlock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"

	"github.com/holdfast-go/holdfast/core"
	fiberlock "github.com/holdfast-go/holdfast/middleware/fiber"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

type userKey struct{}

// TestKeys: a request to fiber has the keys of one to http.ServeMux, without a middleware of the user's.
func TestKeys(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	resource := func(pattern, name, value string) func() (httplock.Key, error) {
		return func() (httplock.Key, error) { return httplock.PathKey(pattern, name, value) }
	}
	route := func(pattern string) func() (httplock.Key, error) {
		return func() (httplock.Key, error) { return httplock.RouteKey(http.MethodPost, pattern) }
	}
	ada := func() (httplock.Key, error) { return httplock.PrincipalKey("ada") }
	for _, test := range []struct {
		pattern, path string
		key           httplock.KeyFunc
		want          func() (httplock.Key, error)
	}{
		{"/orders", "/orders", httplock.ByRoute(), route("/orders")},
		{"/orders", "/ORDERS/?a=b", httplock.ByRoute(), route("/orders")},
		{"/", "/", httplock.ByRoute(), route("/{$}")},
		{"/cart/:id/checkout", "/cart/7/checkout", httplock.ByRoute(), route("/cart/{id}/checkout")},
		{"/cart/:id/checkout", "/cart/7/checkout", httplock.ByPathValue("id"), resource("/cart/{id}", "id", "7")},
		{"/cart/:id<int>/checkout", "/cart/7/Checkout", httplock.ByPathValue("id"), resource("/cart/{id}", "id", "7")},
		{"/:id/:idle", "/7/8", httplock.ByPathValue("idle"), resource("/{id}/{idle}", "idle", "8")},
		{"/cart/:id", "/cart/a%2Fb", httplock.ByPathValue("id"), resource("/cart/{id}", "id", "a/b")},
		{"/cart/:id", "/cart/%37", httplock.ByPathValue("id"), resource("/cart/{id}", "id", "7")},
		{"/cart/:id", "/cart/%2537", httplock.ByPathValue("id"), resource("/cart/{id}", "id", "%37")},
		{"/cart-:id", "/cart-7", httplock.ByPathValue("id"), resource("/cart-{id}", "id", "7")},
		{"/cart/:id?", "/cart", httplock.ByRoute(), route("/cart")},
		{"/cart/:id?", "/cart/7", httplock.ByPathValue("id"), resource("/cart/{id}", "id", "7")},
		{`/carts/check\:out`, "/carts/check:out", httplock.ByRoute(), route("/carts/check:out")},
		{"/files/*", "/files/a/b", httplock.ByRoute(), route("/files/a/b")},
		{"/files/+", "/files/a/b", httplock.ByPathValue("rest"), resource("/files/{rest...}", "rest", "a/b")},
		{"/user", "/user", httplock.ByContext("user"), ada},
		{"/user", "/user", httplock.ByContext(userKey{}), ada},
		{"/ip", "/ip", fiberlock.ByClientIP(), nil},
	} {
		app := fiber.New()
		var got httplock.Key
		var failed error
		var kept *http.Request
		look := func(r *http.Request) (httplock.Key, error) {
			kept = r
			if fiberlock.Context(r) == nil {
				t.Errorf("%s: the key function has no context of fiber", test.path)
			}
			got, failed = test.key(r)
			return got, failed
		}
		app.Use(func(c fiber.Ctx) error {
			c.Locals("user", "ada")
			c.Locals(userKey{}, "ada")
			return c.Next()
		})
		app.Post(test.pattern, fiberlock.Exclusive(locks.Mutex, look), func(c fiber.Ctx) error { return c.SendStatus(http.StatusCreated) })
		if a := serve(t, app).post(t, test.path, "k"); failed != nil || a.status != http.StatusCreated {
			t.Errorf("%s of %s: status %d, error %v", test.path, test.pattern, a.status, failed)
			continue
		}
		if fiberlock.Context(kept) != nil || kept.Context().Value("user") != nil {
			t.Errorf("%s: the request of the key function has fiber's context when that has returned", test.path)
		}
		if test.want == nil {
			continue
		}
		want, err := test.want()
		if err != nil {
			t.Fatal(err)
		}
		if !got.Equal(want) {
			t.Errorf("%s of %s: another key than in net/http", test.path, test.pattern)
		}
	}
}

// TestGroups: a guard at a route in a group finds the route, one by Use does not, and tells so.
func TestGroups(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	key := httplock.Keys(httplock.ByRoute(), httplock.ByPathValue("id"))
	guard := fiberlock.Once(locks, key, unhurried()...)
	ordered := func(c fiber.Ctx) error { return c.Status(http.StatusCreated).SendString("ordered") }
	app := fiber.New()
	group := app.Group("/v1")
	group.Post("/orders/:id", guard, ordered)
	group.Post("/refunds/:id", guard, ordered)
	used := app.Group("/used", guard)
	used.Post("/orders/:id", ordered)
	srv := serve(t, app)
	for _, want := range []struct {
		path   string
		status int
	}{
		{"/v1/orders/1", 201},
		{"/v1/orders/2", 201},
		{"/v1/refunds/1", 201},
		{"/v1/orders/1", 409},
		{"/used/orders/1", 500},
		{"/nowhere", 404},
	} {
		if a := srv.post(t, want.path, "k"); a.status != want.status {
			t.Errorf("%s: status %d, want %d: %s", want.path, a.status, want.status, a.body)
		}
	}
}

// TestBuffersAreCopied: what a key function and a handler get is theirs when fiber uses its buffers for the next request.
func TestBuffersAreCopied(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	var kept []*http.Request
	var users []any
	app := fiber.New()
	app.Post("/:id", func(c fiber.Ctx) error {
		c.Locals("user", c.Get("X-User")) // not a copy
		return c.Next()
	}, fiberlock.Once(locks, func(r *http.Request) (httplock.Key, error) {
		kept = append(kept, r)
		users = append(users, r.Context().Value("user"))
		return httplock.NewKey("id", r.PathValue("id"))
	}, unhurried(httplock.WithReplay())...), func(c fiber.Ctx) error { return c.SendString(c.Params("id") + c.Get("X-User")) })
	srv := serve(t, app)
	texts := []string{"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "aaaaaaaaaaaaaaaa"}
	for i, text := range texts {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.url+"/"+text+"?q="+text, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-User", text)
		resp, err := srv.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(body) != text+text || (resp.Header.Get("Idempotency-Replayed") == "true") != (i == 2) {
			t.Errorf("request %d: answered %q, %v", i, body, resp.Header)
		}
	}
	for i, r := range kept {
		text := texts[i]
		if r.PathValue("id") != text || r.URL.Path != "/"+text || r.URL.RawQuery != "q="+text || r.Header.Get("X-User") != text ||
			r.RequestURI != "/"+text+"?q="+text || r.Method != http.MethodPost || users[i] != text {
			t.Errorf("request %d: %s %s, header %v, user %v", i, r.Method, r.RequestURI, r.Header, users[i])
		}
	}
}

// TestRepeatedKey: two Idempotency-Keys are not taken for one.
func TestRepeatedKey(t *testing.T) {
	t.Parallel()
	app := fiber.New()
	app.Post("/", idempotent(t, newLocks(t)).Wrap, func(c fiber.Ctx) error { return c.SendStatus(201) })
	srv := serve(t, app)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header["Idempotency-Key"] = []string{"a", "b"}
	resp, err := srv.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d, want 400", resp.StatusCode)
	}
}

// TestFragmentsAreNoPart: what a client sends behind a # is in no value that fiber reads, so it must not make another key.
func TestFragmentsAreNoPart(t *testing.T) {
	t.Parallel()
	app := fiber.New()
	app.Post("/", fiberlock.Once(newLocks(t), httplock.ByQuery("voucher"), unhurried()...), func(c fiber.Ctx) error {
		return c.SendString(c.Query("voucher"))
	})
	srv := serve(t, app)
	for i, want := range []int{http.StatusOK, http.StatusConflict} {
		conn, err := net.Dial("tcp", srv.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(conn, "POST /?voucher=V42#%d HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", i)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _ = conn.Close(); resp.StatusCode != want {
			t.Errorf("request %d: status %d, want %d", i, resp.StatusCode, want)
		}
	}
}

// TestFacts: what a handler reads from its context, or from fiber's.
func TestFacts(t *testing.T) {
	t.Parallel()
	app := fiber.New()
	app.Post("/", idempotent(t, newLocks(t)).Wrap, func(c fiber.Ctx) error {
		for name, ctx := range map[string]context.Context{"run": c.Context(), "fiber": c} {
			token, found := core.TokenFrom(ctx)
			_, attempt := core.AttemptFrom(ctx)
			if !found || token == 0 || !attempt || core.KeyHash(ctx) == "" || httpkit.Attempt(ctx) != 1 {
				t.Errorf("%s: token %d, %t, attempt %d, hash %q", name, token, found, httpkit.Attempt(ctx), core.KeyHash(ctx))
			}
		}
		return nil
	})
	if a := serve(t, app).post(t, "/", "k"); a.status != http.StatusOK {
		t.Errorf("answered %+v", a)
	}
}

// TestStreamedBodies: the guard compares bodies that fiber streams, as far as it reads ahead.
func TestStreamedBodies(t *testing.T) {
	t.Parallel()
	app := fiber.New(fiber.Config{StreamRequestBody: true, BodyLimit: 1 << 10})
	app.Post("/", idempotent(t, newLocks(t)).Wrap, func(c fiber.Ctx) error { return c.Send(c.Body()) })
	srv := serve(t, app)
	for _, step := range []struct {
		body    string
		chunked bool
		status  int
	}{
		{strings.Repeat("a", 100_000), false, 200},
		{strings.Repeat("a", 100_000), false, 200},
		{strings.Repeat("b", 100_000), false, 422},
		{strings.Repeat("a", 2<<20), false, 413},
		{"a", true, 413},
	} {
		var body io.Reader = strings.NewReader(step.body)
		if step.chunked {
			body = io.MultiReader(body)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.url, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "k")
		resp, err := srv.client.Do(req)
		if err != nil && step.status == http.StatusRequestEntityTooLarge {
			continue // the server has closed the connection before it had the body
		}
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		if _ = resp.Body.Close(); resp.StatusCode != step.status || step.status == 200 && string(got) != step.body {
			t.Errorf("%d bytes, chunked %t: status %d, %d bytes, want %d", len(step.body), step.chunked, resp.StatusCode, len(got), step.status)
		}
	}
}
