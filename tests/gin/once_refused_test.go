package gin_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// Whatever an inner guard is made to answer, the handler behind it did not run; what a handler between the two answers of
// its own is another matter.
func TestRefusalInside(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	answer := func(status int) ginlock.Option {
		return ginlock.WithRefusalHandler(func(c *gin.Context, _ *ginlock.Conflict) { c.String(status, "busy") })
	}
	created := func(c *gin.Context) { c.String(http.StatusCreated, "created") }
	for name, test := range map[string]struct {
		refusal ginlock.Option
		between gin.HandlerFunc
		want    ginlock.Disposition
	}{
		"status 202":  {answer(202), nextOnly, ginlock.Released},
		"status 400":  {answer(400), nextOnly, ginlock.Released},
		"status 500":  {answer(500), nextOnly, ginlock.Released},
		"errors only": {ginlock.ErrorsOnly(), nextOnly, ginlock.Released},
		"default":     {ginlock.WithRefusalHandler(ginlock.Refuse), nextOnly, ginlock.Released},
		"own answer":  {answer(409), created, ginlock.Completed},
	} {
		for _, policy := range []core.FailurePolicy{ginlock.RetryFailures, ginlock.HoldFailures} {
			ends := make(chan ginlock.Finished, 1)
			outer := ginlock.Idempotent(locks, ginlock.Unscoped(), patiently(ginlock.WithFailurePolicy(policy),
				ginlock.WithHooks(ginlock.Hooks{Finished: func(_ context.Context, f ginlock.Finished) { ends <- f }}))...)
			inner := ginlock.Exclusive(locks.Mutex, ginlock.ByHeader("X-Missing"), test.refusal)
			srv := serve(t, router(outer, test.between, inner, func(*gin.Context) { t.Error("the handler ran") }))
			key := strings.ReplaceAll(name, " ", "-") + map[bool]string{true: "-held"}[policy == ginlock.HoldFailures]
			order(t, srv, key)
			if got := receive(t, ends, "the end").Disposition; got != test.want {
				t.Errorf("%s with policy %d: %v, want %v", name, policy, got, test.want)
			}
		}
	}
}
