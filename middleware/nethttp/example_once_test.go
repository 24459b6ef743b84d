package httplock_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// postAs sends a POST of a user, with an Idempotency-Key if there is one, and prints what comes back.
func postAs(srv *httptest.Server, user, key, path string) {
	req, err := http.NewRequest(http.MethodPost, srv.URL+path, nil)
	if err != nil {
		panic(err)
	}
	req.SetBasicAuth(user, "secret")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(err)
	}
	if resp.Header.Get("Content-Type") == "application/problem+json" {
		body = []byte("refused")
	}
	fmt.Printf("%s: %d %s, replayed: %t\n", user, resp.StatusCode, body, resp.Header.Get("Idempotency-Replayed") == "true")
}

// One order per user, until the record expires.
func ExampleOnce() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()

	orders := 0
	place := func(w http.ResponseWriter, _ *http.Request) {
		orders++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "order %d", orders)
	}
	user := httplock.ByContext(userContext{})
	guard := httplock.Once(locks, httplock.Keys(httplock.ByRoute(), user))
	mux := http.NewServeMux()
	mux.Handle("POST /orders", authenticate(guard(http.HandlerFunc(place))))
	srv := httptest.NewServer(mux)
	defer srv.Close()

	postAs(srv, "ada", "", "/orders")
	postAs(srv, "ada", "", "/orders")
	postAs(srv, "bob", "", "/orders")

	// Output:
	// ada: 201 order 1, replayed: false
	// ada: 409 refused, replayed: false
	// bob: 201 order 2, replayed: false
}

// A client that repeats a payment gets the first answer again. A payment that fails is not tried again before an operator
// has found out: see [Guard].
func ExampleIdempotent() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()

	payments := 0
	pay := func(w http.ResponseWriter, _ *http.Request) {
		payments++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "payment %d", payments)
	}
	guard := httplock.Idempotent(locks, httplock.ByContext(userContext{}), core.WithFailurePolicy(core.HoldFailures))
	srv := httptest.NewServer(authenticate(guard(http.HandlerFunc(pay))))
	defer srv.Close()

	postAs(srv, "ada", "key-of-the-client", "/payments")
	postAs(srv, "ada", "key-of-the-client", "/payments")
	postAs(srv, "bob", "key-of-the-client", "/payments")              // another scope
	postAs(srv, "ada", "key-of-the-client", "/payments?currency=EUR") // another request
	postAs(srv, "ada", "", "/payments")

	// Output:
	// ada: 201 payment 1, replayed: false
	// ada: 201 payment 1, replayed: true
	// bob: 201 payment 2, replayed: false
	// ada: 422 refused, replayed: false
	// ada: 400 refused, replayed: false
}

// The card is charged, then the mail fails: the answer is an error, and the card must not be charged again.
func ExampleOnce_complete() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()

	charges := 0
	pay := func(w http.ResponseWriter, r *http.Request) {
		charges++
		if err := core.Complete(r.Context()); err != nil {
			fmt.Println("Redis did not confirm it; it is tried again at the end:", err)
		}
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, "charged, but the mail was not sent")
	}
	guard := httplock.Idempotent(locks, httplock.ByContext(userContext{}), core.WithFailurePolicy(core.HoldFailures))
	srv := httptest.NewServer(authenticate(guard(http.HandlerFunc(pay))))
	defer srv.Close()

	postAs(srv, "ada", "key-of-the-client", "/payments")
	postAs(srv, "ada", "key-of-the-client", "/payments")
	fmt.Println("charges:", charges)

	// Output:
	// ada: 500 charged, but the mail was not sent, replayed: false
	// ada: 500 charged, but the mail was not sent, replayed: true
	// charges: 1
}

// The card cannot be looked up: nothing was charged, and the handler says so. Without that word the guard would hold the
// key, because it cannot know whether the money has moved.
func ExampleIdempotent_release() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()

	requests, charges := 0, 0
	pay := func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests == 1 {
			if err := core.Release(r.Context()); err != nil {
				fmt.Println("Redis did not confirm it; it is tried again at the end:", err)
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, "no card yet")
			return
		}
		charges++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "charged")
	}
	guard := httplock.Idempotent(locks, httplock.ByContext(userContext{}), core.WithFailurePolicy(core.HoldFailures))
	srv := httptest.NewServer(authenticate(guard(http.HandlerFunc(pay))))
	defer srv.Close()

	postAs(srv, "ada", "key-of-the-client", "/payments")
	postAs(srv, "ada", "key-of-the-client", "/payments")
	postAs(srv, "ada", "key-of-the-client", "/payments")
	fmt.Println("charges:", charges)

	// Output:
	// ada: 503 no card yet, replayed: false
	// ada: 201 charged, replayed: false
	// ada: 201 charged, replayed: true
	// charges: 1
}
