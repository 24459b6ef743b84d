package nethttp_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// echo answers with the body that it has read.
func echo(t *testing.T) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(body)
	})
}

// postBody sends a body of that type, whose length net/http tells the server only if it is known.
func postBody(t *testing.T, srv *httptest.Server, contentType, text string, known bool) httpkit.Answer {
	t.Helper()
	body := io.Reader(strings.NewReader(text))
	if !known {
		body = struct{ io.Reader }{body}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	return httpkit.Send(srv, req)
}

func TestHandlerGetsTheBodyOfTheKey(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	const keyLimit = 64 << 10
	for _, limit := range []int64{0, 10, keyLimit, 3 * keyLimit} {
		guard := httplock.Exclusive(locks.Mutex, httplock.ByJSON("/id"),
			httplock.WithBodyLimit(limit), core.WithWait(httpkit.Patience))
		srv := httpkit.Serve(t, guard(guard(echo(t))))
		for size, status := range map[int]int{100: 200, keyLimit: 200, keyLimit + 1: 400, 2 * keyLimit: 400} {
			for _, known := range []bool{true, false} {
				t.Run(fmt.Sprintf("limit %d, %d bytes, length known %v", limit, size, known), func(t *testing.T) {
					t.Parallel()
					text := `{"x":"` + strings.Repeat("x", size-15) + `","id":7}`
					text = text[:len(text)-1] + strings.Repeat(" ", size-len(text)) + "}"
					a := postBody(t, srv, jsonType, text, known)
					a.Want(t, status)
					if status == http.StatusOK && a.Body != text {
						t.Errorf("%d bytes came back, want %d", len(a.Body), size)
					}
				})
			}
		}
	}
}

// How large the body of a key may be does not depend on what another guard has buffered.
func TestBodyOfTheKeyIsBoundedEverywhere(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	outer := httplock.Exclusive(locks.Mutex, httplock.Constant("all"), httplock.WithBodyLimit(1<<20), patient)
	inner := httplock.Exclusive(locks.Mutex, httplock.ByJSON("/id"), core.WithWait(httpkit.Patience))
	text := `{"id":7}` + strings.Repeat(" ", 64<<10)
	p := postBody(t, httpkit.Serve(t, outer(inner(echo(t)))), jsonType, text, false).Problem(t)
	if p.Code != httplock.CodeKeyInvalid {
		t.Errorf("code %q, want key-invalid", p.Code)
	}
}

// What is known to be too large is refused without an upload.
func TestTooLargeForTheKeyIsNotRead(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	conn := dial(t, httpkit.Serve(t, httplock.Exclusive(locks.Mutex, httplock.ByJSON("/id"), patient)(echo(t))))
	write(t, conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 65537\r\n"+
		"Expect: 100-continue\r\n\r\n")
	if status := readStatus(t, conn); status != http.StatusBadRequest {
		t.Errorf("status %d, want 400 without 100 before it", status)
	}
}

// A key function of the application may look at the beginning of a body of any size.
func TestHandlerGetsAllOfABodyThatWasLookedAt(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	const looked = 100
	key := func(r *http.Request) (httplock.Key, error) {
		begin, err := io.ReadAll(io.LimitReader(r.Body, looked))
		if err != nil {
			return httplock.Key{}, err
		}
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(begin), r.Body), r.Body}
		return httplock.NewKey("begin", string(begin))
	}
	for _, limit := range []int64{0, looked / 2, looked, 3 * looked} {
		guard := httplock.Exclusive(locks.Mutex, key, httplock.WithBodyLimit(limit), core.WithWait(httpkit.Patience))
		srv := httpkit.Serve(t, guard(guard(echo(t))))
		for _, size := range []int{1, looked, looked + 1, 3 * looked, 3*looked + 1, 1000 * looked} {
			for _, known := range []bool{true, false} {
				t.Run(fmt.Sprintf("limit %d, %d bytes, length known %v", limit, size, known), func(t *testing.T) {
					t.Parallel()
					text := strings.Repeat("0123456", size/7+1)[:size]
					a := postBody(t, srv, "text/plain", text, known)
					a.Want(t, http.StatusOK)
					if a.Body != text {
						t.Errorf("%d bytes came back, want %d", len(a.Body), size)
					}
				})
			}
		}
	}
}

// The request belongs to whoever has called the guard.
func TestRequestOfTheCallerStays(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	guarded := httplock.Exclusive(locks.Mutex, httplock.ByJSON("/id"), core.WithWait(httpkit.Patience))(echo(t))
	r := request(typed(jsonType, `{"id":7}`))
	before := *r
	rec := httptest.NewRecorder()
	guarded.ServeHTTP(rec, r)
	if rec.Code != http.StatusOK || rec.Body.String() != `{"id":7}` {
		t.Errorf("status %d: %s", rec.Code, rec.Body)
	}
	if r.Body != before.Body || r.Context() != before.Context() {
		t.Error("the body or the context was replaced")
	}
}

// A form that was parsed for the key, or before the guard, is the handler's.
func TestParsedFormReachesTheHandler(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.PostFormValue("id")+r.PostFormValue("a"))
	})
	parses := func(r *http.Request) (httplock.Key, error) { return httplock.NewKey("id", r.FormValue("id")) }
	parsed := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := r.ParseForm(); err != nil {
				t.Error(err)
			}
			h.ServeHTTP(w, r)
		})
	}
	byForm := httplock.Exclusive(locks.Mutex, httplock.ByForm("id"), core.WithWait(httpkit.Patience))
	for name, h := range map[string]http.Handler{
		"in the handler":           byForm(handler),
		"before the guard":         parsed(byForm(handler)),
		"between guards":           byForm(parsed(byForm(handler))),
		"by the key function":      httplock.Exclusive(locks.Mutex, parses, core.WithWait(httpkit.Patience))(handler),
		"by the one, then by ours": httplock.Exclusive(locks.Mutex, httplock.Keys(parses, httplock.ByForm("id")), patient)(handler),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := postBody(t, httpkit.Serve(t, h), form, "id=7&a=b", true)
			a.Want(t, http.StatusOK)
			if a.Body != "7b" {
				t.Errorf("the handler saw %q", a.Body)
			}
		})
	}
}

// The server removes the files of a form also if it was parsed for the key of a request that was refused.
func TestFilesOfRefusedFormAreRemoved(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	files := make(chan string, 1)
	key := func(r *http.Request) (httplock.Key, error) {
		if err := r.ParseMultipartForm(1); err != nil {
			return httplock.Key{}, err
		}
		file, err := r.MultipartForm.File["f"][0].Open()
		if err != nil {
			return httplock.Key{}, err
		}
		defer file.Close()
		files <- file.(*os.File).Name()
		return httplock.Key{}, httplock.ErrKeyInvalid
	}
	srv := httpkit.Serve(t, httplock.Exclusive(locks.Mutex, key, core.WithWait(httpkit.Patience))(echo(t)))
	text := "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n" +
		strings.Repeat("f", 1000) + "\r\n--b--\r\n"
	postBody(t, srv, multiForm, text, true).Want(t, http.StatusBadRequest)
	name := httpkit.Receive(t, files, "the file")
	testkit.Eventually(t, httpkit.Patience, "the file to be removed", func() bool {
		_, err := os.Stat(name)
		return os.IsNotExist(err)
	})
}

// net/http puts trailers that were not announced into its own request, not into the copies of guards.
func TestTrailersReachTheHandler(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for name, key := range map[string]httplock.KeyFunc{
		"read by the guard":  httplock.Constant("all"),
		"read for the key":   httplock.ByJSON("/id"),
		"read for the key 2": httplock.Keys(httplock.ByJSON("/id"), httplock.Constant("all")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trailers := make(chan string, 1)
			guard := httplock.Exclusive(locks.Mutex, key, core.WithWait(httpkit.Patience))
			srv := httpkit.Serve(t, guard(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				trailers <- r.Trailer.Get("X-Sum")
			})))
			conn := dial(t, srv)
			write(t, conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+
				"Transfer-Encoding: chunked\r\n\r\n8\r\n{\"id\":7}\r\n0\r\nX-Sum: 15\r\n\r\n")
			if status := readStatus(t, conn); status != http.StatusOK {
				t.Fatalf("status %d", status)
			}
			if got := httpkit.Receive(t, trailers, "the trailer"); got != "15" {
				t.Errorf("trailer %q, want 15", got)
			}
		})
	}
}

// Requests with one value in their bodies exclude each other, whatever else is in them.
func TestExclusiveByBody(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	stage := httpkit.NewStage(t)
	guard := httplock.Exclusive(locks.Mutex, httplock.ByJSON("/cart/id"), core.WithWait(0), unhurried)
	srv := httpkit.Serve(t, guard(stage))
	first := make(chan httpkit.Answer, 2)
	go func() { first <- postBody(t, srv, jsonType, `{"cart":{"id":"7"}}`, true) }()
	httpkit.Receive(t, stage.Entered, "the first run")
	p := postBody(t, srv, jsonType, `{"x":1,"cart":{"id":"7"}}`, true).Problem(t)
	if p.Code != httplock.CodeLockConflict {
		t.Errorf("code %q, want lock-conflict", p.Code)
	}
	go func() { first <- postBody(t, srv, jsonType, `{"cart":{"id":"8"}}`, true) }()
	other := httpkit.Receive(t, stage.Entered, "the run of the other cart")
	if _, locked := core.TokenFrom(other.Context()); !locked {
		t.Error("the other cart runs without lock")
	}
	close(stage.Leave)
	for range 2 {
		httpkit.Receive(t, first, "an answer").Want(t, http.StatusOK)
	}
}

// TestRouteOfAMuxInside: a middleware around the guard sees the route that the mux behind the guard has found, as without
// the guard.
func TestRouteOfAMuxInside(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	user := httplock.ByHeader("X-User")
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{id}/{rest...}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	for name, guard := range map[string]func(http.Handler) http.Handler{
		"none":       func(h http.Handler) http.Handler { return h },
		"Exclusive":  httplock.Exclusive(locks.Mutex, user, patient),
		"Once":       httplock.Once(locks, httplock.Keys(user, httplock.Constant("once")), unhurried),
		"Idempotent": httplock.Idempotent(locks, user, unhurried),
		"no key":     httplock.Once(locks, httplock.ByHeader("X-Missing"), httplock.OptionalKey()),
		"nested": func(h http.Handler) http.Handler {
			return httplock.Exclusive(locks.Mutex, user, patient)(httplock.Once(locks, httplock.Keys(user, httplock.Constant("nested")))(h))
		},
	} {
		inner := guard(mux)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders/7/a/b", nil)
		r.Header.Set("X-User", name)
		r.Header.Set("Idempotency-Key", "k")
		w := httptest.NewRecorder()
		inner.ServeHTTP(w, r)
		if w.Code != http.StatusCreated || r.Pattern != "POST /orders/{id}/{rest...}" || r.PathValue("id") != "7" || r.PathValue("rest") != "a/b" {
			t.Errorf("%s: status %d, pattern %q, values %q and %q", name, w.Code, r.Pattern, r.PathValue("id"), r.PathValue("rest"))
		}
	}
}

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
			if p := a.Problem(t); p.Code != httplock.CodeTooManyBodies {
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

// TestBodyReadBetweenGuards: the outer guard has buffered the beginning of a body, of which a middleware has read more. The
// inner guard does not compare the beginning alone.
func TestBodyReadBetweenGuards(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	for name, test := range map[string]struct {
		read          func(*http.Request)
		status, other int
	}{
		"parsed": {func(r *http.Request) { _ = r.ParseForm() }, http.StatusOK, http.StatusUnprocessableEntity},
		"read": {
			func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
			http.StatusInternalServerError, http.StatusInternalServerError,
		},
	} {
		outer := httplock.Exclusive(locks.Mutex, httplock.Constant(name), patient)
		inner := httplock.Idempotent(locks, httplock.Constant(name), patient)
		handler := inner(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		srv := httpkit.Serve(t, outer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			test.read(r)
			handler.ServeHTTP(w, r)
		})))
		long := "note=" + strings.Repeat("x", 100<<10) + "&amount="
		for _, known := range []bool{true, false} {
			postForm(t, srv, long+"5", known).Want(t, test.status)
			postForm(t, srv, long+"900", known).Want(t, test.other)
		}
	}
}

// TestKeyFunctionParsesTheForm: a key function of the application may use up the body like a program in front.
func TestKeyFunctionParsesTheForm(t *testing.T) {
	t.Parallel()
	locks := newLocks(t, testkit.Start(t).Client())
	user := func(r *http.Request) (httplock.Key, error) { return httplock.NewKey("user", r.PostFormValue("user")) }
	srv := httpkit.Serve(t, httplock.Idempotent(locks, user, patient)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	for _, known := range []bool{true, false} {
		postForm(t, srv, "user=ada&amount=5", known).Want(t, http.StatusOK)
		p := postForm(t, srv, "user=ada&amount=900", known).Problem(t)
		if p.Code != httplock.CodeKeyReused {
			t.Errorf("code %q, want key-reused", p.Code)
		}
	}
}

// postForm sends a form with the Idempotency-Key "k". The server learns its length if it is known.
func postForm(t *testing.T, srv *httptest.Server, text string, known bool) httpkit.Answer {
	t.Helper()
	body := io.Reader(strings.NewReader(text))
	if !known {
		body = io.MultiReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Idempotency-Key", "k")
	return httpkit.Send(srv, req)
}
