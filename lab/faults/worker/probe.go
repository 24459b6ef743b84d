package worker

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/lab/faults/history"
)

// probeScript asks a server who holds a lock exclusively, and for how long: the time of the key, or a field of its own for
// the strategies with a queue once another client has asked. Returns {token, µs left}; token 0 if nobody does.
var probeScript = redis.NewScript(`
local time = redis.call('TIME')
local held = redis.call('HMGET', KEYS[1], 'mode', 'token', 'exclusive_until')
held[2] = held[2] or string.match(held[1] or '', ' (%d+)$')
if not held[2] or string.find(held[1] or '', '^reading') then
	return {0, 0}
end
local left = redis.call('PTTL', KEYS[1]) * 1000
if held[3] then
	left = held[3] * 1000 - time[1] * 1000000 - time[2]
end
return {tonumber(held[2]), string.format('%.0f', left)}
`)

// probeTime bounds a probe: its worth fades quickly.
const probeTime = 300 * time.Millisecond

// probe asks the server about the lock while it is held, beside the links that get broken, and tells what the holder
// believed before.
func (h *held) probe(name string) {
	if h.w.direct == nil || h.event.Shared {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	believed := until(h.lease.ValidUntil)
	if h.lease.Context().Err() != nil {
		return
	}
	reply, err := probeScript.Run(ctx, h.w.direct, []string{"lock:" + name}).Slice()
	if err != nil || len(reply) != 2 {
		return // the server is unreachable
	}
	at := history.Now()
	token, _ := reply[0].(int64)
	e := history.Event{Kind: history.Probe, At: at, Until: believed, Name: name, Value: token}
	if text, ok := reply[1].(string); ok {
		left, _ := time.ParseDuration(text + "us")
		e.Deadline = at + int64(left) // the server's expiry, at the latest
	}
	h.say(e)
}
