package lockdebug_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lockdebug"
	"github.com/holdfast-go/holdfast/locktest"
)

// A server for operators shows which locks this process has.
func Example() {
	server := locktest.NewServer()
	defer server.Close()
	locks, err := core.New(server.Redis())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	mux := http.NewServeMux() // where net/http/pprof is mounted
	mux.Handle("GET /debug/locks", lockdebug.Handler(locks))

	_ = locks.Mutex("order:42").Do(context.Background(), func(context.Context) error {
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest("GET", "/debug/locks", nil))
		summary, _, _ := strings.Cut(answer.Body.String(), ", at ")
		fmt.Println(summary)
		return nil
	})
	// Output: 1 held, 0 waiting
}
