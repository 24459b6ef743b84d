package worker

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// site is an HTTP server in the process, whose handlers run behind guards, and a client that sends requests to it.
type site struct {
	w        *worker
	mux      *http.ServeMux
	server   *http.Server
	client   *http.Client
	url      string
	requests sync.Map // of *request, by the number of the call
}

// open serves the guards that the client of the process can have: of a Redlock only Exclusive.
func (s *site) open() error {
	s.mux = http.NewServeMux()
	if s.w.redlock != nil {
		s.exclusive(s.w.redlock.Mutex)
	} else {
		s.exclusive(s.w.locks.Mutex)
		s.idempotent(s.w.locks)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.url = "http://" + listener.Addr().String()
	s.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	s.server = &http.Server{Handler: s, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	go func() { _ = s.server.Serve(listener) }()
	return nil
}

func (s *site) exclusive(strategy core.Strategy) {
	handler, all := http.HandlerFunc(runExclusive), httplock.Constant("all")
	s.mux.Handle("POST "+pathExclusive, httplock.Exclusive(strategy, all)(handler))
	s.mux.Handle("POST "+pathPatient, httplock.Exclusive(strategy, all, core.WithWait(3*s.w.order.TTL))(handler))
}

func (s *site) idempotent(locks *core.Client) {
	handler := http.HandlerFunc(runIdempotent)
	s.mux.Handle("POST "+pathIdempotent, httplock.Idempotent(locks, httplock.Unscoped())(handler))
	s.mux.Handle("POST "+pathHeld, httplock.Idempotent(locks, httplock.Unscoped(),
		core.WithFailurePolicy(core.HoldFailures))(handler))
}

// close waits for the handlers.
func (s *site) close() error {
	s.client.CloseIdleConnections()
	return s.server.Shutdown(context.Background())
}

// callHeader has the number of the call that a request is.
const callHeader = "Call"

// ServeHTTP hands a request to its guard, unless its client has given up before it came.
func (s *site) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	found, _ := s.requests.Load(r.Header.Get(callHeader))
	q, ok := found.(*request)
	if !ok || !q.arrive() {
		rw.WriteHeader(http.StatusGone)
		return
	}
	defer close(q.served)
	defer q.released()
	s.mux.ServeHTTP(rw, r.WithContext(context.WithValue(r.Context(), requestKey{}, q)))
}

// answer is what a client gets.
type answer struct {
	status int
	body   string
	err    error
}

// post sends a request, and returns when its handler and its guard are done with it too.
func (s *site) post(ctx context.Context, q *request, path, key string) (a answer) {
	number := strconv.FormatInt(q.event.Call, 10)
	s.requests.Store(number, q)
	defer s.requests.Delete(number)
	defer func() {
		if q.withdraw() {
			return
		}
		<-q.served
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, strings.NewReader("body"))
	if err != nil {
		return answer{err: err}
	}
	r.Header.Set(callHeader, number)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	response, err := s.client.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, string(body), err}
}
