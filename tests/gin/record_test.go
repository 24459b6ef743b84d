package gin_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// Business code finds what a request has left by the same values, and can let another one run.
func TestPeekAndForget(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	login := func(c *gin.Context) { c.Set("user", c.GetHeader("X-User")) }
	guard, err := ginlock.NewIdempotent(locks, httplock.ByContext("user"),
		patiently(httplock.WithKeySecret([]byte("0123456789abcdef")))...)
	if err != nil {
		t.Fatal(err)
	}
	srv := serve(t, router(login, guard.Wrap, func(c *gin.Context) { c.String(http.StatusCreated, "created") }))
	order(t, srv, "k").wantRun(t, http.StatusCreated)

	user, err := httplock.PrincipalKey(t.Name())
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := httplock.IdempotencyKey("k")
	if err != nil {
		t.Fatal(err)
	}
	record, err := guard.PeekKey(t.Context(), user, chosen)
	if err != nil || record.State != core.StateCompleted {
		t.Errorf("state %v, error %v, want completed", record.State, err)
	}
	if err := guard.Forget(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	order(t, srv, "k").wantRun(t, http.StatusCreated)
}
