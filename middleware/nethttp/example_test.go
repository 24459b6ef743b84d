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

// userContext is where the authentication of this example leaves the user.
type userContext struct{}

// authenticate stands for real authentication, which belongs around the guard.
func authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userContext{}, user)))
	})
}

// One checkout of a cart at a time.
func ExampleExclusive() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()

	entered, leave := make(chan struct{}), make(chan struct{})
	checkout := func(w http.ResponseWriter, r *http.Request) {
		token, _ := core.TokenFrom(r.Context()) // for the database: it refuses a smaller one than it has seen
		entered <- struct{}{}
		<-leave
		fmt.Fprintln(w, "paid under token", token)
	}
	user := httplock.ByContext(userContext{})
	guard := httplock.Exclusive(locks.Mutex, httplock.Keys(user, httplock.ByPathValue("id")))
	mux := http.NewServeMux()
	mux.Handle("POST /cart/{id}/checkout", authenticate(guard(http.HandlerFunc(checkout))))
	srv := httptest.NewServer(mux)
	defer srv.Close()

	post := func() string {
		req, err := http.NewRequest(http.MethodPost, srv.URL+"/cart/7/checkout", nil)
		if err != nil {
			panic(err)
		}
		req.SetBasicAuth("ada", "secret")
		resp, err := srv.Client().Do(req)
		if err != nil {
			panic(err)
		}
		defer resp.Body.Close()
		return resp.Status
	}
	first := make(chan string)
	go func() { first <- post() }()
	<-entered
	fmt.Println("second, while the first runs:", post())
	close(leave)
	fmt.Println("first:", <-first)

	// Output:
	// second, while the first runs: 409 Conflict
	// first: 200 OK
}
