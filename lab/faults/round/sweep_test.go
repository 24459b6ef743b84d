package round_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/faults/history"
	"github.com/holdfast-go/holdfast/lab/faults/topology"
)

// shortLived are keys that are gone soon after the last client.
var shortLived = []string{"lock:", "holdfast:exclusive_queue", "holdfast:shared_queue", "holdfast:waiters", "holdfast:share_expiries", "holdfast:slots"}

// sweep looks for what is left after all workers have ended: nothing asks for a lock any more, every key has an expiry,
// and what belongs to holders and waiters goes within their time.
func sweep(t *testing.T, d *topology.Deployment, log *history.Log) {
	t.Helper()
	ctx := context.Background()
	masters := d.Masters(ctx)
	if len(masters) == 0 {
		t.Error("no master at the end")
	}
	before := make(map[int]int64)
	for _, m := range masters {
		before[m] = d.Servers[m].CommandStats()["evalsha"].Calls
		look(t, d, m, func(key string, left time.Duration) {
			if left < 0 {
				log.Say(history.Event{Kind: history.Key, Name: key, Value: -1, Detail: "it has no expiry"})
			}
		})
	}
	if *total == 0 {
		return
	}
	time.Sleep(2*ttl + 5*time.Second + 500*time.Millisecond) // places in line last five seconds
	for _, m := range masters {
		if calls := d.Servers[m].CommandStats()["evalsha"].Calls - before[m]; calls > 0 {
			log.Say(history.Event{Kind: history.Left, By: d.Servers[m].Addr(), Value: calls})
		}
		if d.Shift != nil {
			continue // what was set before a step back lasts longer, if nobody asks for it
		}
		look(t, d, m, func(key string, left time.Duration) {
			for _, prefix := range shortLived {
				if strings.HasPrefix(key, prefix) {
					log.Say(history.Event{Kind: history.Key, Name: key, Value: left.Milliseconds(), Detail: "nobody is there"})
				}
			}
		})
	}
}

// look shows all keys of a server and how long they have left.
func look(t *testing.T, d *topology.Deployment, server int, show func(key string, left time.Duration)) {
	t.Helper()
	ctx := context.Background()
	keys := d.Admin(server).Scan(ctx, 0, "*", 1000).Iterator()
	for keys.Next(ctx) {
		left, err := d.Admin(server).PTTL(ctx, keys.Val()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if left == -2 {
			continue // gone meanwhile
		}
		show(keys.Val(), left)
	}
	if err := keys.Err(); err != nil {
		t.Fatal(err)
	}
}
