//go:build unix

package asynqworker_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/storms/asynqworker"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var long = flag.Bool("tasks", false, "also the storms that take minutes, with the times that asynq has")

// within bounds what must happen, however slow the machine.
const within = 60 * time.Second

const (
	orders = 200
	copies = 5 // of the task of an order
)

// storm is some servers with the same tasks, and the table of what they do.
type storm struct {
	t         *testing.T
	redis     *testkit.Server
	table     *table
	order     asynqworker.Order // what all servers are told
	members   []*member
	inspector *asynq.Inspector
	rdb       *redis.Client
	producing sync.WaitGroup
	produced  error
	began     time.Time
}

// newStorm has no servers yet. They are told what edit makes of the order.
func newStorm(t *testing.T, edit func(*asynqworker.Order), opts ...testkit.Option) *storm {
	t.Helper()
	s := &storm{t: t, redis: testkit.Start(t, opts...), table: newTable(t), began: time.Now()}
	s.order = asynqworker.Order{
		Network: s.redis.Network(), Addr: s.redis.Addr(), Table: s.table.socket(), Concurrency: 20,
		Least: 10 * time.Millisecond, Most: 400 * time.Millisecond, TTL: 4 * time.Second,
		Defaults: *long,
	}
	if edit != nil {
		edit(&s.order)
	}
	s.rdb = s.redis.Client()
	s.inspector = asynq.NewInspectorFromRedisClient(s.rdb)
	t.Cleanup(func() {
		s.producing.Wait()
		for _, m := range s.members {
			_ = m.end(false)
		}
	})
	return s
}

// join starts servers, and returns when they are up.
func (s *storm) join(names ...string) *storm {
	s.t.Helper()
	for _, name := range names {
		m := &member{storm: s, name: name}
		s.members = append(s.members, m)
		m.start()
	}
	for _, name := range names {
		testkit.Eventually(s.t, within, name+" to be up", func() bool { return s.table.isUp(name) })
	}
	return s
}

func (s *storm) member(name string) *member {
	s.t.Helper()
	for _, m := range s.members {
		if m.name == name {
			return m
		}
	}
	s.t.Fatalf("no server %s", name)
	return nil
}

// task is the task of an order.
func task(order int) *asynq.Task {
	return asynq.NewTask(asynqworker.Kind, fmt.Appendf(nil, `{"order":"%d"}`, order))
}

// produce enqueues the tasks of all orders, in a random sequence and over some seconds, beside what the test does next.
// Each order has tasks with IDs of their own, and two with one ID, which asynq knows apart by their queue. An
// enqueueing that fails is repeated with its ID, as a careful producer does: that may be one more.
func (s *storm) produce(copies int) {
	s.t.Helper()
	client := asynq.NewClient(asynq.RedisClientOpt{Network: s.redis.Network(), Addr: s.redis.Addr()})
	type delivery struct{ order, copy int }
	var all []delivery
	for order := range orders {
		for copy := range copies {
			all = append(all, delivery{order, copy})
		}
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	s.producing.Go(func() {
		defer client.Close()
		for _, d := range all {
			queue, id := "default", fmt.Sprintf("%d/%d", d.order, d.copy)
			if d.copy == 0 && copies > 1 {
				queue, id = "second", fmt.Sprintf("%d/1", d.order)
			}
			opts := []asynq.Option{asynq.Queue(queue), asynq.TaskID(id)}
			if d.copy > 2 {
				opts = append(opts, asynq.ProcessIn(rand.N(4*time.Second)))
			}
			if err := enqueue(client, task(d.order), opts...); err != nil {
				s.produced = fmt.Errorf("order %d, copy %d: %w", d.order, d.copy, err)
				return
			}
		}
	})
}

// enqueue continues until Redis has the task, or had it.
func enqueue(client *asynq.Client, t *asynq.Task, opts ...asynq.Option) (err error) {
	for deadline := time.Now().Add(within); time.Now().Before(deadline); {
		_, err = client.Enqueue(t, opts...)
		if err == nil || errors.Is(err, asynq.ErrTaskIDConflict) {
			return nil
		}
	}
	return err
}

// await returns when there are so many effects.
func (s *storm) await(effects int) {
	s.t.Helper()
	testkit.Eventually(s.t, within, fmt.Sprintf("%d effects", effects), func() bool {
		n, _, _ := s.table.sums()
		return n >= effects
	})
}

// queued are the tasks in the queues.
type queued struct {
	all, archived int
	active        int // in work, as asynq believes
}

func (s *storm) queued() (q queued, err error) {
	for queue := range asynqworker.Queues {
		info, err := s.inspector.GetQueueInfo(queue)
		if err != nil {
			return q, err
		}
		q.all += info.Size
		q.archived += info.Archived
		q.active += info.Active
	}
	return q, nil
}

// settle returns when the queues are empty but for archived tasks. Where asynq has lost sight of tasks, it starts
// servers that look for those at once; in the long storms it lets asynq take the time it takes.
func (s *storm) settle() {
	s.t.Helper()
	s.producing.Wait()
	if s.produced != nil {
		s.t.Fatal(s.produced)
	}
	const lookEvery = 20 * time.Millisecond
	limit := within
	if *long {
		limit = 10 * time.Minute
	}
	lost, rescues := time.Duration(0), 0
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); <-look.C {
		q, err := s.queued()
		switch {
		case err == nil && q.all == q.archived:
			return
		case err != nil || q.active == 0 || q.active < q.all-q.archived || s.table.atWork() > 0:
			lost = 0
			continue
		}
		if lost += lookEvery; lost > time.Second && !*long {
			lost = 0
			rescues++
			s.rescue(fmt.Sprintf("rescue %d", rescues))
		}
	}
	q, err := s.queued()
	s.t.Fatalf("the queues are not empty after %v: %+v, %v", limit, q, err)
}

// rescue lets a new server run again at once what has been lost sight of: to asynq, all tasks in work seem to be lost,
// also those that are not, so that these are run by two servers.
func (s *storm) rescue(name string) {
	s.t.Helper()
	ctx := context.Background()
	for queue := range asynqworker.Queues {
		key := "asynq:{" + queue + "}:lease"
		ids, err := s.rdb.ZRange(ctx, key, 0, -1).Result()
		for _, id := range ids {
			err = errors.Join(err, s.rdb.ZAddXX(ctx, key, redis.Z{Score: 1, Member: id}).Err())
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	s.join(name)
}

// end stops the servers in good order.
func (s *storm) end() {
	s.t.Helper()
	for _, m := range s.members {
		if err := m.end(true); err != nil {
			s.t.Errorf("server %s: %v", m.name, err)
		}
	}
}

// check is what must be true after any storm: every order has one effect and one record that says so, and no task is
// left. It tells the figures.
func (s *storm) check() figures {
	s.t.Helper()
	effects, had, more := s.table.sums()
	left, err := s.queued()
	if err != nil {
		s.t.Fatal(err)
	}
	seen, strange := s.table.seen()
	s.t.Logf("%d orders x %d tasks in %v: %d effects; %+v; %d replayed, %d deferred, %d failures of Redis; "+
		"%d archived, %d left", orders, copies, time.Since(s.began).Round(100*time.Millisecond), effects, seen,
		s.table.count(asynqworker.Replayed), s.table.count(asynqworker.Deferred), s.table.count(asynqworker.Failed),
		left.archived, left.all)
	if effects != orders || had != orders || more != 0 {
		s.t.Errorf("%d effects, for %d orders, for %d of them more than one; want one for each of %d", effects, had, more,
			orders)
	}
	if left.all != 0 {
		s.t.Errorf("%d tasks are left, %d of them archived, want none", left.all, left.archived)
	}
	if seen.late != 0 || seen.twice != 0 || len(strange) > 0 {
		s.t.Errorf("%d runs began though an earlier one was recorded, %d were recorded a second time: %+v", seen.late,
			seen.twice, strange[:min(len(strange), 5)])
	}
	s.mustBeRecorded()
	return seen
}

// mustBeRecorded looks at the record of every order.
func (s *storm) mustBeRecorded() {
	s.t.Helper()
	locks, err := core.New(s.rdb)
	if err != nil {
		s.t.Fatal(err)
	}
	defer locks.Close()
	guard, err := asynqworker.NewGuard(locks)
	if err != nil {
		s.t.Fatal(err)
	}
	states := make(map[core.State]int)
	for order := range orders {
		t := task(order)
		info := &asynq.TaskInfo{Type: t.Type(), Payload: t.Payload()}
		record, err := guard.Peek(s.t.Context(), info)
		if err != nil {
			s.t.Fatal(err)
		}
		states[record.State]++
	}
	if states[core.StateCompleted] != orders {
		s.t.Errorf("records: %v, want %d completed", states, orders)
	}
}
