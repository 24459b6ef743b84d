package httpconformance

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var writerTests = tests{
	"Answers":                   testAnswers,
	"AnswerComesAfterTheRecord": testAnswerAfterRecord,
	"StreamIsSentAtOnce":        testStream,
	"Hijack":                    testHijack,
	"EarlyHints":                testEarlyHints,
	"HeadAndGet":                testHead,
	"RecordLimit":               testRecordLimit,
	"ResponseController":        testController,
	"OuterHeader":               testOuterHeader,
}

// testAnswers: the guard changes no answer, and a replay is what the handler answered, however it wrote that.
func testAnswers(t *testing.T, s *suite) {
	for name, write := range map[string]func(w http.ResponseWriter){
		"nothing": func(http.ResponseWriter) {},
		"status":  func(w http.ResponseWriter) { w.WriteHeader(202) },
		"204":     func(w http.ResponseWriter) { w.WriteHeader(204) },
		"copy": func(w http.ResponseWriter) {
			w.WriteHeader(201)
			_, _ = io.Copy(w, strings.NewReader("copied"))
		},
		"read from": func(w http.ResponseWriter) {
			_, _ = io.Copy(w, io.MultiReader(strings.NewReader("two "), strings.NewReader("parts")))
		},
		"string": func(w http.ResponseWriter) { _, _ = io.WriteString(w, "text") },
		"late header": func(w http.ResponseWriter) {
			w.WriteHeader(201)
			w.WriteHeader(500)
			w.Header().Set("X-Late", "set")
		},
		"json": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, `{"id":7}`)
		},
	} {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["X-Many"] = []string{"a", "b"}
			write(w)
		})
		site := s.serve(t, s.Handler(
			Route{Path: "/plain/{id}", Handler: h},
			Route{Path: "/orders/{id}", Handler: h, Guards: []Guard{s.once(t, httplock.WithReplay(),
				core.WithFailurePolicy(core.HoldFailures), httplock.WithCompletion(completed))}},
		))
		r := request{user: "answers-" + name}
		plain := site.do(request{path: "/plain/1"})
		first := site.do(r).fresh(t, plain.status, plain.body)
		second := site.do(r).replayed(t, plain.status, plain.body)
		for _, field := range []string{"Content-Type", "X-Many", "X-Late"} {
			want := fmt.Sprint(plain.header[field])
			if a, b := fmt.Sprint(first.header[field]), fmt.Sprint(second.header[field]); a != want || b != want {
				t.Errorf("%s: %s %s, in the replay %s, without guard %s", name, field, a, b, want)
			}
		}
	}
}

// completed has every answer recorded.
func completed(httplock.Handled) httplock.Disposition { return httplock.Completed }

// testAnswerAfterRecord: a client that has its answer finds the record, however long Redis took for that. The answer is
// large, so that the client has it as soon as it is written.
func testAnswerAfterRecord(t *testing.T, s *suite) {
	relay := s.redis.Relay()
	relay.Delay(testkit.ToServer, 5*time.Millisecond)
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(64<<10))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(make([]byte, 64<<10))
	})
	site := s.mount(t, h, must(t)(s.Idempotent(newLocks(t, relay.Client()), ByUser, unhurried(nil)...)))
	for i := range 20 {
		key := fmt.Sprint("k", i)
		site.do(request{user: "after-record", key: key}).want(t, http.StatusCreated)
		if got := record(t, s.locks, idempotentKey(t, "after-record", key)); got.State != core.StateCompleted {
			t.Fatalf("the record is %q when the client has its answer", got.State)
		}
	}
}

// testStream: events are not held back, and a retry gets all of them, if they are not too many: otherwise it is refused.
func testStream(t *testing.T, s *suite) {
	for name, opts := range map[string][]httplock.Option{
		"replayed": nil, "refused": {core.WithMaxValue(17)},
	} {
		leave := make(chan struct{})
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, "data: 1\n\n")
			w.(http.Flusher).Flush()
			await(t, leave)
			_, _ = io.WriteString(w, "data: 2\n\n")
		})
		site := s.mount(t, h, s.idempotent(t, opts...))
		r := request{user: "stream-" + name, key: "k"}
		resp, err := site.Client().Do(site.request(t.Context(), r))
		if err != nil {
			close(leave)
			t.Fatal(err)
		}
		events := bufio.NewReader(resp.Body)
		if line, err := events.ReadString('\n'); line != "data: 1\n" || err != nil {
			t.Errorf("first event %q, error %v", line, err)
		}
		close(leave)
		rest, err := io.ReadAll(events)
		if string(rest) != "\ndata: 2\n\n" || err != nil {
			t.Errorf("rest %q, error %v", rest, err)
		}
		_ = resp.Body.Close()
		awaitState(t, s.locks, idempotentKey(t, r.user, "k"), core.StateCompleted)
		a := site.do(r)
		switch name {
		case "refused":
			a.refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
		default:
			a.replayed(t, http.StatusAccepted, "data: 1\n\ndata: 2\n\n")
		}
		if got := a.header.Get("Idempotency-Replay"); got != "" {
			t.Errorf("%s: Idempotency-Replay %q", name, got)
		}
	}
}

// testHijack: a connection that was taken over is not replayed, and the handler does not run again.
func testHijack(t *testing.T, s *suite) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if errors.Is(err, http.ErrNotSupported) {
			_, _ = io.WriteString(w, "not supported")
			return
		}
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 202 Accepted\r\nContent-Length: 3\r\nConnection: close\r\n\r\nraw")
		_ = conn.Close()
	})
	r := request{user: "hijack", key: "k"}
	if s.http2 && s.mount(t, h).do(r).err != nil {
		t.Skip("the framework panics without the guard too")
	}
	site := s.mount(t, h, s.idempotent(t))
	if s.http2 {
		site.do(r).fresh(t, http.StatusOK, "not supported")
		site.do(r).replayed(t, http.StatusOK, "not supported")
		return
	}
	site.do(r).fresh(t, http.StatusAccepted, "raw")
	awaitState(t, s.locks, idempotentKey(t, r.user, "k"), core.StateCompleted)
	site.do(r).refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
}

// testEarlyHints: they get to the client if they do without the guard.
func testEarlyHints(t *testing.T, s *suite) {
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "done")
	})
	site := s.serve(t, s.Handler(
		Route{Path: "/plain/{id}", Handler: h},
		Route{Path: "/orders/{id}", Handler: h, Guards: []Guard{s.idempotent(t)}},
	))
	hints := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(int, textproto.MIMEHeader) error { hints++; return nil },
	})
	r := request{user: "hints", key: "k", path: "/plain/1"}
	if a := site.doWithin(ctx, r); a.status != http.StatusCreated {
		t.Skip("the framework takes the hints for the answer without the guard too")
	}
	want := hints
	r.path = "/orders/1"
	site.doWithin(ctx, r).fresh(t, http.StatusCreated, "done")
	if got := hints - want; got != want {
		t.Errorf("%d hints, without guard %d", got, want)
	}
	if a := site.do(r).replayed(t, http.StatusCreated, "done"); a.header.Get("Link") == "" {
		t.Error("the header of the hints, which is the answer's as well, is lost")
	}
}

// testHead: a HEAD request has no body, and its record is not taken for the answer to another method.
func testHead(t *testing.T, s *suite) {
	runs := &counter{}
	site := s.mount(t, runs, s.idempotent(t, httplock.WithMethods(http.MethodHead, http.MethodGet)))
	head := request{method: http.MethodHead, user: "head", key: "k"}
	site.do(head).fresh(t, http.StatusCreated, "")
	a := site.do(head).replayed(t, http.StatusCreated, "")
	if a.header.Get("Idempotency-Replay") != "" {
		t.Error("the answer to HEAD has no body that could be omitted")
	}
	get := head
	get.method = http.MethodGet
	site.do(get).refused(t, http.StatusUnprocessableEntity, httplock.CodeKeyReused)
	get.key = "l"
	site.do(get).fresh(t, http.StatusCreated, "2")
	site.do(get).replayed(t, http.StatusCreated, "2")
}

// testRecordLimit: what was not recorded is never replayed as an empty answer, unless its status is 4xx.
func testRecordLimit(t *testing.T, s *suite) {
	const limit = 2000
	for _, size := range []int{limit - 1, limit, limit + 1, 100 * limit} {
		for _, status := range []int{http.StatusOK, http.StatusUnprocessableEntity} {
			replay := status != http.StatusOK
			body := strings.Repeat("b", size)
			site := s.mount(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/orders/7")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body[:size/2])
				_, _ = io.WriteString(w, body[size/2:])
			}), s.idempotent(t, core.WithMaxValue(limit)))
			r := request{user: fmt.Sprint("limit-", size, replay), key: "k"}
			site.do(r).fresh(t, status, body)
			awaitState(t, s.locks, idempotentKey(t, r.user, "k"), core.StateCompleted)
			a := site.do(r)
			switch {
			case size <= limit:
				a.replayed(t, status, body)
			case replay:
				a.replayed(t, status, "")
			default:
				a.refused(t, http.StatusConflict, httplock.CodeAlreadyCompleted)
			}
			if got := a.header.Get("Idempotency-Replay"); (got == "omitted") != (size > limit && replay) {
				t.Errorf("%d bytes: Idempotency-Replay %q", size, got)
			}
			if got := a.header.Get("Location"); got != "/orders/7" {
				t.Errorf("%d bytes: Location %q", size, got)
			}
		}
	}
}

// testController: what a handler asks of the connection reaches it.
func testController(t *testing.T, s *suite) {
	site := s.mount(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		for name, err := range map[string]error{
			"read deadline": c.SetReadDeadline(time.Now().Add(patience)),
			"deadline":      c.SetWriteDeadline(time.Now().Add(patience)),
			"full duplex":   c.EnableFullDuplex(),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		w.WriteHeader(http.StatusCreated)
	}), s.idempotent(t))
	r := request{user: "controller", key: "k"}
	site.do(r).fresh(t, http.StatusCreated, "")
	site.do(r).replayed(t, http.StatusCreated, "")
}

// testOuterHeader: what middlewares around the guard set belongs to each request, and is there once.
func testOuterHeader(t *testing.T, s *suite) {
	for name, own := range map[string]bool{"outer only": false, "handler too": true} {
		inner := s.Handler(Route{
			Path: "/orders/{id}", Guards: []Guard{s.idempotent(t)},
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Add("Set-Cookie", "session=secret")
				w.Header().Set("X-Order", "7")
				w.Header().Set("Cache-Control", "private")
				if own {
					w.Header().Set("X-Request-Id", "handler")
					w.Header().Set("X-Csrf-Token", "secret")
					w.Header().Set("Access-Control-Allow-Origin", "*")
				}
				_, _ = io.WriteString(w, "done")
			}),
		})
		site := s.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Request-Id", r.Header.Get("X-Request-Id"))
			w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
			w.Header().Add("Set-Cookie", "outer=1")
			inner.ServeHTTP(w, r)
		}))
		r := request{user: "outer-" + name, key: "k", header: http.Header{"X-Request-Id": {"1"}, "Origin": {"https://a"}}}
		first := site.do(r).fresh(t, http.StatusOK, "done")
		if got := len(first.header["Set-Cookie"]); got != 2 {
			t.Errorf("%s: %d cookies in the first answer, want that of the handler too", name, got)
		}
		r.header = http.Header{"X-Request-Id": {"2"}, "Origin": {"https://b"}}
		a := site.do(r).replayed(t, http.StatusOK, "done")
		for field, want := range map[string]string{
			"X-Request-Id": "[2]", "X-Csrf-Token": "[]", "Access-Control-Allow-Origin": "[https://b]", "Set-Cookie": "[outer=1]",
			"X-Order": "[7]", "Cache-Control": "[no-store]",
		} {
			if got := fmt.Sprint(a.header[field]); got != want {
				t.Errorf("%s: %s %s in the replay, want %s", name, field, got, want)
			}
		}
	}
}
