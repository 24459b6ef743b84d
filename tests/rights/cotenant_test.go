package rights_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestOverwrittenFields: another program of this Redis overwrites a field of a lock, and its holder enters again, looks, and
// releases. No call panics, and no grant has a token that is none.
func TestOverwrittenFields(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	values := []string{"x", "", "-1", "0", "9007194959773697", "9223372036854775807", "1e300", "fair", "5 5 5", "5 5"}
	for mode, strategy := range map[string]core.Strategy{
		"mutex": locks.Mutex, "fair": locks.Fair, "write": locks.Write, "read": locks.Read, "semaphore": locks.Limit(2),
	} {
		for _, field := range []string{"token", "mode", "ttl", "granted"} {
			for _, value := range values {
				name := fmt.Sprintf("%s:%s:%s", mode, field, value)
				lease := coretest.MustLock(t, strategy(name))
				if err := rdb.HSet(ctx, "lock:"+name, field, value).Err(); err != nil {
					t.Fatal(err)
				}
				again, err := strategy(name).TryLock(lease.Context())
				if err == nil && (again.Token() < 1 || again.Token() > 9007194959773696) {
					t.Errorf("%s: granted with token %d", name, again.Token())
				}
				other, err := strategy(name).TryLock(ctx)
				if err == nil && (other.Token() < 1 || other.Token() > 9007194959773696) {
					t.Errorf("%s: granted to another with token %d", name, other.Token())
				}
				_, _ = locks.Inspect(ctx, name)
				for _, l := range []*core.Lease{other, again, lease} {
					if l != nil {
						_ = l.Unlock(ctx)
					}
				}
			}
		}
	}
}

// foreignServer starts a server that replies the same to each script and SCAN, and OK to all other commands. It returns
// a client for it.
func foreignServer(t *testing.T, reply string) *redis.Client { return serverOf(t, reply, reply) }

// scanServer is foreignServer that answers no script.
func scanServer(t *testing.T, reply string) *redis.Client { return serverOf(t, reply, "") }

// serverOf starts a server with these replies to SCAN and to scripts.
func serverOf(t *testing.T, scan, script string) *redis.Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { answer(conn, scan, script) })
		}
	})
	rdb := redis.NewClient(&redis.Options{Addr: listener.Addr().String(), Protocol: 2, MaxRetries: -1})
	t.Cleanup(func() {
		_ = rdb.Close()
		_ = listener.Close()
		serving.Wait()
	})
	return rdb
}

// answer replies to the commands of a connection.
func answer(conn net.Conn, scan, script string) {
	defer conn.Close()
	commands := bufio.NewReader(conn)
	number := func(prefix byte) int { // of a line as *3 or $7
		line, err := commands.ReadString('\n')
		if n, bad := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, string(prefix)))); err == nil && bad == nil {
			return n
		}
		return -1
	}
	for {
		words := make([]string, max(number('*'), 0))
		if len(words) == 0 {
			return
		}
		for i := range words {
			word := make([]byte, max(number('$'), 0)+len("\r\n"))
			if _, err := io.ReadFull(commands, word); err != nil {
				return
			}
			words[i] = string(word)
		}
		text := "+OK\r\n"
		switch command := strings.ToLower(words[0]); {
		case strings.HasPrefix(command, "eval"):
			text = script
		case strings.HasPrefix(command, "scan"):
			text = scan
		case strings.HasPrefix(command, "hello"):
			text = "-ERR unknown command 'HELLO'\r\n"
		}
		if _, err := io.WriteString(conn, text); err != nil {
			return
		}
	}
}

// TestForeignServer: a server that replies anything to the scripts gives no lock and no attempt, and ends no process.
func TestForeignServer(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{
		"*0", "*1 :0", "*1 :1", "*1 $-1", "*2 :2 :3", "*3 :0 :5 :99", "*4 :3 :0 :5 :99", "*3 :1 :0 :0", "*3 :1 :9007194959773697 :0",
		"*1 *1 *0", "$-1", "+OK", ":0", ":-1", ":9007194959773697", ":4611686018427387904", "*6 :0 :5 :0 :0 :4611686018427387904 :0",
	} {
		t.Run(reply, func(t *testing.T) {
			t.Parallel()
			rdb := foreignServer(t, strings.ReplaceAll(reply, " ", "\r\n")+"\r\n")
			locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // for replies that are not complete
			defer cancel()
			for mode, strategy := range map[string]core.Strategy{
				"mutex": locks.Mutex, "fair": locks.Fair, "write": locks.Write, "read": locks.Read, "semaphore": locks.Limit(2),
				"multi": func(name string, opts ...core.LockOption) *core.Lock {
					return core.Multi(locks.Mutex("{"+name+"}1", opts...), locks.Mutex("{"+name+"}2", opts...))
				},
			} {
				if lease, err := strategy(mode).TryLock(ctx); err == nil {
					t.Errorf("%s: granted with token %d", mode, lease.Token())
				}
				_, _ = locks.Inspect(ctx, mode)
				_, _ = locks.ForceUnlock(ctx, mode)
			}
			if attempt, err := locks.Once("key").Begin(ctx); err == nil {
				t.Errorf("an attempt with token %d", attempt.Token())
			}
			_, _ = locks.Once("key").Peek(ctx)
			_, _ = locks.Election("e").Leader(ctx)
		})
	}
}

// TestForgedGrant: a message of another program grants no token that is none.
func TestForgedGrant(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	held := coretest.MustLock(t, locks.Fair("name"))
	waiting := coretest.LeaseLater(t, locks.Fair("name"))
	coretest.AwaitQueue(t, locks, "name", 1)
	waiters, err := rdb.HKeys(ctx, "holdfast:waiters:{lock:name}").Result()
	if err != nil || len(waiters) != 1 {
		t.Fatalf("%d waiters, error %v", len(waiters), err)
	}
	client, _, _ := strings.Cut(waiters[0], ":")
	for _, grant := range []string{"9223372036854775807", "9007194959773697", fmt.Sprint(held.Token()+1, " 1000000"), fmt.Sprint(held.Token()+1, " -1")} {
		if err := rdb.Publish(ctx, "redisson_lock__channel:{lock:name}:"+client, waiters[0]+" "+grant).Err(); err != nil {
			t.Fatal(err)
		}
	}
	// The waiter receives the messages before the release's, on the same connection.
	coretest.Unlock(t, held)
	lease := coretest.AwaitLease(t, waiting)
	if lease.Token() <= held.Token() || lease.Token() > 9007194959773696 {
		t.Errorf("granted with token %d after %d", lease.Token(), held.Token())
	}
	coretest.Unlock(t, lease)
}

// TestForgedPermits: a lock with more permits than WithPermits allows is data of another program. No script expands them: with two
// million, one script would keep Redis busy for seconds, and after its first write nothing could stop it.
func TestForgedPermits(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	for name, strategy := range map[string]core.Strategy{
		"mutex": locks.Mutex, "fair": locks.Fair, "write": locks.Write, "read": locks.Read, "semaphore": locks.Limit(2),
	} {
		for _, mode := range []string{"semaphore:2000000:2000000 30000 5", "semaphore:1000000:1001 30000 5", "semaphore:0:0 30000 5", "fair 99999999999999999999 5", "fair 30000 99999999999999999999"} {
			key := "lock:" + name
			if err := rdb.HSet(ctx, key, "o", 1, "mode", mode).Err(); err != nil {
				t.Fatal(err)
			}
			_, err := strategy(name).TryLock(ctx)
			coretest.WantErr(t, err, core.ErrWrongType)
			_, err = locks.ForceUnlock(ctx, name)
			coretest.WantErr(t, err, core.ErrWrongType)
			if fields := rdb.HLen(ctx, key).Val(); fields != 2 {
				t.Errorf("%s %q: %d fields are left of 2", name, mode, fields)
			}
			if keys := rdb.Keys(ctx, "holdfast:slots*").Val(); len(keys) > 0 {
				t.Errorf("%s %q: %v", name, mode, keys)
			}
		}
	}
}

// TestForgedGroup: another program adds members to a group of records. The client that lists them reads a bounded number at the
// same time, and stops when its context ends.
func TestForgedGroup(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	coretest.MustBegin(t, locks.Once("{u}:real", core.WithGroup()))
	group := rdb.Keys(t.Context(), "holdfast:group:*").Val()[0]
	score := rdb.ZRangeWithScores(t.Context(), group, 0, 0).Val()[0].Score
	const members = 20_000
	forged := make([]redis.Z, members)
	for i := range forged {
		forged[i] = redis.Z{Score: score, Member: fmt.Sprint("holdfast:once=lock:{u}:", i)}
	}
	if err := rdb.ZAdd(t.Context(), group, forged...).Err(); err != nil {
		t.Fatal(err)
	}
	before, most, done := runtime.NumGoroutine(), 0, make(chan error, 1)
	go func() {
		records, err := locks.GroupRecords(t.Context(), "{u}")
		if err == nil && len(records) != 1 {
			err = fmt.Errorf("%d records", len(records))
		}
		done <- err
	}()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for ended := false; !ended; {
		select {
		case err := <-done:
			if ended = true; err != nil {
				t.Error(err)
			}
		case <-look.C:
			most = max(most, runtime.NumGoroutine())
		}
	}
	if most > before+members/4 {
		t.Errorf("%d goroutines, %d before", most, before)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := locks.GroupRecords(ctx, "{u}"); err == nil {
		t.Error("records after the end of the context")
	}
}
