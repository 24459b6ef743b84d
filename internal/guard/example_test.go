package guard_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/locktest"
)

// This is a whole place: a server of a line protocol over TCP. A client sends "KEY payload", and gets the answer of the
// server's function. With the same key again it gets the same answer, and the function does not run.

// A lineServer answers one line per connection.
type lineServer struct {
	lineConfig
	answer func(ctx context.Context, payload string) (string, error)
	config guard.Config
	do     func(context.Context, guard.Ask, guard.Run) (*guard.Outcome, error)
}

// lineConfig is what the options of this place amount to.
type lineConfig struct{ longest int }

// withLongestLine refuses lines of more bytes. Defaults to no limit.
func withLongestLine(bytes int) guard.Option {
	return guard.Own("line.WithLongestLine", func(c *lineConfig) error {
		if c.longest = bytes; bytes < 1 {
			return fmt.Errorf("%w: line.WithLongestLine(%d)", core.ErrInvalidOption, bytes)
		}
		return nil
	})
}

// lineOptions are the options that both constructors take, beside those that all guards of their kind take.
var lineOptions = []string{"WithAskTimeout", "WithZombieGrace", "line.WithLongestLine"}

// newLineOnce returns a server whose function takes effect once for each key.
func newLineOnce(
	locks *core.Client, answer func(context.Context, string) (string, error), opts ...guard.Option,
) (*lineServer, error) {
	s := &lineServer{answer: answer}
	var err error
	s.config, err = guard.Sort(guard.Place{Name: "line.Once", Takes: slices.Concat(guard.OnceTakes, lineOptions)}, opts, &s.lineConfig)
	if err != nil {
		return nil, err
	}
	once, err := guard.NewOnce("line", locks, s.config)
	if err != nil {
		return nil, err
	}
	s.do = once.Do
	return s, nil
}

// newLineExclusive returns a server whose function does not run twice at a time for a key.
func newLineExclusive(
	strategy core.Strategy, answer func(context.Context, string) (string, error), opts ...guard.Option,
) (*lineServer, error) {
	s := &lineServer{answer: answer}
	var err error
	s.config, err = guard.Sort(guard.Place{Name: "line.Exclusive", Takes: slices.Concat(guard.ExclusiveTakes, lineOptions)}, opts, &s.lineConfig)
	if err != nil {
		return nil, err
	}
	exclusive, err := guard.NewExclusive("line", strategy, s.config)
	if err != nil {
		return nil, err
	}
	s.do = exclusive.Do
	return s, nil
}

var errNoKey = errors.New("the line has no key")

// ask is what the guard has to know about a line. The fingerprint is the payload's.
func (s *lineServer) ask(key, payload string) guard.Ask {
	if key == "" {
		return guard.Ask{NoKey: errNoKey, Work: core.Work{Label: "line"}}
	}
	hash, fingerprint := guard.Hash(s.config.KeySecret, key), guard.Digest(s.config.KeySecret, payload)
	return guard.Ask{Work: core.Work{Label: "line", KeyHash: hash}, Name: "line:" + hash, Fingerprint: fingerprint[:]}
}

// handle answers a line. ctx ends when the client leaves.
func (s *lineServer) handle(ctx context.Context, line string) string {
	if s.longest > 0 && len(line) > s.longest {
		return "TOOLONG"
	}
	key, payload, _ := strings.Cut(line, " ")
	var answer string
	var failure error
	o, err := s.do(ctx, s.ask(key, payload), guard.Run{
		Call: func(ctx context.Context) { answer, failure = s.answer(ctx, payload) },
		Judge: func(o *guard.Outcome) {
			if o.Err = failure; o.Returned && failure == nil {
				o.Verdict, o.Value = guard.Completed, func() ([]byte, error) { return []byte(answer), nil }
			}
		},
		Replay: func(_ context.Context, r core.Record) error {
			if r.Omitted {
				return &core.CompletedError{Record: r}
			}
			answer, failure = string(r.Value), nil // failure comes from a function whose transaction has found the run
			return nil
		},
	})
	switch {
	case err != nil:
		return lineCode(err)
	case failure != nil:
		return "FAILED " + failure.Error()
	case o == nil:
		return "AGAIN " + answer
	}
	return "OK " + answer
}

// lineCode is the answer to a line that was not run.
func lineCode(err error) string {
	switch {
	case errors.Is(err, errNoKey):
		return "NOKEY"
	case guard.Mistaken(err):
		return "ERROR"
	case errors.Is(err, core.ErrFingerprintMismatch):
		return "MISMATCH"
	case errors.Is(err, core.ErrOutcomeUnknown):
		return "UNKNOWN"
	case errors.Is(err, core.ErrCompleted):
		return "DONE"
	case errors.Is(err, core.ErrUndecided):
		return "UNDECIDED"
	case errors.Is(err, core.ErrUnavailable):
		return "UNAVAILABLE"
	case errors.Is(err, core.ErrInProgress), errors.Is(err, core.ErrNotAcquired):
		return "BUSY"
	}
	return "ERROR"
}

// serve answers lines until the listener is closed. A panic of the function ends its connection, as with net/http.
func (s *lineServer) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = recover() }()
			defer conn.Close()
			lines := bufio.NewReader(conn)
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			go func() {
				defer cancel()
				_, _ = lines.ReadByte() // which returns when the client leaves
			}()
			fmt.Fprintln(conn, s.handle(ctx, strings.TrimSuffix(line, "\n")))
		}()
	}
}

// send sends a line and returns the answer, which is "" if the connection ended without one.
func send(ctx context.Context, addr, line string) string {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return ""
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	fmt.Fprintln(conn, line)
	answer, _ := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSuffix(answer, "\n")
}

// A place for a line protocol, from its options to its answers.
func Example() {
	redisServer := locktest.NewServer()
	defer redisServer.Close()
	locks := redisServer.NewClient() // in a service: core.New(rdb)

	server, err := newLineOnce(locks, func(_ context.Context, payload string) (string, error) {
		fmt.Println("running for", payload)
		return strings.ToUpper(payload), nil
	}, withLongestLine(100))
	if err != nil {
		panic(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	go server.serve(listener)

	ctx, addr := context.Background(), listener.Addr().String()
	fmt.Println(send(ctx, addr, "order-1 tea"))
	fmt.Println(send(ctx, addr, "order-1 tea"))
	fmt.Println(send(ctx, addr, "order-1 coffee"))
	fmt.Println(send(ctx, addr, ""))
	// Output:
	// running for tea
	// OK TEA
	// AGAIN TEA
	// MISMATCH
	// NOKEY
}
