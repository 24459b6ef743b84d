package holdfast_test

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/seal"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/msglock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestNames: digests of the log and keys of requests lead to names.
func TestNames(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	if _, err := locks.Mutex("order:42").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	digest := seal.NamesOf(locks).Digest("order:42", false)
	run(t, url, "digest", digest).want(t, 0, "lock order:42\n", "")
	run(t, url, "digest", "--of", "order:42").want(t, 0, digest, "")
	run(t, url, "digest", "--of", "--json", "order:42").want(t, 0, `"kind":"lock"`, "")
	run(t, url, "once", "charge:7", "--", "true").want(t, 0, "", "")
	run(t, url, "digest", seal.NamesOf(locks).Digest("charge:7", true)).want(t, 0, "once charge:7\n", "")
	for _, text := range []string{"lock=" + digest, `"lock":"` + digest + `",`, "digest: " + strings.ToUpper(digest), " " + digest + " "} {
		run(t, url, "digest", text).want(t, 0, "lock order:42\n", "") // as in a line of the log
	}
	run(t, url, "digest", "--json", "lock="+digest).want(t, 0, `"digest":"`+digest+`"`, "")
	run(t, url, "digest", "lock=order:42").want(t, 64, "", "digest")
	run(t, url, "digest", "00000000").want(t, 1, "", "no lock")
	for _, hash := range []string{strings.Repeat("k", 43), "-v" + strings.Repeat("k", 41), "--" + strings.Repeat("k", 41)} { // key_hash of a guard
		for _, name := range []string{"http:" + hash, "http:{scope}:" + hash} {
			if _, err := locks.Once(name).Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := locks.Mutex("http:" + hash).Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		run(t, url, "digest", "key_hash="+hash).want(t, 0, "lock http:"+hash+"\n", "")
		got := run(t, url, "digest", hash)
		for _, line := range []string{"lock http:" + hash + "\n", "once http:" + hash + "\n", "once http:{scope}:" + hash + "\n"} {
			got.want(t, 0, line, "")
		}
	}
	run(t, url, "digest", strings.Repeat("z", 43)).want(t, 1, "", "no lock")
	route, err := httplock.RouteKey("POST", "/orders")
	if err != nil {
		t.Fatal(err)
	}
	user, err := httplock.PrincipalKey("ada")
	if err != nil {
		t.Fatal(err)
	}
	key, err := httplock.Join(route, user)
	if err != nil {
		t.Fatal(err)
	}
	run(t, url, "http-key", "POST", "/orders", "--user", "ada").want(t, 0, key.Name(nil)+"\n", "")
	cmd := command(t, url, "http-key", "POST", "/orders", "--user", "ada")
	cmd.Env = append(cmd.Env, "HOLDFAST_KEY_SECRET=0123456789abcdef")
	finish(t, cmd).want(t, 0, key.Name([]byte("0123456789abcdef"))+"\n", "")
	run(t, url, "http-key").want(t, 64, "", "no parts")
}

// TestMsgKey: the name is that of the guard, with its secret.
func TestMsgKey(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	for _, secret := range []string{"", "0123456789abcdef"} {
		var opts []msglock.Option
		if secret != "" {
			opts = append(opts, msglock.WithKeySecret([]byte(secret)))
		}
		key := func(_ context.Context, key string) (string, error) { return key, nil }
		guard, err := msglock.NewOnce(locks, "billing", key, func(context.Context, string) error { return nil }, opts...)
		if err != nil {
			t.Fatal(err)
		}
		if err := guard.Handle(t.Context(), "order-42"); err != nil {
			t.Fatal(err)
		}
		record, err := guard.Peek(t.Context(), "order-42")
		if err != nil {
			t.Fatal(err)
		}
		cmd := with(command(t, url, "msg-key", "billing", "order-42"), "HOLDFAST_KEY_SECRET="+secret)
		finish(t, cmd).want(t, 0, record.Key+"\n", "a record has this name: completed")
	}
	run(t, url, "msg-key", "--json", "billing", "order-43").want(t, 0, `"record":"none"`, "")
	run(t, url, "msg-key", "billing", "order-43").want(t, 0, "msg:", "no record has this name: the guard needs the same consumer, key, secret")
	finish(t, with(command(t, url, "msg-key", "billing", "order-42"), "HOLDFAST_KEY_SECRET=short")).want(t, 64, "", "16 are needed")
}

// TestHTTPKeyRefuses: what no guard makes has no name. The test of the guards' own names is beside the tests of gin.
func TestHTTPKeyRefuses(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	for _, test := range []struct{ args, says string }{
		{"POST /orders --part tenant=7", "no key function makes this"},
		{"POST /orders --part path=7", "written in another way"},
		{"POST /orders --part user:ada=7", "written in another way"},
		{"POST /orders --part unscoped=7", "written in another way"},
		{"POST /cart/{id} --part path:event=7", `has no wildcard of this name, but: ["id"]`},
		{"POST /cart/:id --part path:event=7", `has no wildcard of this name, but: ["id"]`},
		{"--user ada --part path:id=7", "such as: http-key /cart/{id}, or http-key POST /cart/{id} if the guard's key has ByRoute"},
		{"--part route", "the method and the route are missing"},
		{"POST", "the route of POST is missing"},
		{"post /orders", "upper case"},
		{"POST orders", "no slash"},
		{"/orders --user ada", "the method of the route /orders is missing"},
		{"/orders", "the method of the route /orders is missing"},
		{"/cart/{id} --user ada --part query:cart=7", "the method of the route /cart/{id} is missing"},
		{"/cart/:id --user ada --part path:id=7 --part route", "the method and the route are missing"},
		{"POST /orders?x=1", "has a query"},
		{"POST /orders#x", "has a query"},
		{"POST /orders?x=1 --router gin", "has a query"},
		{"POST /cart/../x", `has a segment ".."`},
		{"POST /cart/%2E%2e/x --router nethttp", `has a segment ".."`},
		{"POST /cart/{id} --part path:id=..", `has a segment ".."`},
		{"POST /files/{rest...} --part path:rest=a/../b", `has a segment ".."`},
		{"/files/*rest --part path:rest=a/../b", `has a segment ".."`},
		{"--user ada --router gin", "--router gin is for a route"},
		{"POST /v1/orders:batch", "add --router"},
		{"POST /files/{rest...}", "has many paths"},
		{"POST /files/*rest", "has many paths"},
		{"--user ada --idempotency-key a,b", "visible ASCII"},
		{"--idempotency-key k", "the scope of the guard is missing"},
		{"--part header:X-Cart=", "is empty"},
		{"--part json:/cart=null", "no key in the request"},
		{"--part json:cart=7", "does not begin with /"},
		{"--part ip=7", "unable to parse IP"},
		{"--part constant=" + strings.Repeat("x", 256), "at most 255"},
	} {
		got := run(t, url, append([]string{"http-key"}, strings.Fields(test.args)...)...)
		if got.want(t, 64, "", test.says); got.stdout != "" {
			t.Errorf("%s: printed %q", test.args, got.stdout)
		}
	}
	run(t, url, "http-key", "POST", "GET /orders").want(t, 64, "", "two methods")
	finish(t, with(command(t, url, "http-key", "--user", "ada"), "HOLDFAST_KEY_SECRET=short")).want(t, 64, "", "16 are needed")
}

// TestHTTPKeyReports: http-key says what is stored under the name, and prints the name although Redis does not reply.
func TestHTTPKeyReports(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	args := []string{"http-key", "POST /cart/{id}", "--user", "ada", "--part", "path:id=7"}
	none := run(t, url, args...)
	none.want(t, 0, "http:", `no record and no held lock has this name. It is made by Keys(ByRoute(), ByPrincipal(…), ByPathValue("id"))`)
	none.want(t, 0, "http:", "If the guard has no ByRoute, leave out the method")
	plain := run(t, url, "http-key", "/cart/{id}", "--user", "ada", "--part", "path:id=7")
	if plain.want(t, 0, "http:", "no record"); strings.Contains(plain.stderr, "leave out the method") || plain.stdout == none.stdout {
		t.Errorf("without a method: %+v", plain)
	}
	name := strings.TrimSpace(none.stdout)
	if gin := run(t, url, "http-key", "POST", "/cart/:id", "--part", "route", "--user", "ada", "--part", "path:id=7"); gin.stdout == none.stdout {
		t.Error("another order of the parts makes the same name")
	}
	run(t, url, "http-key", "POST", "/cart/:id", "--user", "ada", "--part", "path:id=7").want(t, 0, name, "ByParam")
	if _, err := locks.Mutex(name).Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, url, args...).want(t, 0, name, "a lock with this name is held (mutex)")
	run(t, url, append(args, "--json")...).want(t, 0, `"lock":"mutex","record":"none"`, "")
	if _, err := locks.Once(name).Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, url, args...).want(t, 0, name, "a record has this name: running, attempt 1, begun at ")
	run(t, "redis://127.0.0.1:1", args...).want(t, 69, name+"\n", "it is not known whether a record or a lock has this name (--offline does not ask)")
	if got := run(t, "redis://127.0.0.1:1", append(args, "--offline")...); got != (result{stdout: name + "\n"}) {
		t.Errorf("offline: %+v", got)
	}
}
