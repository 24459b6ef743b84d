// Http-gin guards payments in gin, with a package of its own.
//
// Run it from the root of the repository. With REDIS_URL, its records stay for a minute.
//
//	go run ./examples/http-gin
package main

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/internal/example"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

func main() {
	gin.SetMode(gin.ReleaseMode)
	example.Main(run)
}

func run(_ context.Context, out io.Writer, rdb *redis.Client) error {
	locks, err := core.New(rdb)
	if err != nil {
		return err
	}
	defer locks.Close()

	guard := ginlock.Idempotent(locks, httplock.ByContext("user"),
		core.WithFailurePolicy(core.HoldFailures),
		core.WithRetention(time.Minute)) // a week in a service: after it, a retry charges again, and a held payment too
	payments := 0
	router := gin.New()
	router.Use(gin.Recovery(), authenticate)
	router.POST("/payments", guard, func(c *gin.Context) {
		payments++           // the money moves
		_ = core.Complete(c) // if Redis does not reply, it is tried again at the end
		c.String(http.StatusCreated, "payment %d", payments)
	})
	return example.Payments(out, router)
}

// authenticate stands for real authentication, which belongs around the guard.
func authenticate(c *gin.Context) {
	user, _, _ := c.Request.BasicAuth()
	c.Set("user", user)
}
