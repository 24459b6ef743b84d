package fiberlock_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/gofiber/fiber/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
	fiberlock "github.com/holdfast-go/holdfast/middleware/fiber"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// authenticate stands for real authentication, which belongs around the guard.
func authenticate(c fiber.Ctx) error {
	c.Locals("user", "ada")
	return c.Next()
}

// A payment whose client may retry it.
func ExampleIdempotent() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()

	charges := 0
	charge := func(c fiber.Ctx) error {
		charges++
		id := core.KeyHash(c.Context()) // for the payment service, which then charges once as well
		return c.Status(http.StatusCreated).SendString(fmt.Sprintf("charge %d, with a key: %t", charges, id != ""))
	}
	app := fiber.New()
	pay := fiberlock.Idempotent(locks, httplock.ByContext("user"), core.WithFailurePolicy(core.HoldFailures))
	app.Post("/payments", authenticate, pay, charge)

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/payments", nil)
		r.Header.Set("Idempotency-Key", "8f14e45f")
		resp, err := app.Test(r)
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		fmt.Printf("%d %s, replayed: %q\n", resp.StatusCode, body, resp.Header.Get("Idempotency-Replayed"))
	}

	// Output:
	// 201 charge 1, with a key: true, replayed: ""
	// 201 charge 1, with a key: true, replayed: "true"
}
