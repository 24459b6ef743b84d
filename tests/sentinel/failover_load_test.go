package sentinel_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// stay is a stay in the critical section of a name, by the clock of the machine, which all servers have too. It ends
// when the holder stops to believe in its lease.
type stay struct {
	coretest.Section
	Name  string
	Taken bool   // the lock went while the lease was valid
	Err   string // of a call, if it is none that an outage may cause; then the rest is empty
}

const (
	// followTTL outlasts a failover, longHold too. After a cut of the replica, crash waits for the next grant, and so for up to
	// longHold. Sentinels do not promote a replica that was cut off ten times down-after, here 10 s, before the master was.
	followTTL = 15 * time.Second
	longHold  = 6 * time.Second
	// ackTime is what replicas get.
	ackTime = 200 * time.Millisecond
)

// followUntilTold takes locks by way of Sentinel, until the process's input ends. Half of the goroutines hold theirs
// for longer than a failover takes; some take names that were never taken before, which no lost release keeps busy. A
// grant counts if so many replicas acknowledge it.
func followUntilTold(sentinels []string, say func(any), goroutines, replicas int) error {
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: testkit.MasterName, SentinelAddrs: sentinels})
	defer rdb.Close()
	opts := []core.Option{core.WithTTL(followTTL), core.WithLogger(nil)}
	if replicas > 0 {
		opts = append(opts, core.WithReplicaAck(replicas, ackTime))
	}
	locks, err := core.New(rdb, opts...)
	if err != nil {
		return err
	}
	defer locks.Close()
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	var all sync.WaitGroup
	for who := range goroutines {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name, hold := fmt.Sprint("short", who/4), 10*time.Millisecond
				switch who % 4 {
				case 0:
					name = fmt.Sprint("fresh", os.Getpid(), "-", who, "-", i)
				case 1, 3:
					name, hold = fmt.Sprint("long", who%8/2), longHold
				}
				follow(ctx, locks.Mutex(name), hold, say)
			}
		})
	}
	all.Wait()
	return nil
}

func follow(ctx context.Context, lock *core.Lock, hold time.Duration, say func(any)) {
	bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	lease, err := lock.Lock(bounded)
	if err != nil {
		if !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrNotAcquired) {
			say(stay{Name: lock.Name(), Err: "lock: " + err.Error()})
		}
		return
	}
	s := stay{Name: lock.Name(), Section: coretest.Section{Token: lease.Token(), From: time.Now().UnixMicro()}}
	select {
	case <-lease.Done():
	case <-ctx.Done():
	case <-time.After(hold):
	}
	s.To = time.Now().UnixMicro()
	until := lease.ValidUntil()
	if cause := context.Cause(lease.Context()); cause != nil {
		s.Taken = strings.Contains(cause.Error(), "taken over")
	}
	err = lease.Unlock(context.Background())
	switch {
	case errors.Is(err, core.ErrNotHeld):
		s.Taken = s.Taken || time.Now().Before(until)
	case err != nil && !errors.Is(err, core.ErrUnavailable):
		say(stay{Name: lock.Name(), Err: "unlock: " + err.Error()})
	}
	say(s)
}

// followers are processes that follow the master, and what they have said.
type followers struct {
	workers []*coretest.Worker
	heard   sync.WaitGroup

	mu    sync.Mutex
	stays []stay
}

func startFollowers(t *testing.T, s *testkit.Sentinel, processes, goroutines, replicas int) *followers {
	t.Helper()
	var addrs []string
	for _, sentinel := range s.Sentinels {
		addrs = append(addrs, sentinel.Addr())
	}
	f := &followers{}
	for range processes {
		w := coretest.StartWorker(t, fmt.Sprint("follow sentinel ", strings.Join(addrs, ","), " ", goroutines, " ", replicas))
		f.workers = append(f.workers, w)
		f.heard.Go(func() {
			for line := range w.Lines {
				var s stay
				if err := json.Unmarshal(line, &s); err != nil || s.Err != "" {
					t.Errorf("worker says %q", line)
					continue
				}
				f.mu.Lock()
				f.stays = append(f.stays, s)
				f.mu.Unlock()
			}
		})
	}
	return f
}

// since counts the stays that began after that time, and returns when the first of them did.
func (f *followers) since(at time.Time) (n int, first time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.stays {
		if from := time.UnixMicro(s.From); from.After(at) {
			if n++; n == 1 || from.Before(first) {
				first = from
			}
		}
	}
	return n, first
}

func (f *followers) awaitGrants(t *testing.T, since time.Time, n int) {
	t.Helper()
	testkit.Eventually(t, 3*coretest.Within, "grants", func() bool { got, _ := f.since(since); return got >= n })
}

func (f *followers) finish(t *testing.T) []stay {
	t.Helper()
	for _, w := range f.workers {
		w.Finish(t)
	}
	f.heard.Wait()
	return f.stays
}

// crash kills the master after its replica was cut off from it, so that it has granted what no replica knows.
func crash(t *testing.T, s *testkit.Sentinel, replicas int) time.Time {
	t.Helper()
	old := s.Master()
	replica := s.Servers[0]
	if replica == old {
		replica = s.Servers[1]
	}
	replica.CutReplication()
	if cut := time.Now(); replicas == 0 {
		rdb := old.Client()
		testkit.Eventually(t, coretest.Within, "a grant that will be lost while it is held", func() bool {
			for i := range 4 {
				if coretest.TokenOf(t, rdb, fmt.Sprint("lock:long", i)) > cut.UnixMicro() {
					return true
				}
			}
			return false
		})
	} else {
		before := old.CommandStats()["wait"].Calls
		testkit.Eventually(t, coretest.Within, "the replica to be waited for", func() bool {
			return old.CommandStats()["wait"].Calls > before+10
		})
	}
	old.Kill()
	s.AwaitMaster(old)
	at := time.Now()
	replica.RestoreReplication()
	old.Restart()
	return at
}

// verdict is what came of failovers.
type verdict struct {
	stays, taken, overlaps, duplicates int
	outages                            map[string][]time.Duration // from the promotion to the first grant, by kind
}

func (v verdict) String() string {
	text := fmt.Sprintf("%d grants, %d lost, %d overlaps, %d duplicate tokens", v.stays, v.taken, v.overlaps, v.duplicates)
	for _, kind := range slices.Sorted(maps.Keys(v.outages)) {
		o := v.outages[kind]
		text += fmt.Sprintf("; %d %s, first grant after promotion p50 %v, max %v",
			len(o), kind, coretest.Quantile(o, 0.5).Round(time.Millisecond), coretest.Quantile(o, 1).Round(time.Millisecond))
	}
	return text
}

// failOver lets processes take locks while the master is replaced over and over.
func failOver(t *testing.T, times, replicas int) verdict {
	t.Helper()
	s := testkit.StartSentinel(t, testkit.DownAfter(time.Second),
		testkit.Config("repl-diskless-sync", "yes"), testkit.Config("repl-diskless-sync-delay", "0"))
	f := startFollowers(t, s, 3, 8, replicas)
	f.awaitGrants(t, time.Time{}, 20)
	v := verdict{outages: make(map[string][]time.Duration)}
	for range times {
		for kind, replace := range map[string]func() time.Time{
			"planned": func() time.Time { s.Failover(); return time.Now() },
			"crashes": func() time.Time { return crash(t, s, replicas) },
		} {
			at := replace()
			f.awaitGrants(t, at, 20)
			_, first := f.since(at)
			v.outages[kind] = append(v.outages[kind], first.Sub(at))
			s.AwaitSettled()
			f.awaitGrants(t, time.Now(), 10)
		}
	}
	v.judge(t, f.finish(t), replicas > 0)
	return v
}

// judge counts what must not be. What is exclusive must also have tokens in the order of entry.
func (v *verdict) judge(t *testing.T, stays []stay, exclusive bool) {
	t.Helper()
	sections, tokens := make(map[string][]coretest.Section), make(map[string]map[int64]bool)
	v.stays = len(stays)
	for _, s := range stays {
		if s.Taken {
			v.taken++
		}
		if tokens[s.Name] == nil {
			tokens[s.Name] = make(map[int64]bool)
		}
		if tokens[s.Name][s.Token] {
			v.duplicates++
		}
		tokens[s.Name][s.Token] = true
		sections[s.Name] = append(sections[s.Name], s.Section)
	}
	for name, all := range sections {
		found := coretest.Violations(all)
		if exclusive {
			for _, violation := range found {
				t.Errorf("%s: %s", name, violation)
			}
		}
		slices.SortFunc(all, func(a, b coretest.Section) int { return cmp.Compare(a.From, b.From) })
		var end int64
		for _, s := range all {
			if s.From < end {
				v.overlaps++
			}
			end = max(end, s.To)
		}
	}
	if v.duplicates > 0 {
		t.Errorf("%d tokens were given twice", v.duplicates)
	}
}

var failovers = flag.Int("failovers", 1, "let the masters of TestFailoverUnderLoad be replaced so often, in each way")

// TestFailoverUnderLoad replaces the master while three processes take locks: planned, and by SIGKILL after its
// replica was cut off. With an acknowledgement no grant is lost and no two are inside at once; the control without has to
// show that this could be seen. Tokens are never given twice in either.
func TestFailoverUnderLoad(t *testing.T) {
	t.Parallel()
	for name, replicas := range map[string]int{"acknowledged": 1, "control": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := failOver(t, *failovers, replicas)
			t.Log(v)
			if replicas > 0 && v.taken > 0 {
				t.Errorf("%d acknowledged grants were lost", v.taken)
			}
			if replicas == 0 && v.taken+v.overlaps == 0 {
				t.Error("no grant was lost: the check proves nothing")
			}
		})
	}
}

func longest(grants []time.Time) (gap time.Duration) {
	for i := 1; i < len(grants); i++ {
		gap = max(gap, grants[i].Sub(grants[i-1]))
	}
	return gap
}

func median(values []int64) int64 { return slices.Sorted(slices.Values(values))[len(values)/2] }
