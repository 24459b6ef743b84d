package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// trap calls a function once, when it is armed. It is the user's code inside go-redis.
type trap struct {
	act   func()
	armed atomic.Bool
}

func (r *trap) spring() {
	if r != nil && r.armed.CompareAndSwap(true, false) {
		r.act()
	}
}

// trappedConn has a trap between the command and its reply. It has no file descriptor in which go-redis would find an unread reply.
type trappedConn struct {
	net.Conn
	trap *trap
}

func (c trappedConn) Read(b []byte) (int, error) {
	c.trap.spring()
	return c.Conn.Read(b)
}

// trappedLimiter has a trap before a connection is taken, or where go-redis gives it back; each may be nil.
type trappedLimiter struct{ allow, report *trap }

func (l trappedLimiter) Allow() error {
	l.allow.spring()
	return nil
}

func (l trappedLimiter) ReportResult(error) { l.report.spring() }

// trappedHook has a trap behind a command and its reply.
type trappedHook struct{ trap *trap }

// otherFirst is a hook that sends another command before each.
type otherFirst struct{ trappedHook }

func (otherFirst) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		_ = next(ctx, redis.NewStatusCmd(ctx, "echo", "other"))
		return next(ctx, cmd)
	}
}

func (trappedHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h trappedHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		h.trap.spring()
		return err
	}
}

func (h trappedHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		h.trap.spring()
		return err
	}
}

// trapReads has a trap in the connections of a client.
func trapReads(o *redis.Options, trap *trap) {
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return trappedConn{conn, trap}, err
	}
}

var ways = map[string]func(){"panic": func() { panic("trap") }, "Goexit": runtime.Goexit}

// askDirectly sends a command that the server answers with a text, on the direct path and on a goroutine that a trap may end.
func askDirectly(t *testing.T, e *Executor, text string) (reply any, err error) {
	c := NewCommand(echoScript, []string{"key"}, text)
	c.node = e.Nodes.only
	testkit.Eventually(t, time.Minute, "the direct path", func() bool {
		e.direct.fastUntil.Store(int64(e.direct.now() + time.Minute))
		return e.direct.tryReserve(c, e.direct.now())
	})
	err = errExited
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.sendDirect(c, e.direct.now())
		reply, err = c.Reply, c.Err
	}()
	<-done
	return reply, err
}

// TestUnreadReplyOnTheDirectPath: if user code keeps go-redis from reading a reply, no later command gets it as its own, and none waits
// for a connection that go-redis has lost.
func TestUnreadReplyOnTheDirectPath(t *testing.T) {
	t.Parallel()
	for way, act := range ways {
		for place, put := range map[string]func(o *redis.Options, trap *trap){
			"read":    trapReads,
			"release": func(o *redis.Options, trap *trap) { o.Limiter = trappedLimiter{report: trap} },
		} {
			for _, poolSize := range []int{2, 10} {
				for hook, hooks := range map[string][]redis.Hook{"no hook": nil, "another command first": {otherFirst{}}} {
					t.Run(fmt.Sprint(way, " in ", place, ", ", poolSize, ", ", hook), func(t *testing.T) {
						t.Parallel()
						trap := &trap{act: act}
						o := &redis.Options{Network: "unix", Addr: testkit.Start(t).Addr(), PoolSize: poolSize}
						put(o, trap)
						rdb := redis.NewClient(o)
						defer rdb.Close()
						for _, h := range hooks {
							rdb.AddHook(h)
						}
						e := NewExecutor(rdb, Background{Now: keepalive.SystemClock}, nil)
						e.UseDirectPath()
						defer e.Close(time.Second)
						for i := range 50 {
							text, trapped := fmt.Sprint(i), i == 20
							trap.armed.Store(trapped)
							if reply, err := askDirectly(t, e, text); (err != nil) != trapped || err == nil && reply != text {
								t.Fatalf("%v, %v, want %s or the end by the trap, which is armed: %v", reply, err, text, trapped)
							}
						}
					})
				}
			}
		}
	}
}

// TestUnreadRepliesOfABatch: a panic in a hook is the error of the commands, whatever the server has answered, and one before anything was
// written too. If a reply is left unread, the process ends.
func TestUnreadRepliesOfABatch(t *testing.T) {
	t.Parallel()
	scripts := map[string]*Script{
		"text": echoScript, "nil": NewScript("return nil"), "error": NewScript("return redis.error_reply('ERR no')"), "unknown": NewScript("return ARGV[1] --"),
	}
	places := map[string]func(o *redis.Options, trap *trap){
		"hook":  func(*redis.Options, *trap) {},
		"allow": func(o *redis.Options, trap *trap) { o.Limiter = trappedLimiter{allow: trap} },
		"read":  trapReads,
	}
	for place, put := range places {
		for way, act := range ways {
			for _, size := range []int{1, 3} {
				for answer, script := range scripts {
					t.Run(fmt.Sprint(way, " in ", place, ", batch of ", size, ", answer ", answer), func(t *testing.T) {
						t.Parallel()
						trap := &trap{act: act}
						o := &redis.Options{Network: "unix", Addr: testkit.Start(t).Addr()}
						put(o, trap)
						rdb := redis.NewClient(o)
						defer rdb.Close()
						if place == "hook" {
							rdb.AddHook(trappedHook{trap})
						}
						if err := rdb.Ping(t.Context()).Err(); err != nil { // so that there is a connection
							t.Fatal(err)
						}
						if answer != "unknown" {
							_ = rdb.ScriptLoad(t.Context(), script.Source)
						}
						e := NewExecutor(rdb, Background{Now: keepalive.SystemClock}, nil)
						died := make(chan error, 1)
						e.die = func(err error) { died <- err; runtime.Goexit() }
						batch := make([]*Command, size)
						for i := range batch {
							batch[i] = NewCommand(script, []string{"key"}, fmt.Sprint(i))
						}
						trap.armed.Store(true)
						done := make(chan struct{})
						go func() {
							defer close(done)
							e.sendRecovered(batch)
						}()
						<-done
						if trap.armed.Load() {
							t.Fatal("the trap was not sprung")
						}
						if dies := len(died) == 1; dies != (place == "read") {
							t.Fatalf("dies = %v", dies)
						}
						for _, c := range batch {
							if way == "panic" && place != "read" && !errors.Is(c.Err, ErrPanic) {
								t.Errorf("error %v", c.Err)
							}
						}
					})
				}
			}
		}
	}
}
