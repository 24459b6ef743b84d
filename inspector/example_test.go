package inspector_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/locktest"
)

// operator stands for the login of your service: it returns who has sent a request.
func operator(r *http.Request) (string, error) {
	if name, password, ok := r.BasicAuth(); ok && password == "secret" {
		return name, nil
	}
	return "", errors.New("not logged in")
}

// operatorsOnly stands for a login in front of the page.
func operatorsOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := operator(r); err != nil {
			http.Error(w, "not logged in", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// The page is mounted behind the login of the service, and its operators may act.
func Example() {
	redis := locktest.NewServer() // in your service: your own Redis
	defer redis.Close()
	locks, err := core.New(redis.Redis())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	page, err := inspector.New(locks, inspector.WithActions(operator))
	if err != nil {
		log.Fatal(err)
	}
	defer page.Close() // and server.RegisterOnShutdown(func() { page.Close() })
	mux := http.NewServeMux()
	mux.Handle("/debug/holdfast/", operatorsOnly(page))
	server := httptest.NewServer(mux)
	defer server.Close()

	if _, err := locks.Mutex("order:42").Lock(context.Background()); err != nil {
		log.Fatal(err)
	}
	for _, user := range []string{"", "ada"} {
		status, body := get(server.URL+"/debug/holdfast/lock?name=order:42", user)
		fmt.Println(status, "offers to force the lock:", strings.Contains(body, "Force unlock"))
	}
	// Output:
	// 401 Unauthorized offers to force the lock: false
	// 200 OK offers to force the lock: true
}

// get loads a page as a user who is logged in.
func get(address, user string) (status, body string) {
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		log.Fatal(err)
	}
	if user != "" {
		req.SetBasicAuth(user, "secret")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	return resp.Status, string(text)
}
