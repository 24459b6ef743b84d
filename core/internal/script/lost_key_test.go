package script_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// lostKeyLimit is n of the semaphore in TestLostKey.
const lostKeyLimit = 3

// lostKeyStory is a random course of events on one lock, of which Redis loses single keys.
type lostKeyStory struct {
	*episode
	held    []*tenant // by what their clients know
	waiting []*tenant
	unaware bool // a key was lost, and not all clients have renewed since then
}

// tenant is one hold and what its client knows of it.
type tenant struct {
	*contender
	slot int
}

// TestLostKey: Redis loses one key of a lock, by eviction or DEL. Once each holder has renewed, those that still hold the lock do
// not exclude each other, whatever was granted in between.
func TestLostKey(t *testing.T) {
	t.Parallel()
	instance := startInstance(t)
	stories := testkit.Rounds(50, 200)
	if testing.Short() {
		stories /= 20
	}
	if *modelSeed != 0 {
		stories = 1
	}
	for range stories {
		s := &lostKeyStory{episode: newEpisode(instance, nil, cmp.Or(*modelSeed, rand.Uint64()))}
		for n := 0; n < 4 && s.err == nil; n++ {
			s.course(10)
			s.lose()
			s.course(4)
			s.renewAll()
			s.course(10)
		}
		s.checkExpiries()
		s.clear()
		if s.err != nil {
			t.Fatalf("%v\n%s%s", s.err, strings.Join(s.log, "\n"), s.again(t))
		}
	}
}

// TestShareWithoutExpiry: Redis loses share_expiries while the owner has the exclusive lock too, so the lock stays. The owner gets another
// share, and ends it. Then the first share ends as one that was lost, not with an error.
func TestShareWithoutExpiry(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]kind{"permit": aPermit, "reader": aRead} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &lostKeyStory{episode: newEpisode(startInstance(t), nil, rand.Uint64())}
			enter := func(k kind) *tenant {
				c := &tenant{contender: s.contend("A", k, 60)}
				s.request(c)
				return c
			}
			writer, lost := enter(aWrite), enter(k)
			s.delete(s.keys.ShareExpiries())
			s.leave(enter(k))
			s.leave(lost)
			if last := s.log[len(s.log)-1]; !strings.HasSuffix(last, "release of "+lost.ID+": false") {
				t.Error(last)
			}
			s.leave(writer)
			if left := s.stored(); s.err != nil || slices.Contains(left, s.keys.Lock) {
				t.Errorf("%v, %q is left\n%s", s.err, left, strings.Join(s.log, "\n"))
			}
		})
	}
}

// course makes some moves.
func (s *lostKeyStory) course(moves int) {
	for ; moves > 0 && s.err == nil; moves-- {
		switch n := s.rand.IntN(8); {
		case n < 4:
			s.enter()
		case n < 5 && len(s.waiting) > 0:
			s.request(some(s.episode, s.waiting))
		case n < 7 && len(s.held) > 0:
			s.leave(some(s.episode, s.held))
		case len(s.held) > 0:
			s.renewTenant(some(s.episode, s.held))
		}
		if !s.unaware {
			s.checkTenants()
		}
	}
}

// enter lets a new tenant ask, often one that enters again.
func (s *lostKeyStory) enter() {
	owner := some(s.episode, []string{"A", "B", "C", "D", "E"})
	c := s.contend(owner, some(s.episode, []kind{aWrite, aRead, aPermit, aPermit, twoPermits}), 60)
	c.limit = min(c.limit, 1) * lostKeyLimit
	c.Limit = c.limit
	if len(s.held) > 0 && s.rand.IntN(2) == 0 {
		parent := some(s.episode, s.held)
		c.Owner, c.ParentID = parent.Owner, parent.ID
	}
	if s.rand.IntN(4) == 0 {
		c.MinHold = 50 * time.Second
	}
	s.request(&tenant{contender: c})
}

// request sends the request of a tenant.
func (s *lostKeyStory) request(c *tenant) {
	s.waiting = slices.DeleteFunc(s.waiting, func(other *tenant) bool { return other == c })
	got, err := s.protocol(c.kind).Acquire(context.Background(), &c.Hold, script.Wanted{Place: s.rand.IntN(2) == 0})
	s.note("%s %d by %s of %s, by %q: %v, slot %d", c.strategy, c.k, c.ID, c.Owner, c.ParentID, got.Granted, got.Slot)
	switch {
	case err != nil:
		s.differs("acquire: %v", err)
	case got.Granted:
		c.slot = got.Slot
		s.held = append(s.held, c)
	case c.QueueNumber > 0:
		s.waiting = append(s.waiting, c)
	}
}

// leave releases a hold.
func (s *lostKeyStory) leave(c *tenant) {
	got, err := s.protocol(c.kind).Release(context.Background(), &c.Hold, script.HeldByCaller)
	s.note("release of %s: %v", c.ID, got)
	if err != nil {
		s.differs("release: %v", err)
	}
	s.forgetTenant(c)
}

// renewTenant renews a hold, and drops it if its client is told that it is lost.
func (s *lostKeyStory) renewTenant(c *tenant) {
	got, err := s.protocol(c.kind).Renew(context.Background(), &c.Hold, time.Minute)
	s.note("renew %s: %v", c.ID, got)
	if err != nil {
		s.differs("renew: %v", err)
	}
	if !got {
		s.forgetTenant(c)
	}
}

func (s *lostKeyStory) forgetTenant(c *tenant) {
	s.held = slices.DeleteFunc(s.held, func(other *tenant) bool { return other == c })
}

func (s *lostKeyStory) renewAll() {
	for _, c := range slices.Clone(s.held) {
		s.renewTenant(c)
	}
	s.unaware = false
}

// lose deletes a key of the lock.
func (s *lostKeyStory) lose() {
	k := s.keys
	key := some(s.episode, []string{k.Lock, k.ShareExpiries(), k.Slots(), k.ExclusiveQueue(), k.SharedQueue(), k.Waiters()})
	s.note("%s is lost", key)
	s.delete(key)
	s.unaware = true
}

// checkTenants checks that nothing excludes what is held.
func (s *lostKeyStory) checkTenants() {
	writer := ""
	permits, slots := make(map[string]int), make(map[int]string)
	for _, c := range s.held {
		if c.mode == modeWrite {
			writer = c.Owner
		}
		if c.limit > 0 {
			permits[c.Owner] = max(permits[c.Owner], c.k)
			if other := slots[c.slot]; other != "" && other != c.Owner {
				s.differs("%s and %s have slot %d", other, c.Owner, c.slot)
			}
			slots[c.slot] = c.Owner
		}
	}
	inUse := 0
	for _, k := range permits {
		inUse += k
	}
	if inUse > lostKeyLimit {
		s.differs("%d permits of %d: %v", inUse, lostKeyLimit, permits)
	}
	for _, c := range s.held {
		if writer != "" && c.Owner != writer {
			s.differs("%s holds the lock beside the writer %s", c.Owner, writer)
		}
	}
}

// checkExpiries checks that every key will expire.
func (s *lostKeyStory) checkExpiries() {
	for _, key := range s.stored() {
		if left := s.instance.Exec.Client.PTTL(context.Background(), key).Val(); left == -1 {
			s.differs("%s never expires", key)
		}
	}
}
