package lockscript

import (
	"slices"
	"strconv"
	"testing"

	"github.com/holdfast-go/holdfast/internal/fastpath"
)

// TestFastPaths compares each fast path of this package with its slow path.
func TestFastPaths(t *testing.T) {
	t.Parallel()
	fastpath.Compare(t, luaFiles, fastpath.Path{
		File: "acquire_fast", Source: acquireScript.Source, Fields: lockFields.all(), Draw: drawAcquire,
		Replies: []string{"1", "0", "-1", "-2", "-3", "error"},
	})
}

// lockNames are the fields of a lock's hash, see lua/acquire.lua.
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

// The owner and the hold that send the request, and others.
const (
	askingOwner, otherOwner = "client:1", "client:2"
	askingHold, otherHold   = "client:1:7", "client:2:8"
	parentHold              = "client:1:6"
)

// drawAcquire makes a random state and a random request for acquire.lua.
func drawAcquire(d *fastpath.Draw) {
	lock, token, released, waiting := d.Key("lock"), d.Key("token"), d.Key("released"), d.Key("waiting")
	d.Keys = []string{lock, token, released, waiting}
	if d.Chance(10) {
		d.Keys = d.Keys[:3] // the contract lets callers leave this key out
	}
	d.Args = acquireArgs(d)
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
		askingOwner, askingHold, strconv.FormatInt(d.Lifetime(), 10), strconv.FormatInt(d.Lifetime(), 10), minHold, uptime,
		fastpath.OneOf(d, []string{"", "5"}), fastpath.OneOf(d, []string{"0", "1"}), fastpath.OneOf(d, []string{"", parentHold}),
	}
	return args[:fastpath.OneOf(d, []int{5, 6, 6, 8, 8, 9, 9, 9})]
}

// drawLock writes the lock: mostly one of a Mutex or of Redisson, sometimes a state that no script writes.
func drawLock(d *fastpath.Draw, key string) {
	if d.Chance(5) {
		d.OtherType(key)
		return
	}
	if d.Chance(5) {
		d.Text(key, "") // what is left of a grant that was undone
		return
	}
	fields := map[string]string{
		askingOwner: fastpath.OneOf(d, []string{"", "1", "3"}), otherOwner: fastpath.OneOf(d, []string{"", "1", "2"}),
		holdField + askingHold: fastpath.OneOf(d, []string{"", "1"}), holdField + otherHold: "1", holdField + parentHold: "1",
		lockFields.mode:  fastpath.OneOf(d, []string{"mutex", "mutex", "mutex", "mutex", "fair"}),
		lockFields.token: d.Micro(d.Around(1, 1_000_000)), lockFields.granted: d.Micro(d.Around(1, 1_000_000)),
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
