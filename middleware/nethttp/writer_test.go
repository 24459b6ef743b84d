package httplock_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// An event arrives while the handler still runs.
func TestEventsAreStreamed(t *testing.T) {
	t.Parallel()
	for name, edit := range protocols() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stage := httpkit.NewStage(t)
			srv, records := capturing(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "data: 1\n")
				w.(http.Flusher).Flush()
				stage.ServeHTTP(w, r)
			}), true, edit)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := srv.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			events := bufio.NewReader(resp.Body)
			if line, err := events.ReadString('\n'); line != "data: 1\n" || err != nil {
				t.Fatalf("%q, error %v", line, err)
			}
			close(stage.Leave)
			if rest, err := io.ReadAll(events); string(rest) != "done" || err != nil {
				t.Errorf("%q, error %v", rest, err)
			}
			checkRecord(t, httpkit.Receive(t, records, "the record"), httplock.Response{
				Status: 200, Header: media("text/event-stream"), Body: []byte("data: 1\ndone"),
			})
		})
	}
}

// The answer of a recovery has nothing of what the handler was about to answer.
func TestPanicLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	recovering := func(next http.Handler) http.Handler {
		return outer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if recover() != nil {
					http.Error(w, "failed", http.StatusInternalServerError)
				}
			}()
			next.ServeHTTP(w, r)
		}))
	}
	for name, handler := range map[string]http.HandlerFunc{
		"before": func(http.ResponseWriter, *http.Request) { panic("failed") },
		"header": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/orders/7")
			w.Header().Set("X-Request-Id", "changed")
			w.Header().Del("Vary")
			panic("failed")
		},
		"after": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/orders/7")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "created")
			panic("failed")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := func(*httplock.Response) { t.Error("a record was made") }
			srv := httpkit.Serve(t, recovering(httplock.Captured(handler, heldBack, true, seen)))
			want := httpkit.Serve(t, recovering(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("failed") })))
			same(t, fetch(t, srv, http.MethodPost, "1", ""), fetch(t, want, http.MethodPost, "1", ""))
		})
	}
}

func TestPanicAfterFlushCutsTheAnswer(t *testing.T) {
	t.Parallel()
	srv, _ := capturing(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}), true)
	if a := fetch(t, srv, http.MethodPost, "1", ""); a.Status != http.StatusCreated || a.Err == nil {
		t.Errorf("status %d, error %v, want 201 and a cut", a.Status, a.Err)
	}
}

func TestInvalidStatusPanicsAtOnce(t *testing.T) {
	t.Parallel()
	for _, status := range []int{-1, 0, 99, 1000} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, fmt.Sprint(status)) {
					t.Errorf("status %d: panic %q", status, text)
				}
			}()
			w := httptest.NewRecorder()
			httplock.Exposed(w, httptest.NewRequest(http.MethodPost, "/", nil)).WriteHeader(status)
		}()
	}
}

// bare has no more than it must.
type bare struct{ http.ResponseWriter }

type flushing struct {
	bare
	err error
}

func (f flushing) FlushError() error { return f.err }

type hijacking struct {
	bare
	err error
}

func (h hijacking) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, h.err }

type wrapping struct {
	bare
	inner http.ResponseWriter
}

func (w wrapping) Unwrap() http.ResponseWriter { return w.inner }

func TestFlushAndHijackThroughTheController(t *testing.T) {
	t.Parallel()
	failure := errors.New("failure of the real writer")
	for name, test := range map[string]struct {
		w              http.ResponseWriter
		flush, hijack  error
		wrote, hijacks bool // by a Flush and a Hijack
	}{
		"bare":              {least(), http.ErrNotSupported, http.ErrNotSupported, false, false},
		"flushing":          {flushing{least(), failure}, failure, http.ErrNotSupported, true, false},
		"hijacking":         {hijacking{least(), nil}, http.ErrNotSupported, nil, true, true},
		"failing to hijack": {hijacking{least(), failure}, http.ErrNotSupported, failure, false, false},
		"wrapped": {
			wrapping{least(), wrapping{least(), flushing{least(), nil}}}, nil, http.ErrNotSupported, true, false,
		},
		"wrapping nothing": {wrapping{least(), nil}, http.ErrNotSupported, http.ErrNotSupported, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			wrote, hijacked := httplock.Told(test.w, r, func(w http.ResponseWriter, _ *http.Request) {
				rc := http.NewResponseController(w)
				if err := rc.Flush(); !errors.Is(err, test.flush) {
					t.Errorf("Flush: %v, want %v", err, test.flush)
				}
				if _, _, err := rc.Hijack(); !errors.Is(err, test.hijack) {
					t.Errorf("Hijack: %v, want %v", err, test.hijack)
				}
			})
			if wrote != test.wrote || hijacked != test.hijacks {
				t.Errorf("wrote %v, hijacked %v, want %v, %v", wrote, hijacked, test.wrote, test.hijacks)
			}
		})
	}
}

// failed is a connection that is gone.
type failed struct {
	bare
	err error
}

func (f failed) Write([]byte) (int, error) { return 0, f.err }

func TestErrorsOfTheConnectionAreReturned(t *testing.T) {
	t.Parallel()
	gone := errors.New("connection reset")
	w := httplock.Exposed(failed{least(), gone}, httptest.NewRequest(http.MethodPost, "/", nil))
	if _, err := w.Write(letters(1000)); err != nil {
		t.Errorf("while the answer is held back: %v", err)
	}
	for range 2 { // what goes over the limit, and what comes after
		if n, err := w.Write(letters(1)); n != 0 || !errors.Is(err, gone) {
			t.Errorf("Write: %d, %v, want %v", n, err, gone)
		}
		if _, err := io.WriteString(w, "x"); !errors.Is(err, gone) {
			t.Errorf("WriteString: %v, want %v", err, gone)
		}
		if _, err := io.Copy(w, strings.NewReader("x")); !errors.Is(err, gone) {
			t.Errorf("Copy: %v, want %v", err, gone)
		}
	}
}

func least() bare { return bare{httptest.NewRecorder()} }

// play is a handler that does what the letters of the query say.
func play(w http.ResponseWriter, r *http.Request) {
	for i, move := range r.URL.RawQuery {
		switch move {
		case 's':
			w.WriteHeader(http.StatusCreated)
		case 'n':
			w.WriteHeader(http.StatusNoContent)
		case 'h':
			w.Header().Set("X-Move", fmt.Sprint(i))
		case 'd':
			w.Header().Del("Vary")
		case 't':
			w.Header().Set("Trailer", "X-Move")
		case 'c':
			w.Header().Set("Content-Type", "application/json")
		case 'e':
			_, _ = w.Write(nil)
		case 'w':
			_, _ = io.WriteString(w, "<html>")
		case 'W':
			_, _ = w.Write(letters(heldBack / 2))
		case 'f':
			w.(http.Flusher).Flush()
		}
	}
}

// Whatever a handler does, in whatever order, the client sees the same.
func TestAnyHandlerAnswersTheSame(t *testing.T) {
	t.Parallel()
	for name, edit := range protocols() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain := httpkit.Serve(t, outer(http.HandlerFunc(play)), edit)
			held, records := capturing(t, http.HandlerFunc(play), true, edit)
			for range 300 {
				moves := make([]byte, rand.IntN(8))
				for i := range moves {
					const all = "snhdtcewwWf"
					moves[i] = all[rand.IntN(len(all))]
				}
				for _, method := range []string{http.MethodPost, http.MethodHead} {
					want := fetch(t, plain, method, "1", string(moves))
					got := fetch(t, held, method, "1", string(moves))
					same(t, got, want)
					record := httpkit.Receive(t, records, "the record")
					if record.Status != want.Status || !record.Omitted && string(record.Body) != want.Body {
						t.Errorf("record %d, %.60q, want %d, %.60q", record.Status, record.Body, want.Status, want.Body)
					}
					if has, wants := record.Header.Get("Content-Type"), want.Header.Get("Content-Type"); has != wants &&
						record.Status != http.StatusNoContent {
						t.Errorf("record has type %q, want %q", has, wants)
					}
					if t.Failed() {
						t.Fatalf("%s of %q", method, moves)
					}
				}
			}
		})
	}
}
