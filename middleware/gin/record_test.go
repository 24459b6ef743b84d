package ginlock_test

import (
	"net/http"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
)

// Business code finds what a request has left by the same values, and can let another one run.
func TestPeekAndForget(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, redistest.Start(t).Client())
	secret := []byte("0123456789abcdef")
	login := func(c *gin.Context) { c.Set("user", c.GetHeader("X-User")) }
	guard := ginlock.Idempotent(locks, ginlock.ByKey("user"), patiently(ginlock.WithKeySecret(secret))...)
	srv := serve(t, router(login, guard, func(c *gin.Context) { c.String(http.StatusCreated, "created") }))
	order(t, srv, "k").wantRun(t, http.StatusCreated)

	user, err := ginlock.PrincipalKey(t.Name())
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := ginlock.IdempotencyKey("k")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ginlock.Join(user, chosen)
	if err != nil {
		t.Fatal(err)
	}
	for want, secret := range map[core.State][]byte{core.StateCompleted: secret, core.StateNone: nil} {
		if record, err := ginlock.Peek(t.Context(), locks, key, secret); err != nil || record.State != want {
			t.Errorf("state %v, error %v, want %v", record.State, err, want)
		}
	}
	if err := ginlock.Forget(t.Context(), locks, key, secret); err != nil {
		t.Fatal(err)
	}
	order(t, srv, "k").wantRun(t, http.StatusCreated)
}
