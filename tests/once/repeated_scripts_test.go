package once_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// onceScripts sends the very scripts of Once about one name, as clients that repeat them would.
type onceScripts struct {
	t    testing.TB
	rdb  *redis.Client
	name string
	// remembered is true if the completions are remembered although nothing is in doubt.
	remembered bool
	tokens     map[string]string // of the attempts that have begun, by ID
	seen       map[string][5]any // state and token that the operator saw before the first run, by the ID of the action
}

const hour = 3_600_000 // ms

// newOnceScripts returns the scripts about a name.
func newOnceScripts(t testing.TB, rdb *redis.Client, name string) *onceScripts {
	return &onceScripts{t: t, rdb: rdb, name: name, tokens: make(map[string]string), seen: make(map[string][5]any)}
}

// run sends a script about an attempt; a script may be sent as often as one likes.
func (s *onceScripts) run(parts []string, id string, args ...any) string {
	s.t.Helper()
	keys := []string{coretest.RecordOf(s.name)}
	ended := "holdfast:released:{lock:" + s.name + "}:" + id
	switch script := parts[len(parts)-1]; script {
	case "once/begin":
		keys = append(keys, "holdfast:token", ended)
	case "once/renew", "once/declare":
	case "once/release":
		keys = append(keys, ended)
	default:
		keys = append(keys, ended, "holdfast:ended:{lock:"+s.name+"}")
	}
	reply, err := coretest.LuaScript(s.t, parts...).Run(context.Background(), s.rdb, keys, args...).Result()
	if err != nil {
		s.t.Errorf("%s of %s: %v", parts[len(parts)-1], id, err)
	}
	return fmt.Sprint(reply)
}

func (s *onceScripts) begin(id string) string {
	reply := s.run(coretest.BeginParts, id, id, hour, hour, hour, "", "print", "note")
	switch status, rest, list := strings.Cut(reply, " "); {
	case !list:
		s.tokens[id] = reply // of a first attempt
	case status == "[1":
		s.tokens[id], _, _ = strings.Cut(rest, " ")
	default:
		return status // the times that follow pass
	}
	return reply
}

// token returns the token of an attempt, or an early one if the attempt has not begun.
func (s *onceScripts) token(id string) string {
	if token, ok := s.tokens[id]; ok {
		return token
	}
	return "7"
}

func (s *onceScripts) renew(id string) string { return s.run(coretest.RenewParts, id, id, hour, hour) }

func (s *onceScripts) declare(id string) string {
	return s.run(coretest.DeclareParts, id, id, "completed", 1)
}

func (s *onceScripts) finish(id, content, omitted, fingerprint string) string {
	memory := ""
	if s.remembered {
		memory = fmt.Sprint(hour)
	}
	reply := s.run(coretest.FinishParts, id, id, hour, s.token(id), "PUBLISH", "channel", content, memory, omitted, fingerprint)
	reply, _, _ = strings.Cut(reply, " ") // the time that follows passes
	return reply
}

func (s *onceScripts) complete(id string) string {
	return s.finish(id, "value of "+id, "", "print")
}

func (s *onceScripts) hold(id string) string { return s.finish(id, "reason", "unknown", "") }

func (s *onceScripts) release(id string) string {
	return s.run(coretest.ReleaseParts, id, id, hour, 0, "PUBLISH", "channel")
}

// giveUp is the release of an attempt that no caller had.
func (s *onceScripts) giveUp(id string) string {
	return s.run(coretest.ReleaseParts, id, id, hour, 1, "PUBLISH", "channel")
}

// see returns what the operator saw of the record before the first run of an action: its state, token, end, attempt and
// outcome on expiry.
func (s *onceScripts) see(id string) [5]any {
	s.t.Helper()
	if _, again := s.seen[id]; !again {
		record, err := coretest.LuaScript(s.t, "once/common", "once/peek").Run(context.Background(), s.rdb, []string{coretest.RecordOf(s.name)}).Slice()
		if err != nil {
			s.t.Fatal(err)
		}
		fields := contents(s.t, s.rdb, s.name)
		attempt := fields["attempt"]
		if attempt == "" && fields["token"] != "" {
			attempt = "1"
		}
		s.seen[id] = [5]any{
			record[1], cmp.Or(fields["token"], "0"), cmp.Or(fields["ended"], "0"), cmp.Or(attempt, "0"), cmp.Or(fields["outcome_on_expiry"], "retry"),
		}
	}
	return s.seen[id]
}

func (s *onceScripts) forget(id string) string {
	saw := s.see(id)
	reply := s.run(coretest.ForgetParts, id, hour, "PUBLISH", "channel", saw[0], saw[1], 1, saw[2], saw[3], saw[4])
	reply, _, _ = strings.Cut(reply, " ")
	return reply
}

// resolve is done by a program other than the attempts.
func (s *onceScripts) resolve(id string) string {
	saw := s.see(id)
	reply := s.run(coretest.ResolveParts, id, id, hour, hour, "PUBLISH", "channel", "value of "+id, "", "print", 0, saw[0], saw[1], saw[2], saw[3], saw[4])
	reply, _, _ = strings.Cut(reply, " ")
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
	"own, expired":         func(s *onceScripts) { s.begin("a"); coretest.Abandon(s.t, s.rdb, s.name) },
	"own, completed":       func(s *onceScripts) { s.begin("a"); s.complete("a") },
	"own, held":            func(s *onceScripts) { s.begin("a"); s.hold("a") },
	"own, released":        func(s *onceScripts) { s.begin("a"); s.release("a") },
	"of another":           func(s *onceScripts) { s.begin("a"); coretest.Abandon(s.t, s.rdb, s.name); s.begin("b") },
	"completed by another": func(s *onceScripts) { s.begin("b"); s.complete("b") },
	"released by another":  func(s *onceScripts) { s.begin("b"); s.release("b") },
	"resolved by another":  func(s *onceScripts) { s.begin("a"); coretest.Abandon(s.t, s.rdb, s.name); s.resolve("x") },
}

// eventsBetween happen between the two runs of a script.
var eventsBetween = map[string]func(*onceScripts){
	"nothing":         func(*onceScripts) {},
	"eviction":        func(s *onceScripts) { s.rdb.Del(context.Background(), coretest.RecordOf(s.name)) },
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
	rdb := testkit.Start(t).Client()
	for script, run := range scriptsOfAttempts {
		for was, prepare := range statesBefore {
			for then, happen := range eventsBetween {
				s := newOnceScripts(t, rdb, script+","+was+","+then)
				s.remembered = true
				prepare(s)
				first := run(s, "a")
				happen(s)
				state := s.state()
				second := run(s, "a")
				// These have no memory of an end: they are about a record that is there, and say what is true of it now.
				if slices.Contains([]string{"begin", "renew", "declare"}, script) && then != "nothing" {
					continue
				}
				if script == "resolve" && first != "1" && then != "nothing" {
					continue // the same: it was refused
				}
				if first == "[0" && then != "nothing" {
					continue // the same: another attempt was running
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
	rdb := testkit.Start(t).Client()
	for end, run := range map[string]func(*onceScripts, string) string{
		"complete": (*onceScripts).complete, "hold": (*onceScripts).hold, "release": (*onceScripts).release,
		"give up": (*onceScripts).giveUp,
	} {
		for _, began := range []bool{false, true} {
			s := newOnceScripts(t, rdb, fmt.Sprint(end, began))
			s.remembered = true
			if began {
				s.begin("a")
			}
			run(s, "a")
			rdb.Del(context.Background(), coretest.RecordOf(s.name))
			if reply := s.begin("a"); reply != "[-1" || len(s.state()) != 0 {
				t.Errorf("%s: begin says %s and makes %v", s.name, reply, s.state())
			}
		}
	}
}

// TestReleaseOfACompletedRun: so late that nothing is remembered of its end, a release does not undo it.
func TestReleaseOfACompletedRun(t *testing.T) {
	t.Parallel()
	s := newOnceScripts(t, testkit.Start(t).Client(), "name")
	s.begin("a")
	s.complete("a")
	s.rdb.Del(context.Background(), "holdfast:released:{lock:name}:a")
	before := s.state()
	if reply := s.release("a"); reply != "0" || !maps.Equal(before, s.state()) {
		t.Errorf("%s, and %v has become %v", reply, before, s.state())
	}
}

// TestRepeatedEndsAreRemembered for as long again: a caller that repeats one may have to do it once more. It is also a write,
// which replicas can be waited for.
func TestRepeatedEndsAreRemembered(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, end := range map[string]func(*onceScripts, string) string{
		"complete": (*onceScripts).complete, "hold": (*onceScripts).hold, "release": (*onceScripts).release,
		"forget": (*onceScripts).forget, "resolve": (*onceScripts).resolve,
	} {
		s := newOnceScripts(t, testkit.Start(t).Client(), name)
		s.remembered = true
		s.begin("a")
		end(s, "a")
		key := "holdfast:released:{lock:" + name + "}:a"
		s.rdb.PExpire(ctx, key, coretest.Long)
		if end(s, "a"); s.rdb.PTTL(ctx, key).Val() <= coretest.Long {
			t.Errorf("%s: remembered for %v", name, s.rdb.PTTL(ctx, key).Val())
		}
	}
}

// TestRenewalsOfNoAttempt: a renewal that arrives when its attempt is over changes nothing and says so.
func TestRenewalsOfNoAttempt(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	for name, end := range map[string]func(*onceScripts){
		"completed": func(s *onceScripts) { s.complete("a") },
		"held":      func(s *onceScripts) { s.hold("a") },
		"released":  func(s *onceScripts) { s.release("a") },
		"forgotten": func(s *onceScripts) { s.forget("f") },
		"resolved":  func(s *onceScripts) { coretest.Abandon(t, rdb, s.name); s.resolve("r") },
		"followed":  func(s *onceScripts) { coretest.Abandon(t, rdb, s.name); s.begin("b") },
	} {
		s := newOnceScripts(t, rdb, name)
		s.begin("a")
		end(s)
		rdb.PExpire(context.Background(), coretest.RecordOf(name), coretest.Long)
		before := contents(t, rdb, name)
		if reply := s.renew("a"); reply != "0" || !maps.Equal(before, contents(t, rdb, name)) {
			t.Errorf("%s: %s, and %v has become %v", name, reply, before, contents(t, rdb, name))
		}
		if left := rdb.PTTL(context.Background(), coretest.RecordOf(name)).Val(); left > coretest.Long {
			t.Errorf("%s: kept for %v", name, left)
		}
	}
}

// TestRepeatedBeginKeepsItsRecord: the sender of a repetition counts its lease from then, so neither the lease nor the
// record may end before, though nothing renews it.
func TestRepeatedBeginKeepsItsRecord(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb, relay := server.Client(), server.Relay()
	locks := coretest.NewClient(t, relay.Client(), core.WithFixedTTL(coretest.Long))
	coretest.LoadOnce(t, rdb)
	once := locks.Once("name", core.WithRetention(10*time.Millisecond))
	relay.LoseReplies(coretest.RecordOf("name"), 1, testkit.Closed)
	coretest.BeforeRepetition(relay, coretest.RecordOf("name"), func() { // so late it comes
		rdb.PExpire(ctx, coretest.RecordOf("name"), coretest.Within)
		rdb.HSet(ctx, coretest.RecordOf("name"), "deadline", time.Now().Add(coretest.Within).UnixMilli())
	})
	a := coretest.MustBegin(t, once)
	if relay.LostReplies() != 1 {
		t.Error("no reply was lost")
	}
	if r := coretest.MustPeek(t, once); r.Lease < coretest.Long-coretest.Within || r.Retention < coretest.Long-coretest.Within || r.Attempt != 1 {
		t.Errorf("%+v, the holder believes in %v", r, time.Until(a.ValidUntil()))
	}
}

// TestGivenUpAttemptOvertakesNone: no caller ever had it, so the attempt before it may still record how it ended; and if it
// was the first, it leaves no record.
func TestGivenUpAttemptOvertakesNone(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	s := newOnceScripts(t, rdb, "name")
	s.begin("a")
	coretest.Abandon(t, rdb, s.name)
	s.begin("b")
	s.giveUp("b")
	if reply := s.complete("a"); reply != "2" || s.state()["value"] != "value of a" || s.state()["attempt"] != "1" {
		t.Errorf("%s, %v", reply, s.state())
	}
	s = newOnceScripts(t, rdb, "first")
	s.begin("a")
	s.giveUp("a")
	if n := rdb.Exists(context.Background(), coretest.RecordOf(s.name)).Val(); n != 0 {
		t.Errorf("left: %v", s.state())
	}
}
