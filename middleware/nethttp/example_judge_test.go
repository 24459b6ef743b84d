package httplock_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast-go/holdfast/locktest"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// GraphQL tells of failures by the member "errors" of an answer with status 200. Without data nothing has happened, so the
// next request may run; with some data, part of it may have, and somebody has to find out.
func ExampleWithCompletion() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()

	judge := func(o httplock.Handled) httplock.Disposition {
		var answer struct {
			Data   map[string]any    `json:"data"`
			Errors []json.RawMessage `json:"errors"`
		}
		switch {
		case o.Response.Status != http.StatusOK:
			return httplock.Auto
		case o.Response.Omitted || json.Unmarshal(o.Response.Body, &answer) != nil:
			return httplock.Held // too large to be judged, or no GraphQL
		case len(answer.Errors) == 0:
			return httplock.Auto
		case len(answer.Data) == 0:
			return httplock.Released
		}
		return httplock.Held
	}
	answers := []string{`{"errors":[{"message":"card refused"}]}`, `{"data":{"pay":{"id":7}}}`}
	runs := 0
	graphql := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answers[runs])
		runs++
	}
	guard := httplock.Idempotent(locks, httplock.ByContext(userContext{}), httplock.WithCompletion(judge))
	srv := httptest.NewServer(authenticate(guard(http.HandlerFunc(graphql))))
	defer srv.Close()

	for range 3 {
		postAs(srv, "ada", "key-of-the-client", "/graphql")
	}

	// Output:
	// ada: 200 {"errors":[{"message":"card refused"}]}, replayed: false
	// ada: 200 {"data":{"pay":{"id":7}}}, replayed: false
	// ada: 200 {"data":{"pay":{"id":7}}}, replayed: true
}
