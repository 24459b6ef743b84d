package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// post orders at a replica and returns the status and the code.
func post(t *testing.T, r *replica, user string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/orders", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-User", user)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body struct{ Error string }
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body.Error
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	cfg := small
	cfg.stock, cfg.patience = 1, 2*time.Second
	s := open(t, cfg)
	one, two := s.replicas[0], s.replicas[1]
	expect := func(r *replica, user string, status int, code string) {
		t.Helper()
		if gotStatus, gotCode := post(t, r, user); gotStatus != status || gotCode != code {
			t.Errorf("order of %.20q: %d %q, want %d %q", user, gotStatus, gotCode, status, code)
		}
	}
	expect(one, "", http.StatusUnauthorized, "no-user")
	expect(one, strings.Repeat("x", 600), http.StatusBadRequest, "bad-user")

	alice, err := httplock.NewKey("user", "alice")
	if err != nil {
		t.Fatal(err)
	}
	release := take(t, s, "http:"+alice.Hash())
	expect(one, "alice", http.StatusConflict, codeInProgress)
	release()
	release = take(t, s, "stock:"+item)
	expect(one, "alice", http.StatusServiceUnavailable, codeBusy)
	release()

	expect(one, "alice", http.StatusCreated, "")
	expect(two, "alice", http.StatusConflict, codeAlreadyOrdered)
	expect(two, "bob", http.StatusGone, codeSoldOut)
	expect(two, "carol", http.StatusGone, codeSoldOut) // this time without the stock's lock
}

// take holds a lock as if another replica did.
func take(t *testing.T, s *site, name string) (release func()) {
	t.Helper()
	lease, err := s.replicas[2].locks.Mutex(name).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := lease.Unlock(context.Background()); err != nil {
			t.Error(err)
		}
	}
}
