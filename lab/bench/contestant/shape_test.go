package contestant_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/bench/contestant"
	"github.com/holdfast-go/holdfast/lab/bench/shape"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestShapesAreWhatLibrariesSend: each library sends the commands of its shape, with the same scripts, keys and
// arguments. Only IDs, random values and times differ, and these have the same length.
func TestShapesAreWhatLibrariesSend(t *testing.T) {
	t.Parallel()
	const name = "order:42"
	for _, s := range shape.All() {
		library := pairOf(s.Name)
		if library == nil {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			server := testkit.Start(t, testkit.TCP())
			pair := library(t, server)
			if err := pair("other"); err != nil { // which loads the scripts
				t.Fatal(err)
			}
			rdb := loaded(t, server, s)
			seen := monitor(t, server)
			if err := pair(name); err != nil {
				t.Fatal(err)
			}
			want := commandsOf(seen())
			seen = monitor(t, server)
			h := &shape.Hold{Name: name + "x", Number: 9} // an Once remembers the run of the library
			run(t, rdb, s.Unlock(h, run(t, rdb, s.Lock(h))))
			got := commandsOf(seen())
			if len(got) != 2 || len(want) != 2 {
				t.Fatalf("sent %q, the library %q", got, want)
			}
			for i := range want {
				compare(t, got[i], want[i], name)
			}
		})
	}
}

// pairOf returns what lets a library lock, and unlock, the name whose lock is at the key of the shape; nil if the shape
// is no library's.
func pairOf(name string) func(*testing.T, *testkit.Server) func(string) error {
	switch name {
	case "holdfast Read":
		return func(t *testing.T, server *testkit.Server) func(string) error {
			locks := newClient(t, server)
			return func(name string) error {
				lease, err := locks.Read(name).Lock(context.Background())
				if err != nil {
					return err
				}
				return lease.Unlock(context.Background())
			}
		}
	case "holdfast Once":
		return func(t *testing.T, server *testkit.Server) func(string) error {
			locks := newClient(t, server)
			return func(name string) error {
				attempt, err := locks.Once(name).Begin(context.Background())
				if err != nil {
					return err
				}
				return attempt.Complete(context.Background(), []byte("order"))
			}
		}
	}
	for _, c := range contestant.All() {
		if c.Name != name || c.Limit {
			continue
		}
		return func(t *testing.T, server *testkit.Server) func(string) error {
			session, err := c.Open([]string{server.Addr()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = session.Close() }) // nothing depends on it any more
			return func(name string) error {
				if c.Family == "redsync" || c.Family == "redislock" {
					name = "lock:" + name // they have no prefix of their own
				}
				return session.Pair(context.Background(), name)
			}
		}
	}
	return nil
}

func newClient(t *testing.T, server *testkit.Server) *core.Client {
	t.Helper()
	locks, err := core.New(server.Client(), core.WithTTL(contestant.TTL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() }) // nothing depends on it any more
	return locks
}

// loaded returns a client of a server that has the scripts of a shape.
func loaded(t *testing.T, server *testkit.Server, s shape.Shape) *redis.Client {
	t.Helper()
	rdb := server.Client(func(o *redis.Options) { o.PoolSize = 1 })
	for _, script := range s.Scripts {
		if err := script.Load(context.Background(), rdb).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return rdb
}

func run(t *testing.T, rdb *redis.Client, c shape.Command) any {
	t.Helper()
	var cmd *redis.Cmd
	_, err := rdb.Pipelined(context.Background(), func(pipe redis.Pipeliner) error {
		cmd = c.Queue(context.Background(), pipe)
		return nil
	})
	reply, failure := shape.Reply(cmd)
	if failure != nil {
		t.Fatalf("%v, %v", failure, err)
	}
	return reply
}

// commandsOf leaves out what a connection or a client sends beside the lock.
func commandsOf(sent [][]string) (commands [][]string) {
	for _, words := range sent {
		if slices.Contains([]string{"evalsha", "eval", "set"}, strings.ToLower(words[0])) {
			commands = append(commands, words)
		}
	}
	return commands
}

var (
	idText     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}:\d+`)
	numberText = regexp.MustCompile(`^-?\d+$`)
)

// compare checks the words of two commands.
func compare(t *testing.T, got, want []string, name string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("sent %d words, the library %d:\n%q\n%q", len(got), len(want), got, want)
	}
	for i := range want {
		g := idText.ReplaceAllString(strings.ReplaceAll(got[i], name+"x", name), "<id>")
		w := idText.ReplaceAllString(want[i], "<id>")
		const timeLength = 13 // of milliseconds since 1970; microseconds have more
		random := !numberText.MatchString(w) || len(w) >= timeLength
		if strings.EqualFold(g, w) || i > 1 && random && len(g) == len(w) && !strings.Contains(w, name) && len(w) > 12 {
			continue
		}
		t.Errorf("word %d is %q, the library sends %q", i, g, w)
	}
}

// TestShapesExclude: a second hold is refused while the first one has the lock, and granted after it was released.
func TestShapesExclude(t *testing.T) {
	t.Parallel()
	for _, s := range shape.All() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			rdb := loaded(t, testkit.Start(t), s)
			h, other := &shape.Hold{Name: "name", Number: 1}, &shape.Hold{Name: "name", Number: 2}
			locked := run(t, rdb, s.Lock(h))
			if !s.Granted(locked) {
				t.Fatalf("free, and refused: %v", locked)
			}
			shares := s.Name == shape.Nothing().Name || s.Name == shape.Read().Name
			if reply := run(t, rdb, s.Lock(other)); s.Granted(reply) != shares {
				t.Errorf("the second hold: %v", reply)
			}
			send := func(c shape.Command) (any, error) { return run(t, rdb, c), nil }
			if reply, _ := s.Release(h, locked, send); !s.Released(reply) {
				t.Errorf("released: %v", reply)
			}
			remembers := strings.Contains(strings.ToLower(s.Name), "once")
			if !shares {
				if reply := run(t, rdb, s.Lock(other)); s.Granted(reply) == remembers {
					t.Errorf("the hold after the release: %v", reply)
				}
			}
		})
	}
}

// TestReadersExcludeWriters: what [shape.Read] and [shape.Write] take is one lock.
func TestReadersExcludeWriters(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	read, write := shape.Read(), shape.Write()
	rdb := loaded(t, server, read)
	loaded(t, server, write)
	if reply := run(t, rdb, read.Lock(&shape.Hold{Name: "name", Number: 1})); !read.Granted(reply) {
		t.Fatalf("free, and refused: %v", reply)
	}
	if reply := run(t, rdb, write.Lock(&shape.Hold{Name: "name", Number: 2})); write.Granted(reply) {
		t.Errorf("a writer entered beside a reader: %v", reply)
	}
}
