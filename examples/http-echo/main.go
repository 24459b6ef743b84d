// Http-echo guards payments in Echo.
//
// Run it from the root of the repository. With REDIS_URL, its records stay for a minute.
//
//	go run ./examples/http-echo
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/internal/example"
	echo4lock "github.com/holdfast-go/holdfast/middleware/echo4"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

func main() { example.Main(run) }

func run(_ context.Context, out io.Writer, rdb *redis.Client) error {
	locks, err := core.New(rdb)
	if err != nil {
		return err
	}
	defer locks.Close()

	guard := echo4lock.Idempotent(locks, httplock.ByContext("user"),
		core.WithFailurePolicy(core.HoldFailures),
		core.WithRetention(time.Minute)) // a week in a service: after it, a retry charges again, and a held payment too
	payments := 0
	router := echo.New()
	router.Use(authenticate)
	router.POST("/payments", func(c echo.Context) error {
		payments++                               // the money moves
		_ = core.Complete(c.Request().Context()) // if Redis does not reply, it is tried again at the end
		return c.String(http.StatusCreated, fmt.Sprint("payment ", payments))
	}, guard)
	return example.Payments(out, router)
}

// authenticate stands for real authentication, which belongs around the guard.
func authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		user, _, _ := c.Request().BasicAuth()
		c.Set("user", user)
		return next(c)
	}
}
