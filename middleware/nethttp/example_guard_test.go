package httplock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-go/holdfast/locktest"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// paymentOf returns the key that the guard of payments makes of a request: the user, then the Idempotency-Key.
func paymentOf(user, idempotencyKey string) httplock.Key {
	principal, err := httplock.PrincipalKey(user)
	if err != nil {
		panic(err)
	}
	chosen, err := httplock.IdempotencyKey(idempotencyKey)
	if err != nil {
		panic(err)
	}
	key, err := httplock.Join(principal, chosen)
	if err != nil {
		panic(err)
	}
	return key
}

// An operator's hour: the bank did not answer, so nobody knows whether it has charged.
func ExampleGuard() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()

	pay := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGatewayTimeout)
		fmt.Fprint(w, "no answer from the bank")
	}
	payments, err := httplock.NewIdempotent(locks, httplock.ByContext(userContext{}),
		httplock.WithFailurePolicy(httplock.HoldFailures))
	if err != nil {
		panic(err)
	}
	srv := httptest.NewServer(authenticate(payments.Wrap(http.HandlerFunc(pay))))
	defer srv.Close()
	postAs(srv, "ada", "1", "/payments")
	postAs(srv, "ada", "1", "/payments")

	ctx := context.Background()
	user, err := httplock.PrincipalKey("ada")
	if err != nil {
		panic(err)
	}
	records, err := payments.Records(ctx, user)
	if err != nil {
		panic(err)
	}
	for _, r := range records {
		fmt.Printf("%s after attempt %d: %s\n", r.State, r.Attempt, r.Reason)
	}
	// The bank has charged. From now on ada's client gets its receipt. If it had not: payments.Forget(ctx, key).
	err = payments.Resolve(ctx, paymentOf("ada", "1"), &httplock.Response{
		Status: http.StatusCreated, Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte("receipt 7"),
	})
	fmt.Println("resolved:", err)
	err = payments.Forget(ctx, paymentOf("bob", "1"))
	fmt.Println("nothing known of bob's:", errors.Is(err, httplock.ErrNoRecord))
	postAs(srv, "ada", "1", "/payments")

	// Output:
	// ada: 504 no answer from the bank, replayed: false
	// ada: 409 refused, replayed: false
	// unknown after attempt 1: the handler answered with a failure
	// resolved: <nil>
	// nothing known of bob's: true
	// ada: 201 receipt 7, replayed: true
}
