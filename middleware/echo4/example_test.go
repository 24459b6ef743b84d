package echo4lock_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/labstack/echo/v4"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
	echo4lock "github.com/holdfast-go/holdfast/middleware/echo4"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// authenticate stands for real authentication, which belongs around the guard.
func authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		user, _, _ := c.Request().BasicAuth()
		c.Set("user", user)
		return next(c)
	}
}

// A payment whose client may retry it.
func ExampleIdempotent() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()

	charges := 0
	charge := func(c echo.Context) error {
		charges++
		id := core.KeyHash(c.Request().Context()) // for the payment service, which then charges once as well
		return c.String(http.StatusCreated, fmt.Sprintf("charge %d, with a key: %t", charges, id != ""))
	}
	e := echo.New()
	pay := echo4lock.Idempotent(locks, httplock.ByContext("user"), core.WithFailurePolicy(core.HoldFailures))
	e.POST("/payments", charge, authenticate, pay)

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/payments", nil)
		r.SetBasicAuth("ada", "secret")
		r.Header.Set("Idempotency-Key", "8f14e45f")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		fmt.Printf("%d %s, replayed: %q\n", w.Code, w.Body, w.Header().Get("Idempotency-Replayed"))
	}

	// Output:
	// 201 charge 1, with a key: true, replayed: ""
	// 201 charge 1, with a key: true, replayed: "true"
}
