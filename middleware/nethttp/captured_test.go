package httplock_test

import (
	"cmp"
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"reflect"
	"testing"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit/httpkit"
)

// heldBack is how much of an answer is held back in these tests.
const heldBack = 3000

// captured is what a client sees of an answer.
type captured struct {
	httpkit.Answer
	trailer http.Header
	hints   []http.Header // of status 103
}

func protocols() map[string]func(*httptest.Server) {
	return map[string]func(*httptest.Server){"HTTP/1": func(*httptest.Server) {}, "HTTP/2": httpkit.HTTP2}
}

// outer stands for the middlewares around a guard. Its fields differ from request to request.
func outer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", r.Header.Get("X-Request-Id"))
		w.Header().Set("Access-Control-Allow-Origin", "https://"+r.Header.Get("X-Request-Id"))
		w.Header().Set("Vary", "Origin")
		next.ServeHTTP(w, r)
	})
}

// capturing serves the handler behind a capture, and sends the records.
func capturing(
	t testing.TB, h http.Handler, record bool, edit ...func(*httptest.Server),
) (*httptest.Server, <-chan *httplock.Response) {
	records := make(chan *httplock.Response, 100)
	seen := func(r *httplock.Response) { records <- r }
	return httpkit.Serve(t, outer(httplock.Captured(h, heldBack, record, seen)), edit...), records
}

// fetch makes a request, POST if the method is empty, and leaves out what differs between any two answers. The
// id is the outer middleware's.
func fetch(t testing.TB, srv *httptest.Server, method, id, query string) captured {
	t.Helper()
	var c captured
	method = cmp.Or(method, http.MethodPost)
	trace := &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
		hint := http.Header(maps.Clone(h))
		hint.Del("Date")
		c.hints = append(c.hints, hint)
		return nil
	}}
	ctx := httptrace.WithClientTrace(t.Context(), trace)
	req, err := http.NewRequestWithContext(ctx, method, srv.URL+"/?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Request-Id", id)
	resp, err := srv.Client().Do(req)
	if err != nil {
		c.Err = err
		return c
	}
	defer resp.Body.Close()
	var body []byte
	if resp.StatusCode != http.StatusSwitchingProtocols { // whose body has no end
		body, err = io.ReadAll(resp.Body)
	}
	resp.Header.Del("Date")
	c.Answer = httpkit.Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(body), Err: err}
	c.trailer = resp.Trailer
	return c
}

// same reports differences between two answers. Errors of the connection need not have the same text.
func same(t testing.TB, got, want captured) {
	t.Helper()
	if (got.Err == nil) != (want.Err == nil) {
		t.Fatalf("error %v, want %v", got.Err, want.Err)
	}
	if got.Status != want.Status {
		t.Errorf("status %d, want %d", got.Status, want.Status)
	}
	if !reflect.DeepEqual(got.Header, want.Header) {
		t.Errorf("header\n%v, want\n%v", got.Header, want.Header)
	}
	if got.Body != want.Body {
		t.Errorf("body %.60q (%d bytes), want %.60q (%d)", got.Body, len(got.Body), want.Body, len(want.Body))
	}
	if !reflect.DeepEqual(got.trailer, want.trailer) {
		t.Errorf("trailer %v, want %v", got.trailer, want.trailer)
	}
	if !reflect.DeepEqual(got.hints, want.hints) {
		t.Errorf("hints %v, want %v", got.hints, want.hints)
	}
}

func TestCapturedAnswerIsTheSame(t *testing.T) {
	t.Parallel()
	for _, test := range answers() {
		for proto, edit := range protocols() {
			if proto == "HTTP/2" && test.onlyHTTP1 {
				continue
			}
			t.Run(test.name+", "+proto, func(t *testing.T) {
				t.Parallel()
				plain := httpkit.Serve(t, outer(test.handler), edit)
				held, records := capturing(t, test.handler, true, edit)
				want, got := fetch(t, plain, test.method, "1", ""), fetch(t, held, test.method, "1", "")
				same(t, got, want)
				checkRecord(t, httpkit.Receive(t, records, "the record"), test.record)
			})
		}
	}
}

func checkRecord(t testing.TB, got *httplock.Response, want httplock.Response) {
	t.Helper()
	if want.Header == nil {
		want.Header = http.Header{}
	}
	if got.Status != want.Status || got.Omitted != want.Omitted || string(got.Body) != string(want.Body) ||
		!reflect.DeepEqual(got.Header, want.Header) {
		t.Errorf("record: status %d, header %v, body %.60q (%d bytes), omitted %v;\nwant %d, %v, %.60q (%d), %v",
			got.Status, got.Header, got.Body, len(got.Body), got.Omitted,
			want.Status, want.Header, want.Body, len(want.Body), want.Omitted)
	}
}

// The replay comes over the same way as the first answer, through the same outer middlewares.
func TestReplayIsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	for _, test := range answers() {
		if !httplock.Replayable(&test.record) {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			srv := httpkit.Serve(t, outer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				record := test.record
				httplock.Replay(w, &record)
			})))
			want := captured{Answer: httpkit.Answer{Status: test.record.Status, Body: string(test.record.Body)}}
			want.Header = http.Header{
				"X-Request-Id": {"2"}, "Access-Control-Allow-Origin": {"https://2"}, "Vary": {"Origin"},
				"Idempotency-Replayed": {"true"},
			}
			if test.record.Omitted {
				want.Header.Set("Idempotency-Replay", "omitted")
			}
			maps.Copy(want.Header, test.record.Header)
			want.Header.Set("Cache-Control", "no-store")
			maps.DeleteFunc(want.Header, func(_ string, values []string) bool { return len(values) == 0 })
			got := fetch(t, srv, test.method, "2", "")
			got.Header.Del("Content-Length") // the server's own
			same(t, got, want)
		})
	}
}

// Without recording, the answer is held back all the same.
func TestBodyIsNotRecorded(t *testing.T) {
	t.Parallel()
	for body, omitted := range map[string]bool{"": false, "secret": true} {
		srv, records := capturing(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, body)
		}), false)
		a := fetch(t, srv, http.MethodPost, "1", "")
		a.Want(t, http.StatusCreated)
		if a.Body != body {
			t.Errorf("body %q, want %q", a.Body, body)
		}
		checkRecord(t, httpkit.Receive(t, records, "the record"), httplock.Response{
			Status: http.StatusCreated, Header: http.Header{"Content-Type": {"text/plain"}}, Omitted: omitted,
		})
	}
}

// However little is held back, the type is guessed from what net/http guesses it from.
func TestTypeDoesNotDependOnTheLimit(t *testing.T) {
	t.Parallel()
	records := make(chan *httplock.Response, 1)
	srv := httpkit.Serve(t, httplock.Captured(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, c := range "%PDF-1.4" {
			_, _ = io.WriteString(w, string(c))
		}
	}), 0, true, func(r *httplock.Response) { records <- r }))
	a := fetch(t, srv, http.MethodPost, "1", "")
	a.Want(t, http.StatusOK)
	if got := a.Header.Get("Content-Type"); got != "application/pdf" || a.Body != "%PDF-1.4" {
		t.Errorf("type %q, body %q", got, a.Body)
	}
	checkRecord(t, httpkit.Receive(t, records, "the record"), httplock.Response{
		Status: http.StatusOK, Header: media("application/pdf"), Omitted: true,
	})
}

// Nothing may reach the client before the record is there.
func TestAnswerIsHeldBackUntilTheRecord(t *testing.T) {
	t.Parallel()
	recording, recorded := make(chan struct{}), make(chan struct{})
	srv := httpkit.Serve(t, httplock.Captured(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range heldBack {
			_, _ = io.WriteString(w, "x")
		}
	}), heldBack, true, func(*httplock.Response) {
		close(recording)
		<-recorded
	}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := httpkit.PostAside(ctx, srv, "ada", "7")
	httpkit.Receive(t, recording, "the record")
	select {
	case a := <-got:
		t.Errorf("status %d, error %v before the record was written", a.Status, a.Err)
	default:
	}
	close(recorded)
	a := httpkit.Receive(t, got, "the answer")
	a.Want(t, http.StatusOK)
	if len(a.Body) != heldBack {
		t.Errorf("%d bytes, want %d", len(a.Body), heldBack)
	}
}
