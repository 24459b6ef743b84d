package nethttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/middleware"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// TestBodiesOfTheKeyAreShared: a body from which the key is made counts for the user in the key, once that is known. A user whose
// requests run with as many bodies as the guard takes leaves room for others.
func TestBodiesOfTheKeyAreShared(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	user := httplock.ByPrincipal(func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil })
	stage := httpkit.NewStage(t)
	guard := httplock.Exclusive(locks.Mutex, httplock.Keys(user, httplock.ByJSON("/id")), unhurried,
		httplock.WithBodyMemory(8000), httplock.WithBodyLimit(1000))
	srv := httpkit.Serve(t, guard(stage))
	var answers []<-chan httpkit.Answer
	for i := range 20 {
		done := make(chan httpkit.Answer, 1)
		go func() {
			done <- postJSON(t, srv, "greedy", fmt.Sprintf(`{"id":"%d","x":"%s"}`, i, strings.Repeat("x", 800)))
		}()
		select {
		case <-stage.Entered:
			answers = append(answers, done)
			continue
		case a := <-done:
			if p := a.Problem(t); p.Code != middleware.CodeTooManyBodies {
				t.Errorf("code %q, want too-many-bodies", p.Code)
			}
		}
		break
	}
	if len(answers) == 0 || len(answers) > 5 {
		t.Errorf("%d bodies of one user take memory at a time, want half of all", len(answers))
	}
	for _, other := range []string{"modest", "third"} {
		done := make(chan httpkit.Answer, 1)
		go func() {
			done <- postJSON(t, srv, other, fmt.Sprintf(`{"id":"%d","x":"%s"}`, 1, strings.Repeat("x", 800)))
		}()
		select {
		case <-stage.Entered:
			answers = append(answers, done)
		case a := <-done:
			t.Errorf("%s: status %d: %s", other, a.Status, a.Body)
		}
	}
	close(stage.Leave)
	for _, a := range answers {
		httpkit.Receive(t, a, "an answer").Want(t, http.StatusOK)
	}
}

// postJSON sends a document of a user.
func postJSON(t *testing.T, srv *httptest.Server, user, document string) httpkit.Answer {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, strings.NewReader(document))
	if err != nil {
		return httpkit.Answer{Err: err}
	}
	req.Header.Set("X-User", user)
	req.Header.Set("Content-Type", jsonType)
	return httpkit.Send(srv, req)
}
