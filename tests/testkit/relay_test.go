package testkit_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// setup returns a server, a relay and a client behind it with an open connection.
func setup(t *testing.T) (*testkit.Server, *testkit.Relay, *redis.Client) {
	t.Helper()
	srv := testkit.Start(t)
	relay := srv.Relay()
	return srv, relay, warm(t, relay.Client(once))
}

func wantTimeout(t *testing.T, err error) {
	t.Helper()
	var netErr net.Error
	if !errors.As(err, &netErr) || !netErr.Timeout() {
		t.Fatalf("error is %v, want a timeout", err)
	}
}

func calls(srv *testkit.Server, command string) int64 {
	return srv.CommandStats()[command].Calls
}

func awaitCalls(t *testing.T, srv *testkit.Server, command string, want int64) {
	t.Helper()
	testkit.Eventually(t, patience, "the server executes "+command, func() bool {
		return calls(srv, command) == want
	})
}

func awaitConnections(t *testing.T, relay *testkit.Relay, want int) {
	t.Helper()
	testkit.Eventually(t, patience, "number of connections", func() bool {
		return relay.Connections() == want
	})
}

func TestRelayPasses(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t, testkit.TCP())
	relay := srv.Relay()
	rdb := relay.Client()
	value := bytes.Repeat([]byte("0123456789"), 100_000) // many chunks
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				if n, err := rdb.Incr(t.Context(), "n").Result(); err != nil || n == 0 {
					t.Errorf("INCR = %d, %v", n, err)
				}
			}
		})
	}
	wg.Wait()
	wantInt(t, rdb, "n", 20)
	if err := rdb.Set(t.Context(), "big", value, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := rdb.Get(t.Context(), "big").Bytes(); err != nil || !bytes.Equal(got, value) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	if relay.Connections() == 0 {
		t.Error("no connections are counted")
	}
	if err := rdb.Close(); err != nil {
		t.Fatal(err)
	}
	awaitConnections(t, relay, 0)
}

func TestRelayWithoutServer(t *testing.T) {
	t.Parallel()
	srv, relay, rdb := setup(t)
	srv.Kill()
	if err := rdb.Ping(t.Context()).Err(); err == nil {
		t.Error("the killed server answers")
	}
	srv.Restart()
	warm(t, relay.Client())
}

func TestDelay(t *testing.T) {
	t.Parallel()
	const by = 60 * time.Millisecond
	for _, d := range []testkit.Direction{testkit.ToServer, testkit.ToClient} {
		_, relay, rdb := setup(t)
		relay.Delay(d, by)
		began := time.Now()
		if err := rdb.Incr(t.Context(), "n").Err(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < by {
			t.Errorf("direction %d: took %v, want at least %v", d, took, by)
		}
		relay.Delay(d, time.Hour)
		done := make(chan error, 1)
		go func() { done <- rdb.Incr(t.Context(), "n").Err() }()
		testkit.Eventually(t, patience, "bytes are delayed", func() bool { return relay.Held(d) > 0 })
		relay.Heal()
		if err := <-done; err != nil {
			t.Errorf("after Heal: %v", err)
		}
	}
}

func TestDrop(t *testing.T) {
	t.Parallel()
	for d, executed := range map[testkit.Direction]int64{
		testkit.ToServer: 0, testkit.ToClient: 1, testkit.Both: 0,
	} {
		srv, relay, rdb := setup(t)
		relay.Drop(d)
		wantTimeout(t, impatient(rdb).Incr(t.Context(), "n").Err())
		awaitCalls(t, srv, "incr", executed)
		if err := impatient(rdb).Ping(t.Context()).Err(); err == nil {
			t.Error("a new connection is not dropped")
		}
		relay.Heal()
		warm(t, rdb)
	}
}

// A connection with a gap in its stream ends at Heal, one without continues.
func TestHealAfterDrop(t *testing.T) {
	t.Parallel()
	_, relay, rdb := setup(t)
	idle := warm(t, relay.Client(once))
	idleID := idle.ClientID(t.Context()).Val()
	relay.Drop(testkit.ToServer)
	asked := make(chan struct{})
	relay.OnRequest(func([]byte) { close(asked) })
	done := make(chan error, 1)
	go func() { done <- rdb.Ping(t.Context()).Err() }()
	<-asked
	relay.OnRequest(nil)
	relay.Heal()
	// The piece may still be on its way to be dropped while Heal comes.
	if err := <-done; err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("error is %v, want EOF", err)
	}
	if id, err := idle.ClientID(t.Context()).Result(); err != nil || id != idleID {
		t.Errorf("the idle connection: client %d, was %d: %v", id, idleID, err)
	}
}

func TestDropExisting(t *testing.T) {
	t.Parallel()
	srv, relay, old := setup(t)
	relay.DropExisting(testkit.Both)
	if err := warm(t, relay.Client()).Incr(t.Context(), "n").Err(); err != nil {
		t.Errorf("a new connection: %v", err)
	}
	wantTimeout(t, impatient(old).Incr(t.Context(), "n").Err())
	if got := calls(srv, "incr"); got != 1 {
		t.Errorf("executed %d times, want once", got)
	}
	if err := old.Incr(t.Context(), "n").Err(); err != nil {
		t.Errorf("the old client with a new connection: %v", err)
	}
}

func TestCutAfter(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		d        testkit.Direction
		n        int
		executed int64
	}{
		{testkit.ToServer, 0, 0},
		{testkit.ToServer, 5, 0},
		{testkit.ToClient, 0, 1},
		{testkit.ToClient, 1, 1},
	} {
		srv, relay, rdb := setup(t)
		relay.CutAfter(tc.d, tc.n)
		if err := rdb.Incr(t.Context(), "n").Err(); !errors.Is(err, io.EOF) {
			t.Errorf("%+v: error is %v, want EOF", tc, err)
		}
		if got := calls(srv, "incr"); got != tc.executed {
			t.Errorf("%+v: executed %d times", tc, got)
		}
		if err := rdb.Ping(t.Context()).Err(); err == nil {
			t.Errorf("%+v: a new connection is not cut", tc)
		}
		relay.Heal()
		warm(t, rdb)
	}
}

// The bytes before the cut arrive, and count for each connection apart.
func TestCutAfterPasses(t *testing.T) {
	t.Parallel()
	_, relay, _ := setup(t)
	relay.CutAfter(testkit.ToClient, 10)
	for range 2 {
		conn, err := net.Dial("tcp", relay.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "PING\r\nPING\r\nPING\r\n"); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		if string(got) != "+PONG\r\n+PO" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	srv, relay, rdb := setup(t)
	relay.OnRequest(func(chunk []byte) {
		if bytes.Contains(chunk, []byte("incr")) {
			relay.Reset()
		}
	})
	// Not by go-redis, which reports a reset as EOF.
	conn, err := net.Dial("tcp", relay.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "incr n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("error is %v, want a reset", err)
	}
	awaitCalls(t, srv, "incr", 1) // requests in the relay are delivered
	awaitConnections(t, relay, 0)
	warm(t, rdb)
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	_, relay, rdb := setup(t)
	relay.Refuse(true)
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the open connection: %v", err)
	}
	other := relay.Client(once)
	if err := other.Ping(t.Context()).Err(); err == nil {
		t.Error("a new connection works")
	}
	relay.Refuse(false)
	warm(t, other)
	relay.Refuse(true)
	relay.Heal()
	warm(t, relay.Client())
}

// TestRefuseAndReset: both together leave no connection, not even one that the relay was about to connect.
func TestRefuseAndReset(t *testing.T) {
	t.Parallel()
	_, relay, _ := setup(t)
	conns := make([]net.Conn, 64)
	for i := range conns {
		conn, err := net.Dial("tcp", relay.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns[i] = conn
	}
	relay.Refuse(true)
	relay.Reset()
	for i, conn := range conns {
		_, _ = io.WriteString(conn, "PING\r\n")
		if n, err := conn.Read(make([]byte, 64)); err == nil {
			t.Errorf("connection %d: an answer of %d bytes", i, n)
		}
	}
}

func TestHoldIsDeliveredAfterClose(t *testing.T) {
	t.Parallel()
	for name, release := range map[string]func(*testkit.Relay){
		"deliver": (*testkit.Relay).Deliver,
		"heal":    (*testkit.Relay).Heal,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, relay, rdb := setup(t)
			relay.Hold(testkit.ToServer)
			wantTimeout(t, impatient(rdb).Incr(t.Context(), "n").Err())
			if err := rdb.Close(); err != nil {
				t.Fatal(err)
			}
			awaitConnections(t, relay, 0)
			if relay.Held(testkit.ToServer) == 0 || calls(srv, "incr") != 0 {
				t.Error("the request is not held")
			}
			release(relay)
			awaitCalls(t, srv, "incr", 1)
			if got := relay.Held(testkit.ToServer); got != 0 {
				t.Errorf("%d bytes are still held", got)
			}
		})
	}
}

// Also a RST to the client does not take the held request away.
func TestHoldSurvivesReset(t *testing.T) {
	t.Parallel()
	srv, relay, rdb := setup(t)
	relay.Hold(testkit.ToServer)
	done := make(chan error, 1)
	go func() { done <- rdb.Incr(t.Context(), "n").Err() }()
	testkit.Eventually(t, patience, "held", func() bool { return relay.Held(testkit.ToServer) > 0 })
	relay.Reset()
	if err := <-done; err == nil {
		t.Error("the client has not noticed")
	}
	if relay.Held(testkit.ToServer) == 0 {
		t.Error("the request is not held")
	}
	relay.Deliver()
	awaitCalls(t, srv, "incr", 1)
}

func TestHoldKeepsOrder(t *testing.T) {
	t.Parallel()
	srv, relay, rdb := setup(t)
	relay.Hold(testkit.ToClient)
	done := make(chan error, 1)
	go func() { done <- rdb.Incr(t.Context(), "n").Err() }()
	awaitCalls(t, srv, "incr", 1)
	select {
	case err := <-done:
		t.Fatalf("the reply was not held: %v", err)
	default:
	}
	relay.Deliver()
	if err := <-done; err != nil {
		t.Error(err)
	}
	wantInt(t, rdb, "n", 1)
}

func TestSlice(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	relay := srv.Relay()
	conn, err := net.Dial("tcp", relay.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	relay.Slice(testkit.ToClient, 3)
	relay.Hold(testkit.ToClient)
	if _, err := io.WriteString(conn, "ECHO 0123456789\r\n"); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, patience, "the reply to arrive", func() bool { return relay.Held(testkit.ToClient) > 0 })
	relay.Deliver()
	const want = "$10\r\n0123456789\r\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Errorf("reply %q, error %v", got, err)
	}
}
