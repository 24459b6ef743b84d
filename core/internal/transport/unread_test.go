package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
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

// againHook is a hook that sends each command twice, and arms the trap for the second time.
type againHook struct{ trappedHook }

func (h againHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		armed := h.trap.armed.Swap(false)
		_ = next(ctx, cmd)
		h.trap.armed.Store(armed)
		return next(ctx, cmd)
	}
}

func (h againHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		armed := h.trap.armed.Swap(false)
		_ = next(ctx, cmds)
		h.trap.armed.Store(armed)
		return next(ctx, cmds)
	}
}

// recoverHook is a hook that makes an error of a panic.
type recoverHook struct{ trappedHook }

func (recoverHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = errors.New("recovered")
				cmd.SetErr(err)
			}
		}()
		return next(ctx, cmd)
	}
}

func (recoverHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = errors.New("recovered")
				for _, cmd := range cmds {
					cmd.SetErr(err)
				}
			}
		}()
		return next(ctx, cmds)
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

// places are where a trap may be, and whether a command was written there, and its reply may be unread.
var places = map[string]struct {
	put    func(o *redis.Options, trap *trap)
	hook   func(trap *trap) redis.Hook // of the user's client; may be nil
	unread bool
}{
	"hook":  {hook: func(trap *trap) redis.Hook { return trappedHook{trap} }},
	"allow": {put: func(o *redis.Options, trap *trap) { o.Limiter = trappedLimiter{allow: trap} }},
	"allow of a second try": {
		put:  func(o *redis.Options, trap *trap) { o.Limiter = trappedLimiter{allow: trap} },
		hook: func(trap *trap) redis.Hook { return againHook{trappedHook{trap}} },
	},
	"read":                           {put: trapReads, unread: true},
	"report":                         {put: func(o *redis.Options, trap *trap) { o.Limiter = trappedLimiter{report: trap} }, unread: true},
	"read, and a hook that recovers": {put: trapReads, hook: func(*trap) redis.Hook { return recoverHook{} }, unread: true},
	"read, of a command of a hook":   {put: trapReads, hook: func(*trap) redis.Hook { return otherFirst{} }, unread: true},
}

// diesAt returns an executor for a server, with a trap at a place. A message that tells why it dies is sent on died.
func diesAt(t *testing.T, place string, trap *trap, poolSize int) (rdb *redis.Client, e *Executor, died chan any) {
	o := &redis.Options{Network: "unix", Addr: testkit.Start(t).Addr(), PoolSize: poolSize}
	if put := places[place].put; put != nil {
		put(o, trap)
	}
	rdb = redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	if hook := places[place].hook; hook != nil {
		rdb.AddHook(hook(trap))
	}
	// So that there is a connection; since its version 9.23, go-redis has others for pipelines.
	if _, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error { return p.Ping(t.Context()).Err() }); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	e = NewExecutor(rdb, Background{Now: keepalive.SystemClock}, nil)
	died = make(chan any, 1)
	e.die = func(cause any) { died <- cause; runtime.Goexit() }
	return rdb, e, died
}

// askDirectly sends a command that the server answers with a text, on the direct path and on a goroutine that a trap may end.
func askDirectly(t *testing.T, e *Executor, text string) (reply any, err error) {
	c := NewCommand(echoScript, []string{"key"}, text)
	c.node = e.Nodes.only
	testkit.Eventually(t, time.Minute, "the direct path", func() bool {
		e.direct.fastUntil.Store(int64(e.direct.now() + time.Minute))
		return e.direct.tryReserve(c, e.direct.now())
	})
	err = errHookExited
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.sendDirect(c, e.direct.now())
		reply, err = c.Reply, c.Err
	}()
	<-done
	return reply, err
}

// TestUnreadReplyOnTheDirectPath: if user code keeps go-redis from reading a reply, the process ends, before another command can get it as
// its own. If user code ends a command otherwise, only that one fails.
func TestUnreadReplyOnTheDirectPath(t *testing.T) {
	t.Parallel()
	for way, act := range ways {
		for place, want := range places {
			for _, poolSize := range []int{2, 10} {
				t.Run(fmt.Sprint(way, " in ", place, ", ", poolSize), func(t *testing.T) {
					t.Parallel()
					trap := &trap{act: act}
					_, e, died := diesAt(t, place, trap, poolSize)
					e.UseDirectPath()
					defer e.Close(time.Second)
					for i := range 50 {
						text, trapped := fmt.Sprint(i), i == 20
						trap.armed.Store(trapped)
						reply, err := askDirectly(t, e, text)
						if dies := len(died) == 1; dies != (trapped && want.unread) {
							t.Fatalf("command %d: dies = %v, %v, %v", i, dies, reply, err)
						} else if dies {
							return
						}
						if (err != nil) != trapped || err == nil && reply != text {
							t.Fatalf("%v, %v, want %s or the end by the trap, which is armed: %v", reply, err, text, trapped)
						}
					}
				})
			}
		}
	}
}

// TestUnreadRepliesOfABatch is the same for batches, whatever the server has answered.
func TestUnreadRepliesOfABatch(t *testing.T) {
	t.Parallel()
	scripts := map[string]*Script{
		"text": echoScript, "nil": NewScript("return nil"), "error": NewScript("return redis.error_reply('ERR no')"), "unknown": NewScript("return ARGV[1] --"),
	}
	for place, want := range places {
		for way, act := range ways {
			for _, size := range []int{1, 3} {
				for answer, script := range scripts {
					t.Run(fmt.Sprint(way, " in ", place, ", batch of ", size, ", answer ", answer), func(t *testing.T) {
						t.Parallel()
						trap := &trap{act: act}
						rdb, e, died := diesAt(t, place, trap, 10)
						if answer != "unknown" {
							_ = rdb.ScriptLoad(t.Context(), script.Source)
						}
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
						if dies := len(died) == 1; dies != want.unread {
							t.Fatalf("dies = %v", dies)
						}
						for _, c := range batch {
							if way == "panic" && !want.unread && !errors.Is(c.Err, ErrPanic) {
								t.Errorf("error %v", c.Err)
							}
						}
					})
				}
			}
		}
	}
}

// lastAloneHook is a hook that sends the last command of a pipeline in one of its own, and arms the trap for it.
type lastAloneHook struct{ trappedHook }

func (h lastAloneHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		armed := h.trap.armed.Swap(false)
		err := next(ctx, cmds[:len(cmds)-1])
		h.trap.armed.Store(armed)
		return errors.Join(err, next(ctx, cmds[len(cmds)-1:]))
	}
}

// TestUnreadRepliesOfOthers is the same for what is no script: WAIT, the inspection of the server, and lists.
func TestUnreadRepliesOfOthers(t *testing.T) {
	t.Parallel()
	for name, send := range map[string]func(rdb *redis.Client, e *Executor, trap *trap){
		"WAIT": func(rdb *redis.Client, e *Executor, trap *trap) {
			rdb.AddHook(lastAloneHook{trappedHook{trap}})
			c := NewCommand(echoScript, []string{"key"}, "text")
			c.Ack = Ack{Replicas: 1, Timeout: time.Millisecond}
			e.sendRecovered([]*Command{c})
		},
		"inspection": func(_ *redis.Client, e *Executor, _ *trap) {
			_ = (&SettingsCheck{Exec: e, Logger: slog.Default()}).inspectSetup(context.Background())
		},
		"list": func(_ *redis.Client, e *Executor, _ *trap) {
			_, _ = e.AskServer(context.Background(), nil, []any{"info"}, []any{"scan", "0"})
		},
	} {
		for way, act := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				t.Parallel()
				trap := &trap{act: act}
				rdb, e, died := diesAt(t, "read", trap, 10)
				e.background.Recovered = func(call func()) {
					defer func() { _ = recover() }()
					call()
				}
				_ = rdb.ScriptLoad(t.Context(), echoScript.Source)
				trap.armed.Store(true)
				done := make(chan struct{})
				go func() {
					defer close(done)
					send(rdb, e, trap)
				}()
				<-done
				if trap.armed.Load() || len(died) != 1 {
					t.Errorf("the trap is still armed: %v; dies = %v", trap.armed.Load(), len(died) == 1)
				}
			})
		}
	}
}

// stubborn is an error whose text never comes.
type stubborn struct{}

func (stubborn) Error() string { select {} }

// TestDie: the process ends, and shows where the user's code is, whatever the panic was.
func TestDie(t *testing.T) {
	t.Parallel()
	causes := map[string]struct {
		act   func()
		place string
		says  string
	}{
		"string": {func() { panic("trap") }, "read", "trap"},
		"index":  {func() { _ = []int{}[len(os.Args)] }, "read", "index out of range"},
		"Goexit": {runtime.Goexit, "read", "runtime.Goexit"},
		// Not while a reply is read: since its version 9.23, go-redis itself asks for the text there, and waits for it.
		"stubborn": {func() { panic(stubborn{}) }, "report", "transport.stubborn"},
	}
	const asked = "HOLDFAST_TEST_DIE"
	if cause, ok := causes[os.Getenv(asked)]; ok {
		trap := &trap{act: cause.act}
		_, e, _ := diesAt(t, cause.place, trap, 10)
		e.die = die
		trap.armed.Store(true)
		_, _ = e.Do(context.Background(), echoScript, []string{"key"}, "text")
		return
	}
	for name, cause := range causes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDie$")
			cmd.Env = append(os.Environ(), asked+"="+name)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 2 || !bytes.Contains(out, []byte("a reply may be unread: ")) ||
				!bytes.Contains(out, []byte(cause.says)) || !bytes.Contains(out, []byte("(*trap).spring")) {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}
