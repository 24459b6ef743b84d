package httplock_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

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
		core.WithFailurePolicy(core.HoldFailures))
	if err != nil {
		panic(err)
	}
	srv := httptest.NewServer(authenticate(payments.Wrap(http.HandlerFunc(pay))))
	defer srv.Close()
	postAs(srv, "ada", "1", "/payments")
	postAs(srv, "ada", "1", "/payments")

	ctx := context.Background()
	records, err := payments.Records(ctx, "ada")
	if err != nil {
		panic(err)
	}
	for _, r := range records {
		fmt.Printf("%s after attempt %d: %s\n", r.State, r.Attempt, r.Reason)
	}
	// The bank has charged. From now on ada's client gets its receipt. If it had not: payments.Forget(ctx, records[0]).
	err = payments.Resolve(ctx, records[0], []byte("HTTP/1.1 201 Created\nContent-Type: text/plain\n\nreceipt 7"))
	fmt.Println("resolved:", err)
	other, err := payments.Peek(ctx, "ada", "2")
	fmt.Println("nothing known of another:", other.State == core.StateNone, err)
	postAs(srv, "ada", "1", "/payments")

	// Output:
	// ada: 504 no answer from the bank, replayed: false
	// ada: 409 refused, replayed: false
	// unknown after attempt 1: the handler answered with a failure
	// resolved: <nil>
	// nothing known of another: true <nil>
	// ada: 201 receipt 7, replayed: true
}
