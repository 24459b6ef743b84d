package contestant_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

func start(t *testing.T, c contestant.Contestant) (servers []*testkit.Server, first, second contestant.Session) {
	t.Helper()
	var addrs []string
	for range c.Servers {
		servers = append(servers, testkit.Start(t, testkit.TCP()))
		addrs = append(addrs, servers[len(servers)-1].Addr())
	}
	open := func() contestant.Session {
		s, err := c.Open(addrs)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() }) // nothing depends on it any more
		return s
	}
	return servers, open(), open()
}

// TestContestantsLock: what is compared excludes others, and lets them in again.
func TestContestantsLock(t *testing.T) {
	t.Parallel()
	for _, c := range contestant.All() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			_, first, second := start(t, c)
			ctx := context.Background()
			unlock, err := first.Lock(ctx, "name")
			if err != nil {
				t.Fatal(err)
			}
			short, stop := context.WithTimeout(ctx, 300*time.Millisecond)
			defer stop()
			if _, err := second.Lock(short, "name"); err == nil {
				t.Error("two hold the lock")
			}
			if err := unlock(ctx); err != nil {
				t.Fatal(err)
			}
			unlock, err = second.Lock(ctx, "name")
			if err != nil {
				t.Fatalf("after unlock: %v", err)
			}
			if err := unlock(ctx); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := first.Pair(ctx, "name"); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestWaitersAreLetIn: those that are said to wait do.
func TestWaitersAreLetIn(t *testing.T) {
	t.Parallel()
	for _, c := range contestant.All() {
		if !c.Waits {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			_, first, second := start(t, c)
			ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
			defer stop()
			unlock, err := first.Lock(ctx, "name")
			if err != nil {
				t.Fatal(err)
			}
			entered := make(chan error)
			go func() {
				_, err := second.Lock(ctx, "name")
				entered <- err
			}()
			time.Sleep(50 * time.Millisecond) // so that it waits; it enters in any case
			if err := unlock(ctx); err != nil {
				t.Fatal(err)
			}
			if err := <-entered; err != nil {
				t.Errorf("the waiter: %v", err)
			}
		})
	}
}

// TestSendsAreAll: commands that a contestant sends for a pair are counted, and all of them.
func TestSendsAreAll(t *testing.T) {
	t.Parallel()
	setUp := []string{"hello", "client", "ping", "info", "command", "script", "readonly"}
	for _, c := range contestant.All() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			servers, session, _ := start(t, c)
			seen := monitor(t, servers[0])
			const pairs = 5
			for range pairs {
				if err := session.Pair(context.Background(), "name"); err != nil {
					t.Fatal(err)
				}
			}
			counted := 0
			testkit.Eventually(t, 20*time.Second, "all commands, also those to a slow server", func() bool {
				for _, sent := range seen() {
					command := strings.ToLower(sent[0])
					switch {
					case slices.Contains(c.Sends, command):
						counted++
					case !slices.Contains(setUp, command):
						t.Errorf("%s is not counted", command)
					}
				}
				return counted >= 2*pairs
			})
		})
	}
}
