package core_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// onceScripts sends the very scripts of Once about one name, as clients that repeat them would.
type onceScripts struct {
	t    testing.TB
	rdb  *redis.Client
	name string
}

const hour = 3_600_000 // ms

// run sends a script about an attempt; a script may be sent as often as one likes.
func (s *onceScripts) run(parts []string, id string, args ...any) string {
	s.t.Helper()
	keys := []string{recordOf(s.name)}
	ended := "holdfast:released:{lock:" + s.name + "}:" + id
	switch parts[len(parts)-1] {
	case "oncescript/begin":
		keys = append(keys, "holdfast:token:{lock:"+s.name+"}", ended)
	case "oncescript/renew", "oncescript/declare":
	default:
		keys = append(keys, ended)
	}
	reply, err := luaScript(s.t, parts...).Run(context.Background(), s.rdb, keys, args...).Result()
	if err != nil {
		s.t.Errorf("%s of %s: %v", parts[len(parts)-1], id, err)
	}
	return fmt.Sprint(reply)
}

func (s *onceScripts) begin(id string) string {
	reply := s.run([]string{"oncescript/begin_fast", "oncescript/common", "oncescript/group", "oncescript/begin"}, id, id, hour, hour, hour, "retry", "print", 0, "", "", "note")
	if status, _, _ := strings.Cut(reply, " "); status != "[1" {
		return status // the times that follow pass
	}
	return reply
}

func (s *onceScripts) renew(id string) string {
	return s.run([]string{"oncescript/common", "oncescript/renew"}, id, id, hour, hour)
}

func (s *onceScripts) declare(id string) string {
	return s.run([]string{"oncescript/common", "oncescript/declare"}, id, id, "completed")
}

func (s *onceScripts) finish(script, id string, more ...any) string {
	args := append([]any{id, hour, hour, "PUBLISH", "channel", 7, 1}, more...)
	return s.run([]string{"publish", "oncescript/common", "oncescript/group", "oncescript/finish_common", script}, id, args...)
}

func (s *onceScripts) complete(id string) string {
	return s.finish("oncescript/complete", id, "value of "+id, 0, "print")
}

func (s *onceScripts) hold(id string) string { return s.finish("oncescript/hold", id, "reason") }

func (s *onceScripts) release(id string) string {
	return s.run([]string{"publish", "oncescript/common", "oncescript/group", "oncescript/release"}, id, id, hour, 0, "PUBLISH", "channel")
}

// giveUp is the release of an attempt that nobody had.
func (s *onceScripts) giveUp(id string) string {
	return s.run([]string{"publish", "oncescript/common", "oncescript/group", "oncescript/release"}, id, id, hour, 1, "PUBLISH", "channel")
}

func (s *onceScripts) forget(id string) string {
	return s.run([]string{"publish", "oncescript/common", "oncescript/forget"}, id, hour, "PUBLISH", "channel")
}

// resolve is done by somebody else than the attempts.
func (s *onceScripts) resolve(id string) string {
	reply := s.run([]string{"publish", "oncescript/common", "oncescript/group", "oncescript/finish_common", "oncescript/resolve"}, id,
		id, hour, hour, "PUBLISH", "channel", "value of "+id, 0, "print")
	if reply != "[1 1]" {
		reply, _, _ = strings.Cut(reply, " ")
	}
	return reply
}

// state is what there is of the record, without what says when.
func (s *onceScripts) state() map[string]string {
	fields := contents(s.t, s.rdb, s.name)
	delete(fields, "deadline")
	return fields
}

// scriptsOfAttempts are the scripts that a client repeats if a reply is lost. Each is about the attempt with that ID.
var scriptsOfAttempts = map[string]func(*onceScripts, string) string{
	"begin": (*onceScripts).begin, "renew": (*onceScripts).renew, "declare": (*onceScripts).declare,
	"complete": (*onceScripts).complete, "hold": (*onceScripts).hold, "release": (*onceScripts).release,
	"give up": (*onceScripts).giveUp, "forget": (*onceScripts).forget,
	"resolve": func(s *onceScripts, _ string) string { return s.resolve("r") },
}

// statesBefore lead to each state that the record can have when a script about attempt "a" runs.
var statesBefore = map[string]func(*onceScripts){
	"absent":               func(*onceScripts) {},
	"own":                  func(s *onceScripts) { s.begin("a") },
	"own, expired":         func(s *onceScripts) { s.begin("a"); abandon(s.t, s.rdb, s.name) },
	"own, completed":       func(s *onceScripts) { s.begin("a"); s.complete("a") },
	"own, held":            func(s *onceScripts) { s.begin("a"); s.hold("a") },
	"own, released":        func(s *onceScripts) { s.begin("a"); s.release("a") },
	"of another":           func(s *onceScripts) { s.begin("a"); abandon(s.t, s.rdb, s.name); s.begin("b") },
	"completed by another": func(s *onceScripts) { s.begin("b"); s.complete("b") },
	"released by another":  func(s *onceScripts) { s.begin("b"); s.release("b") },
	"resolved by another":  func(s *onceScripts) { s.begin("a"); abandon(s.t, s.rdb, s.name); s.resolve("x") },
}

// eventsBetween happen between the two runs of a script.
var eventsBetween = map[string]func(*onceScripts){
	"nothing":         func(*onceScripts) {},
	"eviction":        func(s *onceScripts) { s.rdb.Del(context.Background(), recordOf(s.name)) },
	"forget":          func(s *onceScripts) { s.forget("f") },
	"forget, another": func(s *onceScripts) { s.forget("f"); s.begin("c") },
	"forget, done":    func(s *onceScripts) { s.forget("f"); s.begin("c"); s.complete("c") },
	"end of another":  func(s *onceScripts) { s.release("b") },
	"resolve":         func(s *onceScripts) { s.resolve("y") },
}

// TestOnceScriptsTwice runs each script twice, in each state of the record, with something else in between: the second
// run answers like the first and changes nothing.
func TestOnceScriptsTwice(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client()
	for script, run := range scriptsOfAttempts {
		for was, prepare := range statesBefore {
			for then, happen := range eventsBetween {
				s := &onceScripts{t, rdb, script + "," + was + "," + then}
				prepare(s)
				first := run(s, "a")
				happen(s)
				state := s.state()
				second := run(s, "a")
				// These have no memory of an end: they are about a record that is there, and say what is true of it now.
				if slices.Contains([]string{"begin", "renew", "declare"}, script) && then != "nothing" {
					continue
				}
				if script == "resolve" && first != "[1 1]" && then != "nothing" {
					continue // the same: it was refused
				}
				if after := s.state(); first != second || !maps.Equal(state, after) {
					t.Errorf("%s: %s, then %s, and %v has become %v", s.name, first, second, state, after)
				}
			}
		}
	}
	for _, key := range rdb.Keys(context.Background(), "*").Val() {
		if rdb.PTTL(context.Background(), key).Val() < 0 {
			t.Errorf("%s stays for ever", key)
		}
	}
}

// TestBeginAfterItsEnd: whatever has ended the attempt, a begin that arrives later claims nothing.
func TestBeginAfterItsEnd(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client()
	for end, run := range map[string]func(*onceScripts, string) string{
		"complete": (*onceScripts).complete, "hold": (*onceScripts).hold, "release": (*onceScripts).release,
		"give up": (*onceScripts).giveUp,
	} {
		for _, began := range []bool{false, true} {
			s := &onceScripts{t, rdb, fmt.Sprint(end, began)}
			if began {
				s.begin("a")
			}
			run(s, "a")
			rdb.Del(context.Background(), recordOf(s.name))
			if reply := s.begin("a"); reply != "[-1" || len(s.state()) != 0 {
				t.Errorf("%s: begin says %s and makes %v", s.name, reply, s.state())
			}
		}
	}
}

// TestReleaseOfACompletedRun: so late that nothing is remembered of its end, a release does not undo it.
func TestReleaseOfACompletedRun(t *testing.T) {
	t.Parallel()
	s := &onceScripts{t, redistest.Start(t).Client(), "name"}
	s.begin("a")
	s.complete("a")
	s.rdb.Del(context.Background(), "holdfast:released:{lock:name}:a")
	before := s.state()
	if reply := s.release("a"); reply != "[0 1]" || !maps.Equal(before, s.state()) {
		t.Errorf("%s, and %v has become %v", reply, before, s.state())
	}
}

// TestRepeatedEndsAreRemembered for as long again: whoever repeats one may have to do it once more. It is also a write,
// which replicas can be waited for.
func TestRepeatedEndsAreRemembered(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, end := range map[string]func(*onceScripts, string) string{
		"complete": (*onceScripts).complete, "hold": (*onceScripts).hold, "release": (*onceScripts).release,
		"forget": (*onceScripts).forget, "resolve": (*onceScripts).resolve,
	} {
		s := &onceScripts{t, redistest.Start(t).Client(), name}
		s.begin("a")
		end(s, "a")
		key := "holdfast:released:{lock:" + name + "}:a"
		s.rdb.PExpire(ctx, key, long)
		if end(s, "a"); s.rdb.PTTL(ctx, key).Val() <= long {
			t.Errorf("%s: remembered for %v", name, s.rdb.PTTL(ctx, key).Val())
		}
	}
}

// TestRenewalsOfNoAttempt: a renewal that arrives when its attempt is over changes nothing and says so.
func TestRenewalsOfNoAttempt(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client()
	for name, end := range map[string]func(*onceScripts){
		"completed": func(s *onceScripts) { s.complete("a") },
		"held":      func(s *onceScripts) { s.hold("a") },
		"released":  func(s *onceScripts) { s.release("a") },
		"forgotten": func(s *onceScripts) { s.forget("f") },
		"resolved":  func(s *onceScripts) { abandon(t, rdb, s.name); s.resolve("r") },
		"followed":  func(s *onceScripts) { abandon(t, rdb, s.name); s.begin("b") },
	} {
		s := &onceScripts{t, rdb, name}
		s.begin("a")
		end(s)
		rdb.PExpire(context.Background(), recordOf(name), long)
		before := contents(t, rdb, name)
		if reply := s.renew("a"); reply != "0" || !maps.Equal(before, contents(t, rdb, name)) {
			t.Errorf("%s: %s, and %v has become %v", name, reply, before, contents(t, rdb, name))
		}
		if left := rdb.PTTL(context.Background(), recordOf(name)).Val(); left > long {
			t.Errorf("%s: kept for %v", name, left)
		}
	}
}

// TestRepeatedBeginKeepsItsRecord: the sender of a repetition counts its lease from then, so neither the lease nor the
// record may end before, though nothing renews it.
func TestRepeatedBeginKeepsItsRecord(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t)
	rdb, relay := server.Client(), server.Relay()
	locks := newClient(t, relay.Client(), core.WithFixedTTL(long))
	loadOnce(t, rdb)
	once := locks.Once("name", core.WithRetention(10*time.Millisecond))
	relay.LoseReplies(recordOf("name"), 1, redistest.Closed)
	nth(relay, recordOf("name"), 2, func() { // so late it comes
		rdb.PExpire(ctx, recordOf("name"), within)
		rdb.HSet(ctx, recordOf("name"), "deadline", time.Now().Add(within).UnixMilli())
	})
	a := mustBegin(t, once)
	if relay.LostReplies() != 1 {
		t.Error("no reply was lost")
	}
	if r := mustPeek(t, once); r.Lease < long-within || r.Retention < long-within || r.Attempt != 1 {
		t.Errorf("%+v, the holder believes in %v", r, time.Until(a.ValidUntil()))
	}
}

// TestGivenUpAttemptOvertakesNone: nobody ever had it, so the attempt before it may still record how it ended; and if it
// was the first, it leaves no record.
func TestGivenUpAttemptOvertakesNone(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client()
	s := &onceScripts{t, rdb, "name"}
	s.begin("a")
	abandon(t, rdb, s.name)
	s.begin("b")
	s.giveUp("b")
	if reply := s.complete("a"); reply != "[2 1]" || s.state()["value"] != "value of a" || s.state()["attempt"] != "1" {
		t.Errorf("%s, %v", reply, s.state())
	}
	s = &onceScripts{t, rdb, "first"}
	s.begin("a")
	s.giveUp("a")
	if n := rdb.Exists(context.Background(), recordOf(s.name)).Val(); n != 0 {
		t.Errorf("left: %v", s.state())
	}
}
