package script

import (
	"strconv"

	"github.com/holdfast-go/holdfast/tests/testkit/fastpath"
)

// queueModes are the modes of locks with a queue.
var queueModes = []string{"fair", "writing", "reading", "semaphore:3:1", "semaphore:4:2"}

// drawQueueAcquire makes a random state and a random request for queue_acquire.lua.
func drawQueueAcquire(d *fastpath.Draw) {
	d.AllowAll()
	queued := drawQueueKeys(d)
	args := []string{
		"channel", "PUBLISH", askingOwner, strconv.FormatInt(d.Lifetime(), 10), fastpath.OneOf(d, queueModes),
		fastpath.OneOf(d, []string{"0", "1"}), fastpath.OneOf(d, []string{"", askingHold}), "0",
		fastpath.OneOf(d, []string{"0", "1000"}), fastpath.OneOf(d, []string{"", parentHold}),
	}
	d.Args = args[:fastpath.OneOf(d, []int{6, 6, 6, 7, 8, 9, 10})]
	if d.Chance(40) {
		drawQueueLock(d, queued)
	} else if d.Chance(20) { // left of a lock that was deleted by hand
		d.Do("ZADD", d.Keys[2], d.Milli(d.Lifetime()), otherHold)
		d.Expire(d.Keys[2])
		if d.Chance(50) {
			d.Do("ZADD", d.Keys[7], "0", "1:"+otherOwner, "-1", otherHold)
			d.Expire(d.Keys[7])
		}
	}
	d.LastToken(d.Keys[1])
	d.Remembered(d.Keys[6])
}

// drawQueueRelease makes a random state and a random request for queue_release.lua.
func drawQueueRelease(d *fastpath.Draw) {
	d.AllowAll()
	queued := drawQueueKeys(d)
	memory := strconv.FormatInt(d.Lifetime(), 10)
	d.Args = []string{
		"channel", "PUBLISH", askingOwner, fastpath.OneOf(d, []string{"0", "1"}), fastpath.OneOf(d, []string{"", askingHold}),
		fastpath.OneOf(d, []string{"0", memory}), fastpath.OneOf(d, []string{"0", "1"}), memory,
	}[:fastpath.OneOf(d, []int{4, 4, 4, 4, 4, 5, 6, 7, 8})]
	if d.Chance(90) {
		drawQueueLock(d, queued)
	}
	d.LastToken(d.Keys[1])
	d.Remembered(d.Keys[6])
}

// shortQueueRelease returns the request to release_fast.lua for a request to queue_release.lua.
func shortQueueRelease(keys, args []string) ([]string, []string) {
	if len(args) > 4 {
		return keys, args
	}
	return keys[:1], []string{args[2], args[0], args[1]}
}

// drawQueueKeys sets the keys, and sometimes writes a waiter into a queue. Then it returns true.
func drawQueueKeys(d *fastpath.Draw) bool {
	for _, name := range []string{"lock", "token", "share_expiries", "exclusive_queue", "shared_queue", "waiters", "released", "slots"} {
		d.Keys = append(d.Keys, d.Key(name))
	}
	if d.Chance(80) {
		return false
	}
	queue, mode := d.Keys[3], "fair"
	if d.Chance(50) {
		queue, mode = d.Keys[4], fastpath.OneOf(d, []string{"reading", "semaphore:2:1"})
	}
	waiter := "client:3:9"
	d.Do("ZADD", queue, d.Micro(-1000), waiter)
	d.Do("HSET", d.Keys[5], waiter, strconv.FormatInt(d.Milli(d.Around(1000, 4000)), 10)+" 30000 "+mode+" "+waiter)
	for _, key := range []string{queue, d.Keys[5]} {
		d.Do("PEXPIREAT", key, d.Milli(5000))
	}
	return true
}

// drawQueueLock writes the lock: mostly a compact one, which has no queue, sometimes a Mutex's, or one with all fields.
func drawQueueLock(d *fastpath.Draw, queued bool) {
	owner := fastpath.OneOf(d, []string{askingOwner, askingOwner, otherOwner})
	switch n := d.IntN(100); {
	case n < 5:
		d.OtherType(d.Keys[0])
	case n < 60 && !queued:
		drawCompact(d, d.Keys[0], owner, fastpath.OneOf(d, queueModes)+" ")
	case n < 70 && !queued:
		drawCompact(d, d.Keys[0], otherOwner, "")
	default:
		drawHeldQueue(d)
	}
}

// drawHeldQueue writes a lock with all its fields, held by the asking owner or another one.
func drawHeldQueue(d *fastpath.Draw) {
	owner := fastpath.OneOf(d, []string{askingOwner, otherOwner})
	id := fastpath.OneOf(d, []string{owner, askingHold, otherHold})
	expiry, token := strconv.FormatInt(d.Milli(d.Around(1, 10_000)), 10), d.Micro(-1000)
	if d.Chance(50) {
		d.Do("HSET", d.Keys[0], "mode", "reading", "has_shares", 1, "ttl", 30_000, "share:"+id, "0 "+owner,
			"read:"+owner, "1 "+token+" "+token)
		d.Do("ZADD", d.Keys[2], expiry, id)
		d.Expire(d.Keys[2])
		if d.Chance(50) {
			d.Do("HSET", d.Keys[0], "has_shares", 2, "permits:"+owner, "3 1")
			d.Do("ZADD", d.Keys[7], "0", "1:"+owner, "-1", id)
			d.Expire(d.Keys[7])
		}
	} else {
		d.Do("HSET", d.Keys[0], owner, 1, "hold:"+id, token, "mode", fastpath.OneOf(d, queueModes[:2]), "exclusive_owner", owner,
			"exclusive_until", expiry, "token", token, "granted", token, "ttl", 30_000, "min_hold_until", 0, "grant_id", token)
	}
	d.Expire(d.Keys[0])
}
