package mutants

import "slices"

// Mutant is one bug.
type Mutant struct {
	Name string
	Why  string // who had it, or what it does
	File string // below the root of the repository
	// Edits are pairs: what stands there, exactly once, and what is put in its place.
	Edits [][2]string
	Killer
}

// Killer is the test that finds a bug.
type Killer struct {
	Package string // below the root
	Run     string // as for go test -run
	Tags    string
	Args    []string
}

// inTests is a test of a topic of core.
func inTests(topic, run string) Killer { return Killer{Package: "tests/" + topic, Run: run} }

// inCore is a test of core beside its source.
func inCore(run string) Killer { return Killer{Package: "core", Run: run} }

// inTransport is a test of the part of core that sends commands.
func inTransport(run string) Killer { return Killer{Package: "core/internal/transport", Run: run} }

// inKeepalive is a test of the part of core that renews leases.
func inKeepalive(run string) Killer { return Killer{Package: "core/internal/keepalive", Run: run} }

// inRound is real processes, servers and faults on one topology.
func inRound(topology string) Killer {
	return Killer{
		Package: "lab/faults/round", Run: "TestFaults", Args: []string{"-faults=45s", "-each=45s", "-only=" + topology},
	}
}

// All are the mutants. The first ones are those that a short run takes.
var All = slices.Concat(locks, redlocks, semaphores, elections, guards, places, simulated, modelled, handOvers)

var locks = []Mutant{
	{
		"TTL counted from the reply", "a slow reply makes the holder believe for longer than the server does", "core/internal/acquire/acquisition.go",
		[][2]string{{"a.sentAt = max(a.sentAt, granted.SentAt)", "a.sentAt = max(a.Env.Now(), granted.SentAt)"}},
		inTests("lease", "TestValidityCountsFromSending"),
	},
	{
		"release without owner check", "etcd-io/etcd#22082: a late release frees the lock of the next holder", "core/internal/script/lua/lock/release.lua",
		[][2]string{
			{"if not held[2] then", "if redis.call('EXISTS', lock) == 0 then"},
			{"refuseUnless(isNumber(held[1], maxToken)", "refuseUnless(isNumber(held[1] or '1', maxToken)"},
			{"if tonumber(held[1]) > 1 then", "if tonumber(held[1] or 1) > 1 then"},
		},
		inTests("mutex", "TestPeerStaleUnlockFreesASuccessor"),
	},
	{
		"renewal after unlock", "redisson/redisson: a watchdog that continues", "core/internal/keepalive/renewer.go",
		[][2]string{{"	return r.removeLocked(e)\n}\n\n// RemoveIfOver", "	return e.liveLocked()\n}\n\n// RemoveIfOver"}},
		inKeepalive("TestAnswerAfterUnlockIsIgnored|TestRenewedEachThird"),
	},
	{
		"release without owner check, simulated", "the same, found by its effects", "core/internal/script/lua/lock/release.lua",
		[][2]string{
			{"if not held[2] then", "if redis.call('EXISTS', lock) == 0 then"},
			{"refuseUnless(isNumber(held[1], maxToken)", "refuseUnless(isNumber(held[1] or '1', maxToken)"},
			{"if tonumber(held[1]) > 1 then", "if tonumber(held[1] or 1) > 1 then"},
		},
		inSimulation,
	},
	{
		"renew without owner check", "one holder prolongs the lease of the next", "core/internal/script/lua/lock/renew.lua",
		[][2]string{
			{"string.match(held[8] and held[6] or '', '^(.-)(%d+)( %d+)$')", "string.match(held[6] or '', '^(%a* ?)(%d+)( %d+)$')"},
			{"if not held[5] and (not held[1] or held[6] == 'reading') then", "if not held[5] and not held[2] then"},
		},
		inTests("inspect", "TestRenewalOfASuccessorsLock"),
	},
	{
		"pub/sub without poll", "redisson/redisson#5761: the waiter waits for ever for a lost message", "core/internal/acquire/waiters.go",
		[][2]string{{"subscribedPollInterval = 2 * time.Second", "subscribedPollInterval = time.Hour"}},
		inTests("waiting", "TestFreedWithoutAMessage"),
	},
	{
		"re-entry counted by INCR", "a command that is sent twice enters twice, and one release does not free", "core/internal/script/lua/lock/mutex_common.lua",
		[][2]string{{"  if not r.repeated then", "  if true then"}},
		inTests("mutex", "TestPeerTokenOfRetriedAcquireIsZero"),
	},
	{
		"queue ordered by a clock", "a clock that is set back lets the last in first", "core/internal/script/lua/lock/queue_acquire.lua",
		[][2]string{{"number = math.max(micros, lastExclusive + 1, lastShared + 1)", "number = micros"}},
		inTests("outage", "TestClockSetBackKeepsTheOrder"),
	},
	{
		"hold key shared by readers", "one reader's renewal keeps the holds of crashed readers", "core/internal/script/lua/lock/renew.lua",
		[][2]string{{
			"  redis.call('ZADD', shareExpiries, newExpiry(before), id)",
			"  for _, member in ipairs(redis.call('ZRANGE', shareExpiries, 0, -1)) do\n" +
				"    redis.call('ZADD', shareExpiries, newExpiry(before), member)\n  end",
		}},
		inTests("readwrite", "TestKilledReader|TestSharesKeepTheirOwnTime|TestHoldsHaveTheirOwnTime"),
	},
	{
		"share without expiry refused", "once share_expiries was lost, a release fails, and is sent again for nothing", "core/internal/script/lua/lock/queue_common.lua",
		[][2]string{{" or not call('ZSCORE', shareExpiries, id))", ")"}},
		Killer{Package: "core/internal/script", Run: "TestShareWithoutExpiry"},
	},
	{
		"read timeout of the user", "a lost reply is noticed when callers have given up", "core/internal/transport/paths.go",
		[][2]string{{"return min(o.ReadTimeout, maxReadTimeout)", "return o.ReadTimeout"}},
		inTransport("TestReadTimeoutIsBounded"),
	},
	{
		"first look counted", "after an outage it warns of subscriptions that are not confirmed", "core/internal/transport/subscriptions.go",
		[][2]string{{"	case u.looked.IsZero():\n", ""}},
		inTransport("TestUnheardChannels"),
	},
	{
		"WAIT on another connection", "it covers that connection's writes, and there are none", "core/internal/transport/ack.go",
		[][2]string{{
			"pipeline(conn, batch, command, wait)",
			"other := redis.NewClient(rdb.Options())\n\t\t_ = other.Ping(context.Background()).Err()\n\t\t" +
				"pipeline(conn, batch, command)\n\t\t_ = other.Process(context.Background(), wait)\n\t\t_ = other.Close()",
		}},
		inTests("sentinel", "TestUnacknowledgedGrantsAreTakenBack"),
	},
	{
		"token raised again without a write", "WAIT has nothing to wait for, and a promoted replica grants a smaller token", "core/internal/script/lua/lock/raise.lua",
		[][2]string{{"redis.call('HSET', lock, 'token', tonumber(held[2]) < token and ARGV[2] or held[2])", "if tonumber(held[2]) < token then redis.call('HSET', lock, 'token', ARGV[2]) end"}},
		inCore("TestRepetitionsAreReplicated"),
	},
	{
		"tombstone missing", "an acquire that arrives after its release blocks the lock without a holder", "core/internal/script/lua/lock/release.lua",
		[][2]string{{"  return remember(0, missingMemory)", "  return 0"}},
		inTests("release", "TestAcquireAfterItsRelease"),
	},
	{
		"token forgotten", "a counter that begins anew after FLUSHALL", "core/internal/script/lua/lock/compact_grant.lua",
		[][2]string{{"token = time[1] * 1000000 + time[2]", "token = 1000"}},
		inTests("strategies", "TestConformance/^Mutex$/TokensGrow"),
	},
	{
		"last token always fresh", "a failover that loses the last tokens draws them again", "core/internal/script/lua/lock/compact_grant.lua",
		[][2]string{{"local tokenFresh = 7199990", "local tokenFresh = 0"}},
		inTests("mutex", "TestTokensAfterALossyFailover"),
	},
	{
		"compact share renewed with two keys", "a reader loses its lease while its slot moves", "core/internal/script/instance.go",
		[][2]string{{"	if h.Shares && !h.Compact {", "	if h.Shares {"}},
		inTests("cluster", "TestLeasesSurviveAMigration/plain"),
	},
	{
		"no timer for the loss", "the holder notices when the server answers, or never", "core/internal/keepalive/renewer.go",
		[][2]string{
			{"return now >= min(v.validUntil, v.endAt) }", "return now >= v.endAt }"},
			{"return min(v.validUntil, v.renewAt, v.endAt, v.warnAt) }", "return min(v.renewAt, v.endAt, v.warnAt) }"},
		},
		inTests("strategies", "TestConformance/^Mutex$/(FixedTTLExpires|FrozenServersLoseTheLease)$"),
	},
	{
		"release heeds a context that has ended", "bsm/redislock: it is never sent", "core/internal/acquire/acquisition.go",
		[][2]string{
			{"command(first.Reset(ctx))", "command(ctx)"},
			{"	detached, cancel := detach(ctx)\n", "	detached, cancel := context.WithCancel(ctx)\n"},
		},
		inTests("strategies", "TestConformance/^Mutex$/UnlockWithDeadContextWorks"),
	},
	{
		"renew that a full server refuses", "locks are lost while Redis is healthy", "core/internal/script/lua/lock/renew.lua",
		[][2]string{{
			"  redis.call('PEXPIRE', key, math.min(left, longest))",
			"  redis.call('SET', key .. ':renewed', 1, 'PX', 1)\n  redis.call('PEXPIRE', key, math.min(left, longest))",
		}},
		inTests("outage", "TestFullServer"),
	},
	{
		"half a grant stays", "a script that stops halfway leaves a lock without an expiry", "core/internal/script/lua/lock/compact_grant.lua",
		[][2]string{{"    if type(redis.pcall('DEL', KEYS[1])) == 'table' then\n      redis.call('SET', KEYS[1], '', 'PX', 1)\n    end\n", ""}},
		inTests("rights", "TestPartialAcquire|TestPartialScript"),
	},
	{
		"keys without a tag", "in a Cluster they lie in several slots", "core/internal/script/keys.go",
		[][2]string{{`open, shut, colon := ":{", "}", ":{"`, `open, shut, colon := ":", "", ":"`}},
		inCore("FuzzKeys"),
	},
	{
		"once recorded by the last run to end", "a run that was overtaken overwrites the record", "core/internal/script/lua/once/finish.lua",
		[][2]string{{"  elseif other and other ~= 'retry' then", "  elseif false then"}},
		inTests("once", "TestLateComplete"),
	},
	{
		"success erased by a run that released", "a later attempt that took no effect keeps an earlier success from its record",
		"core/internal/script/lua/once/finish.lua",
		[][2]string{{"  if other == 'running' then\n", "  if not other and tonumber(r.token or 0) > tonumber(ARGV[3]) then\n    return remember(0, kept)\n  elseif other == 'running' then\n"}},
		inTests("once", "TestLateComplete|TestOnceModel"),
	},
	{
		"run again before its own end is sent", "a client begins a key whose end it has not been able to send",
		"core/internal/script/once_end.go",
		[][2]string{{"	if u.count.Load() == 0 {\n", "	if u != nil {\n"}},
		inTests("once", "TestEndBehindABegin"),
	},
	{
		"overtaken end given up", "an end that finds another attempt running is remembered as stale",
		"core/internal/script/lua/once/finish.lua",
		[][2]string{{"    return {0, correctDeadline(r, left), r.id or ''}\n", "    return remember(0, kept)\n"}},
		inCore("TestOvertakenEndIsRecordedLater"),
	},
	{
		"late declaration", "a copy of an earlier `Declare` overwrites a later one that was confirmed",
		"core/internal/script/lua/once/declare.lua",
		[][2]string{{"if isNumber(r.declaration, maxToken) and tonumber(r.declaration) > tonumber(ARGV[3]) then", "if false then"}},
		inTests("once", "TestDeclarationArrivesLate"),
	},
	{
		"end without an answer, recorded anew", "a repeated `Complete` brings a record back that was forgotten",
		"core/internal/script/lua/once/marks.lua",
		[][2]string{{"  call('ZADD', marks, integer(ms + memory), r.token)\n", ""}},
		inTests("once", "TestEndWithoutAnswer"),
	},
	{
		"own end taken for another one", "a repeated `Complete` does not recognise the record that it has left",
		"core/internal/script/lua/once/finish.lua",
		[][2]string{{"if ownEnd(r) or call(", "if call("}},
		inTests("once", "TestEndWithoutAnswer"),
	},
	{
		"request in doubt, forgotten at the end", "the end of an attempt whose begin may still arrive is not remembered",
		"core/internal/script/once_end.go",
		[][2]string{{"	case h.Unanswered > 0:\n", "	case false:\n"}},
		inTests("once", "TestEndOfABeginInDoubt"),
	},
	{
		"quota without failures", "a run that fails leaves the quota, and its record stays", "core/internal/script/lua/once/release.lua",
		[][2]string{{"  call('DEL', record)\n", ""}},
		inTests("once", "TestQuotaBoundsNewKeys"),
	},
	{
		"ValidUntil read after the process was stopped", "found by the work on this suite", "core/lease.go",
		[][2]string{
			{"	now := time.Now() // first:", "	left := l.engine.renewer.ValidUntil(&l.entry).Sub(l.engine.now()) //"},
			{"	return now.Add(l.engine.renewer.ValidUntil(&l.entry).Sub(l.engine.now()))", "	return time.Now().Add(left)"},
		},
		inCore("TestValidUntilOfAPausedProcess"),
	},
	{
		"late request granted", "the end of a hold is forgotten while a request of it may arrive", "core/internal/script/strategy.go",
		[][2]string{{"	case what == NeverHeld || h.Unanswered > 0:", "	case what == NeverHeld:"}},
		inTests("release", "TestRequestArrivesAfterItsHold/Mutex|TestBeginArrivesAfterItsAttempt"),
	},
	{
		"waiter's late request granted", "the end of a hold that was granted in the queue is forgotten while a request of it may arrive",
		"core/internal/script/strategy.go",
		[][2]string{{"h.Unanswered == 1 && !h.Stored:", "h.Unanswered == 1:"}},
		inTests("release", "TestRequestArrivesAfterItsWaiter"),
	},
	{
		"force-released, and called released", "a repeated unlock that finds nothing takes it for its own doing", "core/internal/script/lua/lock/force.lua",
		[][2]string{{"  if mark[1] then", "  if false then"}},
		inTests("release", "TestReleaseWithoutAnswer/^forced"),
	},
	{
		"released, and called lost", "an unlock whose answer was lost is reported as a lost lock", "core/internal/script/strategy.go",
		[][2]string{{"	if h.ReleasesUnanswered == 0 ||", "	if h.ReleasesUnanswered >= 0 ||"}},
		inTests("release", "TestReleaseWithoutAnswer/^taken_between"),
	},
	{
		"expired or released, unknown which", "the lease ends during the retries of an unlock", "core/internal/script/strategy.go",
		[][2]string{{"h.ValidUntil.Sub(i.Now()) < releaseMemory", "h.ValidUntil.Sub(i.Now()) < 0"}},
		inTests("lease", "TestUnlockOutlivesTheLease"),
	},
	{
		"token key of another slot", "a Cluster behind one address refuses each lock", "core/internal/script/keys.go",
		[][2]string{{"	return t.arg(lock) != used", "	return false"}},
		inTests("cluster", "TestClusterBehindOneAddress"),
	},
	{
		"late request not barred", "a lease that runs out is not released, so nothing refuses its late request", "core/internal/script/instance.go",
		[][2]string{{"func (i *Instance) Bar(h *Hold) {\n", "func (i *Instance) Bar(h *Hold) {\n\tif true {\n\t\treturn\n\t}\n"}},
		inTests("release", "TestRequestArrivesAfterALeaseThatRanOut/Mutex|TestBeginArrivesAfterALostAttempt"),
	},
	{
		"a goroutine for each release", "an outage leaves as many as calls have failed", "core/internal/transport/retry.go",
		[][2]string{{"	if !p.sending {\n", "	if true {\n"}},
		inTests("release", "TestFrozenServerCostsOneGoroutine"),
	},
	{
		"request that went unanswered counts as never sent", "it arrives after the caller has returned, and blocks the lock without a holder",
		"core/internal/transport/executor.go",
		[][2]string{{"	c.Repeated, c.keys.written = first, 0\n", "	c.keys.written = 0\n"}},
		inTests("outage", "TestRepeatedRequestIsTakenBack"),
	},
	{
		"lone command heeds no context", "on its caller's goroutine it waits for as long as the connection does", "core/internal/transport/paths.go",
		[][2]string{{"directTimeout = 100 * time.Millisecond", "directTimeout = time.Hour"}},
		inTests("outage", "TestFrozenServerWithoutTimeout"),
	},
	{
		"detached command without timeout", "a release waits for ever for the answer to its first try", "core/internal/transport/executor.go",
		[][2]string{{"timeout = FirstAnswerTimeout\n", "timeout = FirstAnswerTimeout + time.Hour\n"}},
		inTests("outage", "TestFrozenServerWithoutTimeout"),
	},
	{
		"wait without end", "a call without a deadline waits for as long as go-redis dials", "core/internal/transport/executor.go",
		[][2]string{{"timeout := AnswerTimeout + c.Ack.Timeout", "timeout := AnswerTimeout + time.Hour"}},
		inTransport("TestEveryWaitEnds"),
	},
	{
		"late answer for another command", "the channel of a wait without an answer serves the next command", "core/internal/transport/executor.go",
		[][2]string{{"		return ErrNotSent\n	case !c.hasReply():", "		return ErrNotSent\n	case !c.hasReply():\n		e.answers.Put(c.answered)"}},
		inTransport("TestLateAnswersEndNoOtherWait"),
	},
	{
		"answer before the end of the watch", "the end of one wait ends that of another command", "core/internal/transport/paths.go",
		[][2]string{{"		q.returned(s)\n		answered = batch\n", "		for _, c := range batch {\n			c.deliver()\n		}\n		q.returned(s)\n"}},
		inTransport("TestNothingFollowsAnAnswer"),
	},
	{
		"unread reply kept", "the next command gets it as its own: a lock is granted to two", "core/internal/transport/paths.go",
		[][2]string{{"before, returned := timesWritten(cmds), false\n", "before, returned := timesWritten(cmds), true\n"}},
		inTransport("TestUnreadReplyOnTheDirectPath"),
	},
	{
		"unread reply to a hook kept", "the same, if a hook of the client has sent another command", "core/internal/transport/paths.go",
		[][2]string{{"before == notKnown || ", ""}},
		inTransport("TestUnreadRepliesOfABatch"),
	},
	{
		"unread reply to a list kept", "the same, after SCAN", "core/internal/transport/cluster.go",
		[][2]string{{"		rdb = e.watched(only)\n", "		rdb = only\n"}},
		inTransport("TestUnreadRepliesOfOthers"),
	},
	{
		"status taken for a token", "the answer to a release grants a lock", "core/internal/script/script.go",
		[][2]string{{"leastToken = transport.LastStatus + 1", "leastToken = 1"}},
		Killer{Package: "core/internal/script", Run: "TestRepliesAreChecked"},
	},
	{
		"hook that ends the background", "after it no release is sent again", "core/internal/transport/retry.go",
		[][2]string{{"			p.restart(batch)\n", ""}},
		inTransport("TestPendingAfterGoexit"),
	},
	{
		"no connect deadline", "an unlock waits for as long as go-redis dials", "core/internal/transport/paths.go",
		[][2]string{{"	c.ctx = &c.connectCtx\n", ""}},
		inTests("outage", "TestNoConnectionToBeHad"),
	},
	{
		"hooks lost on the direct path", "the copies that go-redis makes have none", "core/internal/transport/paths.go",
		[][2]string{{"	view := rdb.Conn()\n", "	view := rdb.WithTimeout(directTimeout).Conn()\n"}},
		inTests("outage", "TestHooksSeeLoneCommands"),
	},
	{
		"leader that continues", "the context of a leader does not end with its lead", "core/election.go",
		[][2]string{{
			"l.leading, l.stop, _ = lease.end.Within(lease.within(leading), keptLease{lease}) // bound until leadership ends",
			"l.leading, l.stop = context.WithCancelCause(lease.within(leading))",
		}},
		inTests("election", "TestRunAfterALoss|TestRunEndsItsContextFirst"),
	},
	{
		"late proclamation", "a repetition overwrites the newer value", "core/internal/script/lua/lock/proclaim.lua",
		[][2]string{{"tonumber(before) < number then", "tonumber(before) ~= number then"}},
		inCore("TestProclamationArrivesLate"),
	},
	{
		"lead freed under its function", "a panic frees the lead while goroutines of the leader may be at work", "core/leadership.go",
		[][2]string{{"			l.lease.Abandon()\n", "			_ = l.lease.finish(ctx)\n"}},
		inTests("election", "TestRunAbandons"),
	},
	{
		"lost lead freed at once", "the next leader is elected while the work of the last one stops", "core/lease.go",
		[][2]string{{"leftToExpire(cause) || l.leavesLosses", "leftToExpire(cause) || false && l.leavesLosses"}},
		inTests("election", "TestResignAfterALoss"),
	},
	{
		"record that was given up, begun", "a begin that arrives after its release", "core/internal/script/lua/once/begin_fast.lua",
		[][2]string{{"redis.call('EXISTS', KEYS[1], KEYS[3])", "redis.call('EXISTS', KEYS[1])"}},
		inTests("release", "TestBeginArrivesAfterItsAttempt"),
	},
	{
		"bound context forgotten", "the context of a run does not end with its lease", "core/internal/keepalive/renewer.go",
		[][2]string{{"		bound.end(cause)\n", "		_ = cause\n"}},
		inTests("once", "TestAttemptBind"),
	},
	{
		"token forgotten, in a round", "the same as above, found by its effects", "core/internal/script/lua/lock/compact_grant.lua",
		[][2]string{{"token = time[1] * 1000000 + time[2]", "token = 1000"}},
		inRound("memory"),
	},
	{
		"exclusion given up, in a round", "a caller that is too late enters all the same", "core/internal/script/lua/lock/mutex_common.lua",
		[][2]string{{"    return {0, r.lockTTL, held[7] and 1 or 0, mutexOwner(r.lock)}\n", "    if r.lockTTL > 300 then return {0, r.lockTTL} end\n    r.count = 0\n    return nil\n"}},
		inRound("aof"),
	},
}
