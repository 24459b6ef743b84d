package asynq_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// The files case_*_test.go tell the ways in which asynq runs one task twice, or beside itself, on real servers. Each is
// told behind a guard, and without one, which has to show the duplicate.
//
//	A  a timeout that the handler does not heed     case_timeout_test.go
//	B  success after the deadline                   case_timeout_test.go
//	C  cancellation of a task, or of BaseContext    case_cancellation_test.go
//	D  shutdown                                     case_shutdown_test.go
//	E  a lost acknowledgement                       case_lost_ack_test.go
//	F  partition                                    case_partition_test.go
//	G  a stale lease, or a clock that is wrong      case_stale_lease_test.go
//	H  two recoverers                               case_recoverers_test.go
//	I  one ID in two queues                         case_two_queues_test.go
//	J  a stalled heartbeat                          case_heartbeat_test.go
//	K  crash                                        case_crash_test.go
//	L  Unique for too short a time                  case_unique_test.go
//	M  producers that enqueue twice                 case_producers_test.go
//	O  a group that is aggregated twice             case_aggregation_test.go
//	P  panic and Goexit                             case_panic_test.go
//	R  a task lost on its way to the worker         case_lost_task_test.go
//
// Two are not among them. N, the lock of asynq's Unique which stays behind, keeps tasks from being enqueued: no guard
// of handlers sees anything of it. Q, a Redis that loses what it has acknowledged, loses records with it: nothing that
// is kept in Redis can help, only WAIT, noeviction and a sink that refuses smaller tokens, which case F shows.

// story is one way to run a task twice.
type story struct {
	// key is the key of the guard, ByTaskID if nil.
	key     asynqlock.KeyFunc
	options []asynqlock.Option
	// about is the thing of which the outcome is told, "7" if empty.
	about string
	tell  func(s *stage)
	// once is what comes of it behind Once, exclusive behind Exclusive, and baseline without a guard. What is zero is not
	// told. Where the first worker still reaches asynq, exclusive has one effect or two: the first worker's acknowledgement
	// deletes the task if that task is active again at this moment, although the second delivery was deferred.
	once, exclusive, baseline outcome
}

// outcome is how often the thing was done, and by how many handlers at most at the same time.
type outcome struct{ done, most int }

// thing is what tasks of stories are about, unless they have more than one.
const thing = "7"

// orderOf returns what a task is about.
func orderOf(t *asynq.Task) string {
	var payload struct{ Order string }
	_ = json.Unmarshal(t.Payload(), &payload)
	return payload.Order
}

// guarding is what a stage has in front of its handlers.
type guarding string

const (
	byOnce      guarding = "once"
	byExclusive guarding = "exclusive"
	byNobody    guarding = "baseline"
)

// play tells a story in all ways, at the same time.
func play(t *testing.T, told story) {
	t.Parallel()
	for how, want := range map[guarding]outcome{
		byOnce: told.once, byExclusive: told.exclusive, byNobody: told.baseline,
	} {
		if want == (outcome{}) {
			continue
		}
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			s := &stage{shop: newShop(t), story: &told, how: how, gate: newGate(), turns: map[string][]*turn{}}
			defer s.sweep()
			told.tell(s)
			s.sweep()
			s.check(want)
		})
	}
}

// stage is where a story is told.
type stage struct {
	*shop
	story *story
	how   guarding
	runs  asynqlock.Runs // of all servers
	gate  gate           // lets handlers continue

	// handle is the handler of all servers. Nil takes effect at once.
	handle func(r *turn) error

	mu      sync.Mutex
	turns   map[string][]*turn // of each thing
	away    []error            // why deliveries were turned away without running; nil for replayed ones
	retried []int              // counts that deliveries came with
}

// check compares what has come of the story. Only Once says how often at most something is done, and without a guard
// more at the same time are fine too.
func (s *stage) check(want outcome) {
	s.t.Helper()
	done, most := s.effects.of(s.about())
	if s.how != byOnce {
		done = min(done, want.done)
	}
	if !s.guarded() {
		most = min(most, want.most)
	}
	if got := (outcome{done, most}); got != want {
		s.t.Errorf("done, and most at the same time: %v, want %v", got, want)
	}
}

// guarded reports whether there is a guard at all.
func (s *stage) guarded() bool { return s.how != byNobody }

// turn is one run of the handler.
type turn struct {
	context.Context                 // the handler's
	asynq           context.Context // the one that the guard got
	stage           *stage
	thing           string
	number          int // from 1, for the thing
	did             bool
	ended           bool
}

// effect is what must not happen twice.
func (r *turn) effect() { r.did = true }

// end counts the run, when it is over.
func (r *turn) end() {
	if !r.ended {
		r.ended = true
		r.stage.effects.end(r.thing, r.did)
	}
}

// await waits for the gate, whatever the context says.
func (r *turn) await() { r.stage.gate.wait() }

// wonted is what most handlers of stories do: the first does not heed its context and waits for the gate; further ones
// are quick.
func wonted(r *turn) error {
	if r.number == 1 {
		r.await()
	}
	r.effect()
	return nil
}

type asynqKey struct{}

// outermost lets handlers see the context that asynq gave, and notes what it came with.
func (s *stage) outermost(next asynq.Handler) asynq.Handler {
	return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		n, _ := asynq.GetRetryCount(ctx)
		s.mu.Lock()
		s.retried = append(s.retried, n)
		s.mu.Unlock()
		return next.ProcessTask(context.WithValue(ctx, asynqKey{}, ctx), t)
	})
}

// process is the handler.
func (s *stage) process(ctx context.Context, t *asynq.Task) error {
	r := &turn{Context: ctx, asynq: ctx.Value(asynqKey{}).(context.Context), stage: s, thing: orderOf(t)}
	s.effects.begin(r.thing)
	defer r.end()
	s.mu.Lock()
	s.turns[r.thing] = append(s.turns[r.thing], r)
	r.number = len(s.turns[r.thing])
	s.mu.Unlock()
	if s.handle == nil {
		r.effect()
		return nil
	}
	return s.handle(r)
}

// hooks note what is turned away.
func (s *stage) hooks() core.Option {
	return core.WithHooks(core.Hooks{NotRun: func(_ context.Context, n core.NotRun) {
		if n.Reason != asynqlock.ReasonEnded {
			s.turnedAway(n.Err)
		}
	}})
}

// guard is the middleware of a server whose clients are its own.
func (s *stage) guard(locks *core.Client) asynq.MiddlewareFunc {
	key := s.story.key
	if key == nil {
		key = asynqlock.ByTaskID()
	}
	options := append([]asynqlock.Option{soon, asynqlock.WithRuns(&s.runs)}, s.story.options...)
	if s.how == byExclusive {
		return asynqlock.Exclusive(locks.Mutex, key, options...)
	}
	return asynqlock.Once(locks, key, options...)
}

func (s *stage) turnedAway(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = append(s.away, why)
}

// turn returns the nth run for the thing once it has begun.
func (s *stage) turn(n int) *turn {
	s.t.Helper()
	return s.turnOf(s.about(), n)
}

// turnOf is turn for another thing.
func (s *stage) turnOf(thing string, n int) (r *turn) {
	s.t.Helper()
	testkit.Eventually(s.t, within, fmt.Sprintf("run %d for %s", n, thing), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if turns := s.turns[thing]; len(turns) >= n {
			r = turns[n-1]
		}
		return r != nil
	})
	return r
}

// about is the thing of the story.
func (s *stage) about() string { return cmp.Or(s.story.about, thing) }

// again returns once a task was delivered again while the run before the nth continued: it was deferred, or it is the
// nth.
func (s *stage) again(n int) {
	s.t.Helper()
	testkit.Eventually(s.t, within, "a task to come again", func() bool { return s.begun() >= n || s.deferrals() > 0 })
}

// deferrals counts deliveries that had to come again because of another one.
func (s *stage) deferrals() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, why := range s.away {
		if errors.Is(why, core.ErrInProgress) || errors.Is(why, core.ErrNotAcquired) {
			n++
		}
	}
	return n
}

// begun counts the runs for the thing.
func (s *stage) begun() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.turns[s.about()])
}

// burned returns the largest count of retries that a delivery came with.
func (s *stage) burned() (most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.retried {
		most = max(most, n)
	}
	return most
}

// finish lets handlers continue and returns once there is nothing left to do.
func (s *stage) finish() {
	s.t.Helper()
	s.gate.open()
	s.awaitEmpty()
}

// awaitOpen returns once somebody else has opened a gate.
func (s *stage) awaitOpen(g gate, what string) {
	s.t.Helper()
	select {
	case <-g.opened:
	case <-time.After(within):
		s.t.Fatalf("not within %v: %s", within, what)
	}
}

// sweep waits for all handlers, also those that asynq has forgotten.
func (s *stage) sweep() {
	s.gate.open()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := s.runs.Drain(ctx); err != nil {
		s.t.Error(err)
	}
	testkit.Eventually(s.t, within, "the handlers to end", func() bool { return s.effects.busy() == 0 })
}

// busy counts the handlers that run.
func (e *effects) busy() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, running := range e.running {
		n += running
	}
	return n
}

// gate is closed until it is opened, by whoever is first.
type gate struct {
	opened chan struct{}
	open   func()
}

func newGate() gate {
	opened := make(chan struct{})
	return gate{opened, sync.OnceFunc(func() { close(opened) })}
}

func (g gate) wait() { <-g.opened }

// process is one that runs a server, with clients of its own.
type process struct {
	cfg   asynq.Config
	queue *redis.Client // asynq's
	locks *redis.Client
}

// start starts the server of another process.
func (s *stage) start(edit ...func(*process)) *asynq.Server {
	s.t.Helper()
	p := &process{cfg: config(), queue: s.redis.Client(), locks: s.redis.Client()}
	for _, change := range edit {
		change(p)
	}
	mux := asynq.NewServeMux()
	mux.Use(s.outermost)
	if s.guarded() {
		asynqlock.Configure(&p.cfg)
		mux.Use(s.guard(clientOf(s.t, p.locks, core.WithLogger(nil), s.hooks())))
	}
	mux.HandleFunc(kind, s.process)
	server := asynq.NewServerFromRedisClient(p.queue, p.cfg)
	if err := server.Start(mux); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(server.Shutdown)
	return server
}

// leisurely lets failed tasks come again so late that a test can see them wait.
func leisurely(p *process) {
	p.cfg.RetryDelayFunc = func(int, error, *asynq.Task) time.Duration { return 3 * time.Second }
}

// tap lets a test see what asynq sends, change it, or answer in the place of Redis.
type tap func(cmd redis.Cmder, send func() error) error

// tapped gives asynq's client a tap.
func tapped(fn tap) func(*process) {
	return func(p *process) { p.queue.AddHook(fn) }
}

// DialHook leaves connections as they are.
func (tap) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook leaves pipelines as they are: asynq's servers send none.
func (tap) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook { return next }

// ProcessHook hands commands to the tap.
func (fn tap) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return fn(cmd, func() error { return next(ctx, cmd) })
	}
}

// scriptKeys returns the keys of a script of asynq without their prefix, in one string: "active lease t:<id> ...".
// Scripts are told apart by them.
func scriptKeys(cmd redis.Cmder) string {
	args := cmd.Args()
	if !strings.HasPrefix(cmd.Name(), "eval") || len(args) < 3 {
		return ""
	}
	n, _ := args[2].(int)
	keys := make([]string, n)
	for i := range keys {
		_, keys[i], _ = strings.Cut(fmt.Sprint(args[3+i]), "}:")
	}
	return strings.Join(keys, " ")
}

// isDequeue, isDone and so on tell what asynq does.
func isDequeue(cmd redis.Cmder) bool {
	return strings.HasPrefix(scriptKeys(cmd), "pending paused active lease")
}

func isDone(cmd redis.Cmder) bool { return strings.HasPrefix(scriptKeys(cmd), "active lease ") }

func isRetry(cmd redis.Cmder) bool { return strings.Contains(scriptKeys(cmd), " active lease retry ") }

func isDeleteSet(cmd redis.Cmder) bool {
	return strings.HasPrefix(scriptKeys(cmd), "g:") && strings.HasSuffix(scriptKeys(cmd), " aggregation_sets") &&
		len(cmd.Args()) == 6
}

// isExtendLease tells the heartbeat of tasks.
func isExtendLease(cmd redis.Cmder) bool {
	return cmd.Name() == "zadd" && strings.HasSuffix(fmt.Sprint(cmd.Args()[1]), "}:lease")
}

// beats counts the heartbeats of tasks of a queue that have reached Redis.
func beats(queue string, n *atomic.Int32) tap {
	return func(cmd redis.Cmder, send func() error) error {
		err := send()
		if isExtendLease(cmd) && cmd.Args()[1] == leases(queue) {
			n.Add(1)
		}
		return err
	}
}

// leases is where asynq keeps when the leases of tasks end.
func leases(queue string) string { return "asynq:{" + queue + "}:lease" }

// expired reports whether asynq's lease of a task is one that the next recoverer takes.
func (s *stage) expired(queue, id string) bool {
	score, err := s.redis.Client().ZScore(context.Background(), leases(queue), id).Result()
	return err == nil && score == 0
}

// expire lets asynq's lease of a task have ended long ago: the recoverer of the server that starts next takes it.
func (s *stage) expire(queue, id string) {
	s.t.Helper()
	lease := redis.ZAddArgs{XX: true, Ch: true, Members: []redis.Z{{Member: id}}}
	if n, err := s.redis.Client().ZAddArgs(context.Background(), leases(queue), lease).Result(); n != 1 {
		s.t.Fatalf("%s has no lease: %d, %v", id, n, err)
	}
}

// stray makes a task that a worker has taken from the queue, but will not work at: it died just then.
func (s *stage) stray(t *asynq.Task, opts ...asynq.Option) *asynq.TaskInfo {
	s.t.Helper()
	info := s.enqueue(t, opts...)
	ctx, rdb := context.Background(), s.redis.Client()
	const queue = "asynq:{default}:"
	_, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.RPopLPush(ctx, queue+"pending", queue+"active")
		p.HSet(ctx, queue+"t:"+info.ID, "state", "active")
		p.HDel(ctx, queue+"t:"+info.ID, "pending_since")
		p.ZAdd(ctx, queue+"lease", redis.Z{Member: info.ID})
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return info
}

// record returns the key of the only record.
func (s *stage) record() string {
	s.t.Helper()
	records := s.redis.Client().Keys(context.Background(), "holdfast:once:{lock:asynq:*}").Val()
	if len(records) != 1 {
		s.t.Fatalf("%d records: %v", len(records), records)
	}
	return records[0]
}

// awaitRenewal returns once the lease of the only record was renewed.
func (s *stage) awaitRenewal() {
	s.t.Helper()
	ctx, rdb, record := context.Background(), s.redis.Client(), s.record()
	before := rdb.HGet(ctx, record, "deadline").Val()
	testkit.Eventually(s.t, within, "the lease to be renewed", func() bool {
		return rdb.HGet(ctx, record, "deadline").Val() != before
	})
}

// state returns where asynq has a task, 0 if it has none of that ID.
func (s *stage) state(id string) asynq.TaskState {
	info, err := s.inspector.GetTaskInfo("default", id)
	if err != nil {
		return 0
	}
	return info.State
}

// awaitState returns once asynq has the task there.
func (s *stage) awaitState(id string, want asynq.TaskState) {
	s.t.Helper()
	testkit.Eventually(s.t, within, "the task to be "+want.String(), func() bool { return s.state(id) == want })
}
