package mutants

var semaphores = []Mutant{
	{
		"counter instead of a set", "a counter of permits that drifts: those of a crashed holder are in use for ever", "core/internal/script/lua/lock/permits.lua",
		[][2]string{
			{"  if not hasSlots then\n    return shares\n  end\n", "  if true then\n    return tonumber(redis.call('GET', slots .. '+') or 0)\n  end\n"},
			{"taken + run\n  end\nend", "taken + run\n  end\n  redis.call('INCRBY', slots .. '+', permits)\nend"},
		},
		inTests("semaphore", "TestSemaphoreCrash"),
	},
	{
		"release that adds a permit", "redisson/redisson#4678: a late release frees the permit of another holder", "core/internal/script/lua/lock/queue_release.lua",
		[][2]string{{"local wasQueued = dequeue(id) > 0\n", "local wasQueued = dequeue(id) > 0\nif status == 0 and hasSlots then\n  call('ZREM', slots, call('ZREVRANGE', slots, 0, 0)[1])\nend\n"}},
		inTests("semaphore", "TestSemaphoreReleaseAddsNothing"),
	},
	{
		"stored n", "the first request sets n, and a deployment cannot change it", "core/internal/script/lua/lock/queue_common.lua",
		[][2]string{{
			"  return not limit or not hasShares or not hasShare(owner) and countInUse(shareExpiries) + permits <= limit\n",
			"  local stored = tonumber(limit and call('SET', slots .. '+', limit, 'NX', 'GET') or limit)\n  return not limit or not hasShares or not hasShare(owner) and countInUse(shareExpiries) + permits <= stored\n",
		}},
		inTests("semaphore", "TestSemaphoreChangingLimit"),
	},
	{
		"small requests pass a large one", "a request for many permits starves", "core/internal/script/lua/lock/queue_acquire.lua",
		[][2]string{{"(exclusiveOwner or occupied(exclusiveQueue) or occupied(sharedQueue) or not", "(exclusiveOwner or occupied(exclusiveQueue) or not"}},
		inTests("semaphore", "TestSemaphorePermits"),
	},
	{
		"absolute expiry", "a server that is stopped within a script deletes what the script then relies on", "core/internal/script/lua/lock/queue_common.lua",
		[][2]string{{"math.max(remaining(), longestStop)))", "math.max(remaining(), 1)))"}, {"call('PEXPIRE', key, integer(", "call('PEXPIREAT', key, integer(now + "}},
		Killer{Package: "core/internal/script", Run: "TestStoppedAnywhere"},
	},
	{
		"renewal without its slots", "two holders have one slot until the last of them unlocks", "core/internal/script/lua/lock/renew.lua",
		[][2]string{{"  if before <= now or lostSlots then\n", "  if before <= now then\n"}},
		inTests("semaphore", "TestSemaphoreSlotsLost"),
	},
	{
		"lost slots made anew", "an owner enters again by permits that Redis has lost, and is never told", "core/internal/script/lua/lock/queue_common.lua",
		[][2]string{{"if hasSlots and call('EXISTS', slots) == 0 then", "if false and call('EXISTS', slots) == 0 then"}},
		inTests("semaphore", "TestSemaphoreReentryBesideLostSlots"),
	},
	{
		"minimum hold time that a crash ends", "another lease of the owner expires, and its permits are free too early", "core/internal/script/lua/lock/queue_common.lua",
		[][2]string{{"for i = 1, takenUntil > now and permits or 0 do", "for i = 1, 0 do"}},
		Killer{Package: "core/internal/script", Run: "TestModelStories/permits_stay_taken"},
	},
	{
		"renewal in part without acknowledgement", "an exclusive hold beside permits outlives the expiry that its replicas know", "core/internal/transport/ack.go",
		[][2]string{{"status == 2 || status == 5", "status == 2"}},
		inTests("sentinel", "TestUnacknowledgedRenewalsDoNotCount/beside_a_permit"),
	},
}
