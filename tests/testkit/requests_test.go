package testkit_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestLoseReplies(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		how     testkit.LossMode
		wantErr func(t *testing.T, err error)
	}{
		"silent": {testkit.Silent, wantTimeout},
		"closed": {testkit.Closed, func(t *testing.T, err error) {
			if !errors.Is(err, io.EOF) {
				t.Fatalf("error is %v, want EOF", err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, relay, rdb := setup(t)
			relay.LoseReplies("MyKey", 2, tc.how)
			if err := rdb.Incr(t.Context(), "other").Err(); err != nil {
				t.Errorf("another request: %v", err)
			}
			hit := rdb
			if tc.how == testkit.Silent {
				hit = impatient(rdb)
			}
			for i := range 2 {
				warm(t, rdb)
				tc.wantErr(t, hit.Incr(t.Context(), "mykey").Err())
				testkit.Eventually(t, patience, "a reply to be lost", func() bool { return relay.LostReplies() == i+1 })
				wantInt(t, srv.Client(), "mykey", i+1) // executed all the same
			}
			if n, err := rdb.Incr(t.Context(), "mykey").Result(); n != 3 || err != nil {
				t.Errorf("INCR = %d, %v, want 3", n, err)
			}
		})
	}
}

// With its own retries go-redis executes a command several times.
func TestLoseRepliesWithRetries(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	relay := srv.Relay()
	rdb := warm(t, relay.Client(func(o *redis.Options) { o.ReadTimeout = patience }))
	relay.LoseReplies("mykey", 2, testkit.Closed)
	if n, err := rdb.Incr(t.Context(), "mykey").Result(); n != 3 || err != nil {
		t.Errorf("INCR = %d, %v, want 3", n, err)
	}
}

// The silent connection stays open, until Heal closes it.
func TestSilentLossKeepsTheConnection(t *testing.T) {
	t.Parallel()
	_, relay, rdb := setup(t)
	relay.LoseReplies("mykey", 1, testkit.Silent)
	done := make(chan error, 1)
	go func() { done <- rdb.Incr(t.Context(), "mykey").Err() }()
	testkit.Eventually(t, patience, "the reply is lost", func() bool { return relay.LostReplies() == 1 })
	if got := relay.Connections(); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
	select {
	case err := <-done:
		t.Errorf("the client has noticed: %v", err)
	default:
	}
	relay.Heal()
	if err := <-done; !errors.Is(err, io.EOF) {
		t.Errorf("error is %v, want EOF", err)
	}
}

func TestHealForgetsLosses(t *testing.T) {
	t.Parallel()
	_, relay, rdb := setup(t)
	relay.LoseReplies("mykey", 1, testkit.Closed)
	relay.Heal()
	if err := rdb.Incr(t.Context(), "mykey").Err(); err != nil {
		t.Error(err)
	}
}

// A fault which OnRequest sets acts on the very request it was called for.
func TestOnRequest(t *testing.T) {
	t.Parallel()
	srv, relay, rdb := setup(t)
	relay.OnRequest(func(chunk []byte) {
		if bytes.Contains(chunk, []byte("mykey")) {
			relay.Hold(testkit.ToServer)
		}
	})
	if err := rdb.Incr(t.Context(), "other").Err(); err != nil {
		t.Fatal(err)
	}
	wantTimeout(t, impatient(rdb).Incr(t.Context(), "mykey").Err())
	if got := calls(srv, "incr"); got != 1 {
		t.Errorf("executed %d times before Deliver", got)
	}
	relay.Deliver()
	awaitCalls(t, srv, "incr", 2)
}

func TestCloseUnderLoad(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	relay := testkit.NewRelay(t, srv.Network(), srv.Addr())
	started := make(chan struct{})
	done := make(chan struct{})
	rdb := relay.Client(once)
	go func() {
		defer close(done)
		for i := range 1000 {
			if rdb.Incr(t.Context(), "n").Err() != nil {
				return
			}
			if i == 10 {
				close(started)
			}
		}
	}()
	<-started
	relay.Hold(testkit.Both)
	relay.Close()
	<-done
	relay.Close()
}
