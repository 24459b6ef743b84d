package script

import (
	"io/fs"
	"slices"
	"strconv"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit/fastpath"
)

// luaFolder returns a folder of lua/.
func luaFolder(name string) fs.FS {
	folder, err := fs.Sub(luaFiles, "lua/"+name)
	if err != nil {
		panic(err)
	}
	return folder
}

// TestFastPaths compares each fast path of a lock with its slow path.
func TestFastPaths(t *testing.T) {
	t.Parallel()
	fastpath.Compare(t, luaFolder("lock"), fastpath.Path{
		File: "acquire_fast", Then: "compact_grant", Source: acquireScript.Source, Fields: lockFields.all(), Draw: drawAcquire,
		Replies: []string{"1", "0", "-1", "-2", "-3", "error"}, Expand: expandLock, Long: longGrant(int64(0)),
	}, fastpath.Path{
		File: "release_fast", Source: releaseScript.Source, Draw: drawRelease,
		Replies: []string{"1", "2", "4", "0", "error"}, Short: shortRelease, Again: int64(notCompact),
	}, fastpath.Path{
		File: "queue_acquire_fast", Then: "compact_grant", Source: queueAcquireScript.Source, Draw: drawQueueAcquire,
		Replies: []string{"1", "0", "-1", "-2", "error"}, Expand: expandLock, Long: longGrant(),
	}, fastpath.Path{
		File: "release_fast", Source: queueReleaseScript.Source, Draw: drawQueueRelease,
		Replies: []string{"1", "0", "error"}, Short: shortQueueRelease, Again: int64(notCompact),
	})
}

// expandLock gives a lock all fields if it is in the compact state. It makes the token the time of the grant in any state:
// a compact lock has no other, and the token is later if the clock was set back. A fast path may leave the last token the expiry that
// it has.
var expandLock = source("lock_kind", "compact") + `
if redis.call('PTTL', KEYS[2]) > 7199990 then
  redis.call('PEXPIRE', KEYS[2], 7200000)
end
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then
  return
end
local held = redis.call('HMGET', KEYS[1], 'mode', 'token', 'granted')
if isCompact(held[1]) then
  expand(KEYS[1], KEYS[3], KEYS[#KEYS])
elseif held[2] and held[3] then
  redis.call('HSET', KEYS[1], 'granted', held[2])
end
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  local entries, token = string.match(redis.call('HGET', KEYS[1], field), '^(%d+ )(%d+) %d+$')
  if token and string.find(field, '^read:') then
    redis.call('HSET', KEYS[1], field, entries .. token .. ' ' .. token)
  end
end
`

// longGrant returns the long reply for the token that a fast path returns, with these elements behind it.
func longGrant(more ...any) func(any) any {
	return func(reply any) any {
		if token, ok := reply.(int64); ok {
			return append([]any{int64(1), token}, more...)
		}
		return reply
	}
}

// lockNames are the fields of a lock's hash, see lua/lock/acquire.lua.
type lockNames struct {
	mode, token, granted, ttl, minHoldUntil, tokenCommitted, hasWaitingClients string
}

var lockFields = lockNames{
	mode: "mode", token: "token", granted: "granted", ttl: "ttl",
	minHoldUntil: "min_hold_until", tokenCommitted: "token_committed", hasWaitingClients: "has_waiting_clients",
}

// holdField is followed by the ID of a hold.
const holdField = "hold:"

func (n lockNames) all() []string {
	return []string{n.mode, n.token, n.granted, n.ttl, n.minHoldUntil, n.tokenCommitted, n.hasWaitingClients, holdField}
}

// The owner and the hold that send the request, and others. A new owner has the ID of its hold.
const (
	askingOwner, otherOwner = "client:1", "client:2"
	askingHold, otherHold   = "client:1:7", "client:2:8"
	parentHold              = "client:1:6"
)

// drawAcquire makes a random state and a random request for acquire.lua.
func drawAcquire(d *fastpath.Draw) {
	lock, token, released, waiting := d.Key("lock"), d.Key("token"), d.Key("released"), d.Key("waiting")
	d.Keys, d.Args = []string{lock, token, released, waiting}, acquireArgs(d)
	if len(d.Args) == 2 {
		d.Keys = d.Keys[:3]
	}
	if d.Chance(40) {
		drawLock(d, lock)
	}
	d.LastToken(token)
	d.Remembered(released)
	if d.Chance(25) && len(d.Keys) == 4 {
		drawWaitingClients(d, waiting)
	}
}

// acquireArgs returns random arguments. It leaves out some at the end, as the contract allows.
func acquireArgs(d *fastpath.Draw) []string {
	minHold, uptime := "0", "0"
	if d.Chance(20) {
		minHold = strconv.FormatInt(d.Lifetime(), 10)
	}
	if d.Chance(20) {
		uptime = fastpath.OneOf(d, []string{"1000", "60000", "3600000"}) // the server has been up for a minute
	}
	args := []string{
		askingOwner, strconv.FormatInt(d.Lifetime(), 10), fastpath.OneOf(d, []string{"", askingHold}), minHold, uptime,
		fastpath.OneOf(d, []string{"", "5"}), fastpath.OneOf(d, []string{"0", "1"}), fastpath.OneOf(d, []string{"", parentHold}),
	}
	return args[:fastpath.OneOf(d, []int{2, 2, 2, 3, 4, 5, 7, 8, 8})]
}

// drawRelease makes a random state and a random request for release.lua.
func drawRelease(d *fastpath.Draw) {
	d.AllowAll()
	lock, released, waiting := d.Key("lock"), d.Key("released"), d.Key("waiting")
	d.Keys = []string{lock, released, waiting}
	memory := strconv.FormatInt(d.Lifetime(), 10)
	d.Args = []string{
		askingOwner, "PUBLISH", fastpath.OneOf(d, []string{"", askingHold}), fastpath.OneOf(d, []string{"0", memory}),
		fastpath.OneOf(d, []string{"0", "1"}), memory,
	}[:fastpath.OneOf(d, []int{2, 2, 2, 2, 2, 3, 4, 5, 6})]
	if d.Chance(90) {
		drawLock(d, lock)
	}
	d.Remembered(released)
	if d.Chance(25) {
		drawWaitingClients(d, waiting)
	}
}

// shortRelease returns the request to release_fast.lua for a request to release.lua.
func shortRelease(keys, args []string) ([]string, []string) {
	if len(args) > 2 {
		return keys, args
	}
	return keys[:1], []string{args[0], "redisson_lock__channel:" + keys[0], "PUBLISH"}
}

// drawLock writes the lock: mostly one of a Mutex or of Redisson, sometimes a state that no script writes.
func drawLock(d *fastpath.Draw, key string) {
	switch n := d.IntN(100); {
	case n < 5:
		d.OtherType(key)
		return
	case n < 10:
		d.Text(key, "") // what is left of a grant that was undone
		return
	case n < 50:
		drawCompact(d, key, fastpath.OneOf(d, []string{askingOwner, askingOwner, otherOwner}), "")
		return
	case n < 55:
		drawCompact(d, key, otherOwner, "fair ")
		return
	}
	fields := map[string]string{
		askingOwner: fastpath.OneOf(d, []string{"", "1", "3"}), otherOwner: fastpath.OneOf(d, []string{"", "1", "2"}),
		holdField + askingHold: fastpath.OneOf(d, []string{"", "1"}), holdField + otherHold: "1", holdField + parentHold: "1",
		holdField + askingOwner: fastpath.OneOf(d, []string{"", "1"}),
		lockFields.mode:         fastpath.OneOf(d, []string{"mutex", "mutex", "mutex", "mutex", "fair"}),
		lockFields.token:        d.Micro(d.Around(1, 1_000_000)), lockFields.granted: d.Micro(d.Around(1, 1_000_000)),
		lockFields.ttl: strconv.FormatInt(d.Lifetime(), 10),
	}
	for _, rare := range []struct{ field, value string }{
		{lockFields.minHoldUntil, d.Micro(d.Around(1000, 60_000_000))},
		{lockFields.tokenCommitted, d.Micro(0)},
		{lockFields.hasWaitingClients, "1"},
	} {
		if d.Chance(25) {
			fields[rare.field] = rare.value
		}
	}
	d.Hash(key, fastpath.OneOf(d, []int{60, 100}), fields)
}

// drawCompact writes a compact lock of an owner. Redisson may have counted a second entry.
func drawCompact(d *fastpath.Draw, key, owner, mode string) {
	d.Do("HSET", key, owner, fastpath.OneOf(d, []int{1, 1, 1, 2}),
		lockFields.mode, mode+strconv.FormatInt(d.Lifetime(), 10)+" "+d.Micro(d.Around(1, 1_000_000)))
	d.Expire(key)
}

// drawWaitingClients writes the clients that wait for a lock. The client of the request may be one of them.
func drawWaitingClients(d *fastpath.Draw, key string) {
	if d.Chance(10) {
		d.Text(key, "no sorted set")
		return
	}
	for _, client := range slices.Concat([]string{"9"}, fastpath.OneOf(d, [][]string{nil, {"5"}, {"5", "11"}})) {
		d.Do("ZADD", key, d.Micro(-d.Int64N(1000)), client)
	}
	d.Expire(key)
}
