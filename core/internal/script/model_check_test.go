package script_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// ageScript moves a lock into the past, which is what the passage of time is to it. The keys are those that queue_common.lua
// keeps for the lock, then any others; the argument is the time in ms.
const ageScript = `
local lock, shareExpiries, waiters = KEYS[1], KEYS[2], KEYS[5]
local age = tonumber(ARGV[1])

local function earlier(n, by)
  return string.format('%.0f', math.max(n - by, 0))
end

local state = redis.call('HGETALL', lock)
for i = 1, #state, 2 do
  local field, value = state[i], state[i + 1]
  if field == 'exclusive_until' then
    redis.call('HSET', lock, field, earlier(value, age))
  elseif field == 'min_hold_until' then
    redis.call('HSET', lock, field, earlier(value, age * 1000))
  elseif string.sub(field, 1, 6) == 'share:' then
    local minHold, rest = string.match(value, '^(%d+)(.+)$')
    redis.call('HSET', lock, field, earlier(minHold, age * 1000) .. rest)
  end
end

local shares = redis.call('ZRANGE', shareExpiries, 0, -1, 'WITHSCORES')
for i = 1, #shares, 2 do
  redis.call('ZADD', shareExpiries, earlier(shares[i + 1], age), shares[i])
end

local queued = redis.call('HGETALL', waiters)
for i = 1, #queued, 2 do
  if queued[i] ~= '' then
    local deadline, rest = string.match(queued[i + 1], '^(%d+)(.+)$')
    redis.call('HSET', waiters, queued[i], earlier(deadline, age) .. rest)
  end
end

for _, key in ipairs(KEYS) do
  local left = redis.call('PTTL', key)
  if left >= 0 and left <= age then
    redis.call('UNLINK', key)
  elseif left > 0 then
    redis.call('PEXPIRE', key, left - age)
  end
end`

var age = redis.NewScript(ageScript)

// age lets some time go by, or as much as it takes for one thing to expire.
func (e *episode) age() {
	ends := e.model.expiries()
	if len(ends) == 0 || e.rand.IntN(3) == 0 {
		e.pass(2 * some(e, []int{1, 1, 1, 2, 2, 3, 5}))
		return
	}
	e.pass(some(e, ends) - e.model.now + 1)
}

// expiries returns when something will expire, in order.
func (m *model) expiries() (ends []int) {
	if m.sole != nil {
		ends = append(ends, m.sole.expires)
	}
	for _, s := range m.shares {
		ends = append(ends, s.expires)
	}
	for _, s := range m.line {
		ends = append(ends, s.dies)
	}
	ends = slices.DeleteFunc(ends, func(end int) bool { return end <= m.now })
	slices.Sort(ends)
	return ends
}

// pass lets time go by, for the model as for Redis.
func (e *episode) pass(seconds int) {
	e.do(false, func() string {
		e.note("%d seconds pass", seconds)
		e.model.expire()
		all := []string{e.keys.Lock, e.keys.ShareExpiries(), e.keys.ExclusiveQueue(), e.keys.SharedQueue(), e.keys.Waiters(), e.keys.Forced(), e.keys.Slots()}
		for id := range e.model.released {
			all = append(all, e.keys.Released(id))
		}
		e.model.pass(seconds)
		if err := age.Run(context.Background(), e.instance.Exec.Client, all, 1000*seconds).Err(); err != nil && err != redis.Nil {
			e.differs("age: %v", err)
		}
		if e.model.gate > 0 && !e.instance.Exec.Client.HExists(context.Background(), e.keys.Waiters(), "").Val() {
			e.model.gate = 0 // it has gone with the line
		}
		return ""
	})
}

// settle finds out what is up to Redis: whether it still has a place in line whose owner was taken for dead.
func (e *episode) settle(c *contender) {
	s := e.model.seatOf(c.ID)
	if s == nil || s.dies > e.model.now {
		return
	}
	if !e.instance.Exec.Client.HExists(context.Background(), e.keys.Waiters(), c.ID).Val() {
		e.model.leave(c.ID)
	}
}

// stored returns the keys in Redis that belong to the lock.
func (e *episode) stored() []string {
	all, err := e.instance.Exec.Client.Keys(context.Background(), "*"+e.keys.Lock+"*").Result()
	if err != nil {
		e.differs("KEYS: %v", err)
	}
	if token := e.tokenKey(); e.instance.Exec.Client.Exists(context.Background(), token).Val() == 1 {
		all = append(all, token)
	}
	return all
}

func (e *episode) delete(all ...string) {
	if len(all) == 0 {
		return
	}
	if err := e.instance.Exec.Client.Unlink(context.Background(), all...).Err(); err != nil {
		e.differs("UNLINK: %v", err)
	}
}

// clear removes what the episode leaves in Redis.
func (e *episode) clear() {
	e.delete(e.stored()...)
	modelSlots.Delete(transport.Slot(e.keys.Lock))
}

// tokenKey returns the key of the last token of the episode's slot, which is in no other episode.
func (e *episode) tokenKey() string { return e.instance.TokenKeys.Of(e.keys.Lock) }

// check compares the state as a whole.
func (e *episode) check() {
	e.model.expire()
	e.checkInfo()
	e.checkKeys()
}

func (e *episode) checkInfo() {
	got, err := e.instance.State(context.Background(), e.keys, inspected)
	if err != nil {
		e.differs("State: %v", err)
		return
	}
	want := e.model.info()
	if got.Mode != want.Mode || !slices.Equal(got.Queue, want.Queue) || len(got.Holders) != len(want.Holders) {
		e.differs("State: %+v, want %+v", got, want)
		return
	}
	e.lasts("State", got.TTL, seconds(want.TTL))
	sortHolders(got.Holders)
	for i, h := range want.Holders {
		g := got.Holders[i]
		if g.Owner != h.Owner || g.Holds != h.Holds || g.Granted.IsZero() ||
			g.Permits != h.Permits || g.Limit != h.Limit || g.Slot != h.Slot {
			e.differs("State: %+v, want %+v", got, want)
			return
		}
		e.learn(int(h.Token), g.Token)
		e.lasts("State of "+h.Owner, g.TTL, seconds(h.TTL))
	}
}

// sortHolders puts the two of an owner that holds the lock in both ways in a certain order.
func sortHolders(all []script.Holder) {
	slices.SortFunc(all, func(a, b script.Holder) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Permits, b.Permits), cmp.Compare(a.Holds, b.Holds), cmp.Compare(a.TTL, b.TTL))
	})
}

// info is what State must say, with grants for tokens.
func (m *model) info() (info script.State) {
	left := func(expires int) time.Duration { return time.Duration(expires-m.now) * time.Second }
	byOwner := make(map[string]script.Holder)
	for _, s := range m.shares {
		h := byOwner[s.owner]
		h = script.Holder{Owner: s.owner, Holds: h.Holds + 1, TTL: max(h.TTL, left(s.expires)), Token: int64(s.grant)}
		if p := m.permits[s.owner]; p != nil {
			h.Permits, h.Limit, h.Slot = len(p.slots), p.limit, p.slots[0]
		}
		byOwner[s.owner] = h
	}
	for _, h := range byOwner {
		info.Holders = append(info.Holders, h)
	}
	if !m.free() {
		info.Mode, info.TTL = modeRead, left(m.until())
	}
	if len(m.permits) > 0 {
		info.Mode = modeSemaphore
	}
	if m.sole != nil {
		info.Mode = m.sole.mode
		if n := len(m.sole.ids); n > 0 {
			info.Holders = append(info.Holders,
				script.Holder{Owner: m.sole.owner, Holds: n, TTL: left(m.sole.expires), Token: int64(m.sole.grant)})
		}
	}
	sortHolders(info.Holders)
	for _, s := range m.line {
		if s.dies > m.now {
			info.Queue = append(info.Queue, script.Waiter{Owner: s.Owner, Mode: s.mode, Permits: s.k, Limit: s.limit})
		}
	}
	return info
}

// checkKeys looks at the times of the keys, and for places of which only a part is there.
func (e *episode) checkKeys() {
	ctx := context.Background()
	all := e.stored()
	times := make([]*redis.DurationCmd, len(all))
	var writers, readers, waiters *redis.IntCmd
	_, err := e.instance.Exec.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, key := range all {
			times[i] = pipe.PTTL(ctx, key)
		}
		writers, readers = pipe.ZCard(ctx, e.keys.ExclusiveQueue()), pipe.ZCard(ctx, e.keys.SharedQueue())
		waiters = pipe.HLen(ctx, e.keys.Waiters())
		return nil
	})
	if err != nil {
		e.differs("look at the keys: %v", err)
		return
	}
	for i, key := range all {
		switch left := times[i].Val(); {
		case left == -1:
			e.differs("%s never expires", key)
		case key == e.keys.Lock:
			e.lasts(key, left, e.model.until()-e.model.now)
		}
	}
	gates := 0
	if e.model.gate > 0 {
		gates = 1
	}
	if writers.Val()+readers.Val()+int64(gates) != waiters.Val() {
		e.differs("%d writers and %d readers are in line, but %d waiters", writers.Val(), readers.Val(), waiters.Val())
	}
}

// finish lets all holds and places end, and looks at what is left.
func (e *episode) finish() {
	if e.rand.IntN(2) == 0 {
		for _, c := range append(e.active, e.ended...) {
			e.release(c, script.HeldByCaller)
		}
	}
	e.check()
	if !e.model.free() || len(e.model.line) > 0 || e.model.gate > 0 || e.lost {
		e.pass(40)
	}
	e.checkNews()
	for _, key := range e.stored() {
		if key != e.tokenKey() && key != e.keys.Forced() && !strings.HasPrefix(key, e.keys.Released("")) {
			e.differs("left when all is over: %s", key)
		}
	}
	e.note("the end, with %s", fmt.Sprint(e.stored()))
}
