package redlock_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

func TestRedlockRefusesNodes(t *testing.T) {
	t.Parallel()
	five := coretest.StartMasters(t, 5).Clients()
	again := func(i int) redis.UniversalClient { // another client of the same server
		return redis.NewClient(five[i].(*redis.Client).Options())
	}
	twin := again(3)
	t.Cleanup(func() { _ = twin.Close() })
	var none *redis.Client
	for name, nodes := range map[string][]redis.UniversalClient{
		"none":             nil,
		"one":              five[:1],
		"even":             five[:4],
		"nil":              {five[0], nil, five[1]},
		"nil pointer":      {five[0], none, five[1]},
		"same client":      {five[0], five[1], five[0]},
		"same server":      {five[3], five[1], twin},
		"more than one":    {five[0], five[1], redis.NewRing(&redis.RingOptions{})},
		"a whole Cluster":  {five[0], five[1], redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})},
		"of Sentinel":      {five[0], five[1], redis.NewFailoverClient(&redis.FailoverOptions{SentinelAddrs: []string{"127.0.0.1:1"}})},
		"same five, twice": append(slices.Clone(five), five...),
	} {
		r, err := core.NewRedlock(nodes)
		if r != nil {
			_ = r.Close()
		}
		coretest.WantErr(t, err, core.ErrInvalidOption)
		for _, node := range nodes {
			if node != nil && node != redis.UniversalClient(none) && !slices.Contains(five, node) {
				_ = node.Close()
			}
		}
		t.Logf("%s: %v", name, err)
	}
	for _, limit := range []time.Duration{0, -time.Second, time.Hour} {
		_, err := core.NewRedlock(five, core.WithNodeTimeout(limit))
		coretest.WantErr(t, err, core.ErrInvalidOption)
	}
	for _, least := range []time.Duration{-time.Second, 5} {
		_, err := core.NewRedlock(five, core.WithRestartDelay(least))
		coretest.WantErr(t, err, core.ErrInvalidOption)
	}
	for _, opt := range []core.Option{core.WithNodeTimeout(time.Second), core.WithRestartDelay(time.Second)} {
		_, err := core.New(five[0], opt)
		coretest.WantErr(t, err, core.ErrInvalidOption)
	}
}

// TestRedlockRestartDelayCoversEveryLease: no lease may last longer than the delay, however it is asked for.
func TestRedlockRestartDelayCoversEveryLease(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	const delay = time.Second
	three := coretest.StartMasters(t, 3)
	_, err := core.NewRedlock(three.Clients(), core.WithRestartDelay(delay)) // the default TTL is longer
	coretest.WantErr(t, err, core.ErrInvalidOption)
	r := three.Redlock(t, core.WithTTL(delay), core.WithRestartDelay(delay))
	m := r.Mutex("name")
	for _, opt := range []core.LockOption{core.WithTTL(2 * delay), core.WithFixedTTL(2 * delay), core.WithMinHold(2 * delay)} {
		_, err := m.TryLock(ctx, opt)
		coretest.WantErr(t, err, core.ErrInvalidOption)
		coretest.WantErr(t, r.Mutex("name", opt).Check(), core.ErrInvalidOption)
	}
	lease := coretest.MustLock(t, m)
	coretest.WantErr(t, lease.Extend(ctx, 2*delay), core.ErrInvalidOption)
	if err := lease.Extend(ctx, delay); err != nil {
		t.Error(err)
	}
	one := coretest.NewClient(t, three.Servers[0].Client()).Mutex("of one server", core.WithFixedTTL(delay))
	joint := coretest.MustLock(t, core.Multi(one, r.Mutex("member")))
	coretest.WantErr(t, joint.Extend(ctx, coretest.Long), core.ErrInvalidOption)
	if left := three.Looks[0].PTTL(ctx, "lock:of one server").Val(); left > delay {
		t.Errorf("a member was extended to %v, although another one refuses it", left)
	}
	coretest.Unlock(t, joint)
	coretest.Unlock(t, lease)
}

// TestRedlockDuplicateServerThatWasDown leads two clients to one server which is down when they are introduced. It must not get
// two votes later.
func TestRedlockDuplicateServerThatWasDown(t *testing.T) {
	t.Parallel()
	two := coretest.StartMasters(t, 2)
	servers := two.Servers
	servers[0].Kill()
	servers[1].Kill()
	nodes := append(two.Clients(), servers[0].Client())
	log := &coretest.Record{}
	r := coretest.NewRedlock(t, nodes, core.WithNodeTimeout(time.Second), core.WithLogger(coretest.TextLogger(log)))
	servers[0].Restart() // two of three clients lead to it
	if _, err := r.ForceUnlock(context.Background(), "name"); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("ForceUnlock with one server of two = %v", err)
	}
	_, err := r.Mutex("name").TryLock(context.Background())
	coretest.WantErr(t, err, core.ErrUnavailable)
	servers[1].Restart()
	coretest.Unlock(t, coretest.MustLock(t, r.Mutex("name")))
	if !strings.Contains(log.String(), "are the same server") {
		t.Errorf("nobody is told: %s", log)
	}
}

// TestRedlockReportsARefusingServer fills the memory of one server: otherwise it would go unnoticed until others fail.
func TestRedlockReportsARefusingServer(t *testing.T) {
	t.Parallel()
	three := coretest.StartMasters(t, 3)
	coretest.FillUp(three.Looks[1])
	log := &coretest.Record{}
	r := three.Redlock(t, core.WithLogger(coretest.TextLogger(log)))
	for range 2 {
		coretest.Unlock(t, coretest.MustLock(t, r.Mutex("name")))
	}
	testkit.Eventually(t, coretest.Within, "the log to tell", func() bool {
		return strings.Contains(log.String(), "refuses requests")
	})
	if n := strings.Count(log.String(), "node=2"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log)
	}
	three.AwaitHolders(t, "lock:name", 0)
}

// TestRedlockWithoutAMinority has two of five servers down, in each of the ways that a server can be down.
func TestRedlockWithoutAMinority(t *testing.T) {
	t.Parallel()
	for name, takeDown := range map[string]func(*testkit.Server){
		"killed": (*testkit.Server).Kill,
		"frozen": (*testkit.Server).Pause,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			five := coretest.StartMasters(t, 5)
			a, b := five.Redlock(t, core.WithNodeTimeout(time.Second)), five.Redlock(t)
			before := coretest.MustLock(t, a.Mutex("before"))
			five.AwaitHolders(t, "lock:before", 5) // where it arrives after its release, it was not held
			takeDown(five.Servers[1])
			takeDown(five.Servers[4])
			coretest.Unlock(t, before)
			lease := coretest.MustLock(t, a.Mutex("name"), core.WithTTL(9*time.Second))
			if lease.Token() <= before.Token() {
				t.Errorf("token %d after %d", lease.Token(), before.Token())
			}
			if _, err := b.Mutex("name").TryLock(context.Background()); !errors.Is(err, core.ErrNotAcquired) {
				t.Errorf("a second holder: %v", err)
			}
			inner := coretest.MustLockWith(t, lease.Context(), a.Mutex("name"))
			if inner.Token() != lease.Token() {
				t.Errorf("token %d on re-entry, want %d", inner.Token(), lease.Token())
			}
			coretest.Unlock(t, inner)
			coretest.AwaitRenewed(t, []*core.Lease{lease}, 9*time.Second)
			if err := lease.Extend(context.Background(), 15*time.Second); err != nil {
				t.Errorf("extend: %v", err)
			}
			waiting := coretest.LockLater(b.Mutex("name"))
			coretest.Unlock(t, lease)
			if err := coretest.Receive(t, waiting); err != nil {
				t.Errorf("waiter: %v", err)
			}
		})
	}
}

// TestRedlockWithoutAMajority has three of five servers frozen: no client gets a lock, a lease ends by itself, and Lock
// returns when its context ends.
func TestRedlockWithoutAMajority(t *testing.T) {
	t.Parallel()
	five := coretest.StartMasters(t, 5)
	r := five.Redlock(t, core.WithNodeTimeout(time.Second))
	lease := coretest.MustLock(t, r.Mutex("held"), core.WithTTL(2*time.Second))
	for _, s := range five.Servers[:3] {
		s.Pause()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	deadline, _ := ctx.Deadline()
	_, err := r.Mutex("name").Lock(ctx)
	t.Logf("Lock returned %v after its deadline: %v", time.Since(deadline), err)
	coretest.WantErr(t, err, core.ErrUnavailable)
	coretest.WantErr(t, err, context.DeadlineExceeded)
	_, err = r.Mutex("name").TryLock(context.Background())
	coretest.WantErr(t, err, core.ErrUnavailable)
	coretest.WaitFor(t, lease.Done(), "the lease to end")
	coretest.WantErr(t, context.Cause(lease.Context()), core.ErrLeaseLost)
	for _, s := range five.Servers[:3] {
		s.Resume()
	}
	coretest.Unlock(t, coretest.MustLock(t, r.Mutex("name")))
	five.AwaitHolders(t, "lock:name", 0)
	five.AwaitHolders(t, "lock:held", 0)
}

// TestRedlockElectsSomebody lets many processes try at the same moment, again and again: votes split, but one of them
// wins. Not always: a client that meets only what the losers have not yet taken back takes the lock for held, and on a busy
// machine that may be all of them.
func TestRedlockElectsSomebody(t *testing.T) {
	t.Parallel()
	five := coretest.StartMasters(t, 5)
	var processes []*core.Redlock
	for range 8 {
		// Pauses grow with the time of the answers, which a busy machine makes long.
		processes = append(processes, five.Redlock(t, core.WithNodeTimeout(2*time.Second)))
	}
	const rounds = 20
	elections := 0
	for round := range rounds {
		var all sync.WaitGroup
		won := make(chan *core.Lease, len(processes))
		for _, r := range processes {
			all.Go(func() {
				lease, err := r.Mutex("name").TryLock(context.Background())
				if err == nil {
					won <- lease
				} else if !errors.Is(err, core.ErrNotAcquired) {
					t.Errorf("TryLock: %v", err)
				}
			})
		}
		all.Wait()
		if len(won) > 1 {
			t.Fatalf("round %d: %d of %d got the lock", round, len(won), len(processes))
		}
		if len(won) == 1 {
			elections++
			coretest.Unlock(t, <-won)
		}
		five.AwaitHolders(t, "lock:name", 0)
	}
	if elections < rounds/2 {
		t.Errorf("%d of %d times somebody got the lock", elections, rounds)
	}
}

// TestRedlockLeavesAMinority: a holder that has not all of the servers is no split vote, which would be repeated until it
// has taken four times as long as a server may.
func TestRedlockLeavesAMinority(t *testing.T) {
	t.Parallel()
	five := coretest.StartMasters(t, 5)
	holder, other := five.Redlock(t), five.Redlock(t, core.WithNodeTimeout(time.Minute))
	lease := coretest.MustLock(t, holder.Mutex("name"), core.WithTTL(coretest.Long))
	five.AwaitHolders(t, "lock:name", 5)
	for _, rdb := range five.Looks[:2] {
		rdb.Del(context.Background(), "lock:name")
	}
	for range 20 { // mostly the three are not the first to answer
		refused := make(chan error, 1)
		go func() {
			_, err := other.Mutex("name").TryLock(context.Background())
			refused <- err
		}()
		coretest.WantErr(t, coretest.Receive(t, refused), core.ErrNotAcquired)
	}
	coretest.Unlock(t, lease)
	five.AwaitHolders(t, "lock:name", 0)
}

// TestRedlockAgainAtOnce: a client that locks again right after an unlock does not wait for the minority that does not know of it.
func TestRedlockAgainAtOnce(t *testing.T) {
	t.Parallel()
	waits := 0
	r := coretest.StartMasters(t, 3).Redlock(t, core.WithNodeTimeout(time.Minute), core.WithHooks(core.Hooks{
		Wait: func(context.Context, core.Wait) { waits++ },
	}))
	for range testkit.Rounds(250, 1000) {
		coretest.Unlock(t, coretest.MustLock(t, r.Mutex("name"), core.WithTTL(coretest.Long)))
	}
	if waits > 0 {
		t.Errorf("waited %d times", waits)
	}
}

// TestRedlockOperations looks at a lock with one server frozen, and takes it from its holder.
func TestRedlockOperations(t *testing.T) {
	t.Parallel()
	five := coretest.StartMasters(t, 5)
	r := five.Redlock(t, core.WithNodeTimeout(4*time.Second))                   // what is asked of four servers is not about time
	lease := coretest.MustLock(t, r.Mutex("name"), core.WithTTL(9*time.Second)) // a server that was too slow gets it at a renewal
	five.AwaitHolders(t, "lock:name", 5)
	five.Servers[2].Pause()
	for i, server := range five.Servers {
		if i == 2 {
			continue
		}
		info, err := coretest.NewClient(t, server.Client()).Inspect(context.Background(), "name")
		if err != nil || info.Mode != core.ModeMutex || len(info.Holders) != 1 || info.Holders[0].Owner != lease.Owner() {
			t.Errorf("node %d: %+v, %v", i+1, info, err)
		}
	}
	if forced, err := r.ForceUnlock(context.Background(), "name"); !forced || err != nil {
		t.Errorf("ForceUnlock = %v, %v", forced, err)
	}
	if forced, err := r.ForceUnlock(context.Background(), "name"); forced || err != nil {
		t.Errorf("ForceUnlock of a free lock = %v, %v", forced, err)
	}
	coretest.WantErr(t, lease.Unlock(context.Background()), core.ErrNotHeld)
	five.Servers[2].Resume()
	for _, name := range []string{"", "{}"} {
		_, err := r.ForceUnlock(context.Background(), name)
		coretest.WantErr(t, err, core.ErrInvalidName)
	}
	_ = r.Close()
	_, err := r.ForceUnlock(context.Background(), "name")
	coretest.WantErr(t, err, core.ErrClosed)
}

// TestRedlockInMulti joins a lock on five servers with one on a single server.
func TestRedlockInMulti(t *testing.T) {
	t.Parallel()
	five := coretest.StartMasters(t, 5)
	patient := core.WithNodeTimeout(time.Minute) // a server that is too slow for the joint token does not get it later
	r, other := five.Redlock(t, patient), five.Redlock(t, patient)
	single := testkit.Start(t)
	locks := coretest.NewClient(t, single.Client())
	lease := coretest.MustLock(t, core.Multi(r.Mutex("many"), locks.Fair("one")))
	for _, rdb := range five.Looks {
		testkit.Eventually(t, coretest.Within, "the joint token to arrive", func() bool {
			token, _ := rdb.Get(context.Background(), "holdfast:token").Int64()
			return token >= lease.Token()
		})
	}
	again := coretest.MustLock(t, other.Mutex("many"), core.WithOwner(lease.Owner()))
	if again.Token() != lease.Token() {
		t.Errorf("token %d on re-entry, the joint one is %d", again.Token(), lease.Token())
	}
	coretest.Unlock(t, again)
	if _, err := core.Multi(locks.Mutex("two"), other.Mutex("many")).TryLock(context.Background()); err == nil {
		t.Error("a member was granted twice")
	}
	if n := single.Client().Exists(context.Background(), "lock:two").Val(); n != 0 {
		t.Error("a member was not released after another was refused")
	}
	coretest.Unlock(t, lease)
	next := coretest.MustLock(t, other.Mutex("many"))
	if next.Token() <= lease.Token() {
		t.Errorf("token %d after the joint one %d", next.Token(), lease.Token())
	}
	_, err := core.Multi(r.Mutex("many"), other.Mutex("many")).TryLock(context.Background())
	coretest.WantErr(t, err, core.ErrInvalidOption)
}

// TestRedlockTwinsInMulti joins locks of one key on different servers, whose order has to be asked for. One of those
// servers is frozen: Lock waits for its answer, but not beyond its own end.
func TestRedlockTwinsInMulti(t *testing.T) {
	t.Parallel()
	slow := func(o *redis.Options) { o.ReadTimeout = time.Hour }
	five, three := coretest.StartMasters(t, 5), coretest.StartMasters(t, 3)
	patient := coretest.NewRedlock(t, five.Clients(slow), core.WithNodeTimeout(time.Minute))
	twins := core.Multi(patient.Mutex("name"), coretest.NewRedlock(t, three.Clients(), core.WithNodeTimeout(time.Minute)).Mutex("name"))
	coretest.Unlock(t, coretest.MustLock(t, twins))
	five.Servers[0].Pause()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	refused := make(chan error, 1)
	go func() {
		_, err := twins.Lock(ctx)
		refused <- err
	}()
	coretest.WantErr(t, coretest.Receive(t, refused), context.DeadlineExceeded)
	five.Servers[0].Resume()
}

// TestRedlockOfSlowServers: servers that are all slow, as on a busy host, grant a free lock with a short TTL too. A round trip
// takes 60 ms. The first Redlock opens the connections, so that the others need one round trip for each request.
func TestRedlockOfSlowServers(t *testing.T) {
	t.Parallel()
	var nodes []redis.UniversalClient
	for _, server := range coretest.StartMasters(t, 3).Servers {
		relay := server.Relay()
		relay.Delay(testkit.Both, 30*time.Millisecond)
		nodes = append(nodes, relay.Client())
	}
	patient := coretest.NewRedlock(t, nodes, core.WithNodeTimeout(time.Minute))
	coretest.Unlock(t, coretest.MustLock(t, patient.Mutex("name")))
	short := core.WithTTL(4 * time.Second)
	coretest.Unlock(t, coretest.MustLock(t, coretest.NewRedlock(t, nodes).Mutex("name"), short))
	impatient := coretest.NewRedlock(t, nodes, core.WithNodeTimeout(50*time.Millisecond))
	_, err := impatient.Mutex("name").TryLock(t.Context(), short)
	coretest.WantErr(t, err, core.ErrUnavailable)
}

// TestRedlockReleasesAnUncommittedHold: all servers vote for the lock, and answer nothing from the commit on. Each of the
// releases that follow is repeated until its server has confirmed it. The race detector sees whether they share state.
func TestRedlockReleasesAnUncommittedHold(t *testing.T) {
	t.Parallel()
	three := coretest.StartMasters(t, 3)
	nodes, relays := make([]redis.UniversalClient, 3), make([]*testkit.Relay, 3)
	repeated := make(chan struct{}, 3)
	for i, s := range three.Servers {
		relay := s.Relay()
		var held atomic.Bool
		var dials atomic.Int32
		nodes[i], relays[i] = relay.Client(func(o *redis.Options) {
			o.ReadTimeout = coretest.Within
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if held.Load() && dials.Add(1) == 2 { // the first release, without a reply, and its repetition
					repeated <- struct{}{}
				}
				return new(net.Dialer).DialContext(ctx, network, addr)
			}
		}), relay
		coretest.Nth(relay, "lock:name", 2, func() { // the second request is the commit
			relay.Hold(testkit.ToClient)
			held.Store(true)
		})
	}
	r := coretest.NewRedlock(t, nodes, core.WithNodeTimeout(time.Second), core.WithTTL(coretest.Long))
	coretest.Unlock(t, coretest.MustLock(t, r.Mutex("warm")))
	_, err := r.Mutex("name").TryLock(context.Background())
	coretest.WantErr(t, err, core.ErrUnavailable)
	for range relays {
		coretest.WaitFor(t, repeated, "a release to be repeated")
	}
	for _, relay := range relays {
		relay.Heal()
	}
	three.AwaitHolders(t, "lock:name", 0)
}
