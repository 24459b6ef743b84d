package gin_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"reflect"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"

	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// What middlewares around the guard set is their own for each request; cookies are for the first one alone.
func TestHeaderOfAReplay(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	around := func(c *gin.Context) {
		c.Header("X-Request-Id", c.GetHeader("X-Request-Id"))
		c.Header("Access-Control-Allow-Origin", c.GetHeader("Origin"))
		c.Header("Vary", "Origin")
	}
	from := func(id string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("X-Request-Id", id)
			r.Header.Set("Origin", "https://"+id+".example")
		}
	}
	for kind, guard := range recording(locks) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, router(around, guard, func(c *gin.Context) {
				c.SetCookie("session", "secret", 60, "/", "", true, true)
				c.Header("Location", "/orders/7")
				c.JSON(http.StatusCreated, gin.H{"id": 7})
			}))
			first := order(t, srv, "k", from("one"))
			first.wantRun(t, http.StatusCreated)
			if first.header.Get("Set-Cookie") == "" {
				t.Error("the first answer has lost its cookie")
			}
			again := order(t, srv, "k", from("two"))
			again.wantReplay(t, http.StatusCreated, first.body)
			again.header.Del("Date")
			want := http.Header{
				"X-Request-Id": {"two"}, "Access-Control-Allow-Origin": {"https://two.example"}, "Vary": {"Origin"},
				"Location": {"/orders/7"}, "Content-Type": {"application/json; charset=utf-8"},
				"Content-Length": {"8"}, "Idempotency-Replayed": {"true"}, "Cache-Control": {"no-store"},
			}
			if !reflect.DeepEqual(again.header, want) {
				t.Errorf("replay\n%v, want\n%v", again.header, want)
			}
		})
	}
}

// What a replay is made of does not reach the handlers behind the guard.
func TestReplayAborts(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for kind, guard := range recording(locks) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			runs := 0
			count := func(*gin.Context) { runs++ }
			srv := serve(t, router(guard, count, count, func(c *gin.Context) { c.Status(http.StatusOK) }))
			order(t, srv, "k").wantRun(t, http.StatusOK)
			order(t, srv, "k").wantReplay(t, http.StatusOK, "")
			if runs != 2 {
				t.Errorf("%d runs of two handlers, want one each", runs)
			}
		})
	}
}

// The body that Idempotent has compared can be bound as often as gin allows.
func TestBodyBehindIdempotent(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	srv := serve(t, router(ginlock.Idempotent(locks, httplock.ByHeader("X-User"), patiently()...), func(c *gin.Context) {
		raw, err := io.ReadAll(c.Request.Body)
		if err != nil || string(raw) != `{"item":"pen"}` {
			t.Errorf("the body is %q, error %v", raw, err)
		}
		c.Request.Body = io.NopCloser(bytes.NewReader(raw))
		for range 2 {
			var bound struct{ Item string }
			if err := c.ShouldBindBodyWith(&bound, binding.JSON); err != nil || bound.Item != "pen" {
				t.Errorf("bound %+v, error %v", bound, err)
			}
		}
	}))
	order(t, srv, "k").wantRun(t, http.StatusOK)
}

// A service of either kind replays what one of the other kind has answered, to the same user only.
func TestRecordsAreSharedWithNetHTTP(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	here := ginlock.Idempotent(locks, httplock.ByContext("user"), patiently()...)
	login := func(c *gin.Context) { c.Set("user", c.GetHeader("X-User")) }
	ginSide := serve(t, router(login, here, func(c *gin.Context) {
		c.Header("Location", "/orders/7")
		c.JSON(http.StatusCreated, gin.H{"by": "gin"})
	}))
	there := httplock.Idempotent(locks, httplock.ByContext(userKey{}), httplock.WithAskTimeout(patience))(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/orders/7")
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{"by":"net/http"}`))
		}))
	httpSide := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		there.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, r.Header.Get("X-User"))))
	}))
	bob := func(r *http.Request) { r.Header.Set("X-User", "bob") }

	first := order(t, ginSide, "from-gin")
	first.wantRun(t, http.StatusCreated)
	checkReplay(t, order(t, httpSide, "from-gin"), first)
	order(t, httpSide, "from-gin", bob).wantRun(t, http.StatusCreated)

	first = order(t, httpSide, "from-net-http")
	first.wantRun(t, http.StatusCreated)
	checkReplay(t, order(t, ginSide, "from-net-http"), first)
	order(t, ginSide, "from-net-http", bob).wantRun(t, http.StatusCreated)
}
