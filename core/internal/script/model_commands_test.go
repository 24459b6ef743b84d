package script_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
)

// The operations of an episode: each is done by the scripts and by the model, and the answers compared.

// do makes an operation known. It returns its answer, which must be the same if it is repeated at once.
func (e *episode) do(repeatable bool, command func() string) {
	e.ops++
	e.last = nil
	e.answer = command()
	if repeatable {
		e.last = func() string {
			e.ops++
			return command()
		}
	}
}

func (e *episode) acquire(c *contender) {
	e.settle(c)
	asked := c.QueueNumber
	// A contender that comes back to a lost place, before others that are there, is let in by the next script.
	back := asked != 0 && e.model.seatOf(c.ID) == nil
	e.do(!back, func() string {
		h := c.Hold
		h.QueueNumber = asked
		got, err := e.protocol(c.kind).Acquire(context.Background(), &h, script.Wanted{Place: c.mayQueue, Tokens: c.tokens})
		want := e.model.acquire(c)
		if got.Granted || c.mayQueue {
			c.Stored = !c.unheard
		}
		text := fmt.Sprintf("granted=%v gone=%v upgrade=%v token=%d before=%d number=%d",
			got.Granted, got.HoldReleased, (got.Refused != nil), got.Token, got.Ahead, h.QueueNumber)
		e.note("%s by %s, ttl %v, min %v, waits %v: %s", c.strategy, c.ID, c.TTL, c.MinHold, c.mayQueue, text)
		switch {
		case err != nil:
			e.differs("acquire: %v", err)
		case got.Granted != want.Granted || got.HoldReleased != want.HoldReleased || (got.Refused != nil) != (want.Refused != nil):
			e.differs("acquire: granted=%v gone=%v upgrade=%v, want %v, %v, %v",
				got.Granted, got.HoldReleased, (got.Refused != nil), want.Granted, want.HoldReleased, (want.Refused != nil))
		case got.Granted && got.Slot != want.slot:
			e.differs("acquire: slot %d, want %d", got.Slot, want.slot)
		case got.Granted:
			e.learn(want.grant, got.Token)
			e.reserve(got.Token, got.Reserved, c.tokens)
		case !got.HoldReleased && !(got.Refused != nil):
			e.refused(c, h.QueueNumber, got.WaitState, want)
		}
		return text
	})
}

// reserve takes in the tokens that a grant has for those to whom the client hands the hold over. They come before all tokens that
// Redis grants later, whenever the client uses them.
func (e *episode) reserve(token int64, got, wanted int) {
	if got > max(wanted-1, 0) {
		e.differs("%d tokens are reserved, wanted %d", got, wanted)
	}
	for i := range got {
		e.model.tokens = append(e.model.tokens, 0)
		e.learn(len(e.model.tokens)-1, token+1+int64(i))
	}
	e.reserves += got
}

// refused compares the place of a contender that was not let in.
func (e *episode) refused(c *contender, number int64, got script.WaitState, want verdict) {
	e.lasts("the answer", got.HolderTTL, want.left)
	e.holds(got.Holder)
	if got.Broadcasts != want.Broadcasts {
		e.differs("plain=%v, want %v", got.Broadcasts, want.Broadcasts)
	}
	if got.Ahead < want.Ahead || got.Ahead > want.atMost {
		e.differs("%d before it, want %d, or %d with the dead", got.Ahead, want.Ahead, want.atMost)
	}
	if c.plain() {
		return
	}
	e.lastToken(got.LastToken)
	switch {
	case !c.mayQueue && number != 0, c.QueueNumber != 0 && c.QueueNumber != number:
		e.differs("number %d in line, had %d", number, c.QueueNumber)
	case c.mayQueue && c.QueueNumber == 0 && number <= e.number:
		e.differs("number %d in line after %d", number, e.number)
	}
	c.QueueNumber, e.number = number, max(e.number, number)
}

// holds checks the holder in an answer: the exclusive owner, or else one that shares the lock.
func (e *episode) holds(holder string) {
	m := e.model
	var owners []string
	for _, s := range m.shares {
		owners = append(owners, s.owner)
	}
	switch {
	case m.sole != nil && holder == m.sole.owner:
	case m.sole == nil && slices.Contains(owners, holder):
	case m.sole == nil && holder == "" && (len(owners) == 0 || len(m.kept) > 0): // a minimum hold time may be the last to end
	default:
		e.differs("holder %q, want %+v or one of %q", holder, m.sole, owners)
	}
}

func (e *episode) release(c *contender, what script.ReleaseReason) {
	for _, s := range slices.Clone(e.model.line) {
		e.settle(s.contender)
	}
	h, want, repeated := c.Hold, false, false
	h.ValidUntil = keepalive.Never
	if what == script.NeverHeld {
		h.Unanswered = 1 // it may still arrive
	}
	e.do(what != script.OnlyQueued, func() string {
		got, err := e.protocol(c.kind).Release(context.Background(), &h, what)
		if held := e.model.release(c, what); !repeated {
			// A repetition returns the same, if the lease was valid until then.
			want, repeated = held, true
			if held {
				h.ReleasesUnanswered = 1
			}
		} else if want && e.instance.Exec.Client.HExists(context.Background(), e.keys.Forced(), c.ID).Val() {
			// A hold that was force-released, and granted anew by a repetition of its request, counts as force-released.
			return strconv.FormatBool(want)
		}
		e.note("release %s of %s, usage %d: %v", c.strategy, c.ID, what, got)
		if got && !want && h.ReleasesUnanswered > 0 && err == nil {
			// The client has repeated a command that was not answered soon. So it takes what is missing for released: no caller
			// releases a hold that it never had.
			return strconv.FormatBool(want)
		}
		if err != nil || got != want {
			e.differs("release: %v, %v, want %v", got, err, want)
		}
		return strconv.FormatBool(got)
	})
}

func (e *episode) renew(c *contender, ttl int) {
	e.do(true, func() string {
		got, err := e.protocol(c.kind).Renew(context.Background(), &c.Hold, time.Duration(ttl)*time.Second)
		want := e.model.renew(c, ttl)
		e.note("renew %s of %s for %ds: %v", c.strategy, c.ID, ttl, got)
		if err != nil || got != want {
			e.differs("renew: %v, %v, want %v", got, err, want)
		}
		return strconv.FormatBool(got)
	})
}

func (e *episode) beat(all []*contender) {
	ids := make([]any, len(all))
	names := make([]string, len(all))
	for i, c := range all {
		ids[i], names[i] = c.ID, c.ID
		e.settle(c)
	}
	e.do(true, func() string {
		c := e.instance.Heartbeat(e.keys, ids...)
		err := e.instance.Exec.Run(context.Background(), c)
		reply := c.Reply
		e.model.beat(all)
		e.note("beat of %s: %v", strings.Join(names, " "), reply)
		state, ahead, bad := script.ReadHeartbeat(reply, len(all))
		if err != nil || bad != nil {
			e.differs("beat: %v, %v", reply, err)
			return ""
		}
		e.lasts("the answer", state.HolderTTL, max(0, e.model.until()-e.model.now))
		e.holds(state.Holder)
		e.lastToken(state.LastToken)
		if state.Broadcasts != e.model.isPlain() {
			e.differs("plain=%v, want %v", state.Broadcasts, e.model.isPlain())
		}
		for i, c := range all {
			least, most := e.model.before(c.ID)
			if e.model.isIn(c) {
				least, most = -1, -1 // it can enter
			}
			if ahead[i] < least || ahead[i] > most {
				e.differs("%d before %s, want %d, or %d with the dead", ahead[i], c.ID, least, most)
			}
		}
		return fmt.Sprint(state.LastToken, state.Broadcasts, ahead, state.Holder)
	})
}

func (e *episode) forceIt() {
	e.nextID++
	id := fmt.Sprintf("forced:%d", e.nextID)
	e.do(true, func() string {
		got, _, err := e.instance.Force(context.Background(), e.keys, strings.TrimPrefix(id, "forced:"), nil)
		want := e.model.force(id)
		e.note("force %s: %v", id, got)
		if err != nil || got != want {
			e.differs("force: %v, %v, want %v", got, err, want)
		}
		return fmt.Sprint(got)
	})
}

func (e *episode) loseLock() {
	e.do(false, func() string {
		e.note("deletion of the lock's key")
		e.lost = true
		e.model.lose()
		e.delete(e.keys.Lock)
		return ""
	})
}

func (e *episode) loseAll() {
	e.do(false, func() string {
		e.note("deletion of all keys")
		e.model.flush()
		e.delete(e.stored()...)
		return ""
	})
}

// learn takes in the token of a grant.
func (e *episode) learn(grant int, token int64) {
	if !e.model.token(grant, token) {
		e.differs("token %d of grant %d among %v", token, grant, e.model.tokens)
	}
}

// lastToken compares what Redis calls the last token.
func (e *episode) lastToken(token int64) {
	switch grants := len(e.model.tokens); {
	case grants > e.model.known:
		e.learn(grants-1, token)
	case token != 0:
		e.differs("last token %d, but it was deleted", token)
	}
}

// lasts compares a time that Redis says is left with the model's, in seconds.
func (e *episode) lasts(what string, got time.Duration, want int) {
	most := time.Duration(want) * time.Second
	if got > most+time.Millisecond || got < most-time.Since(e.began)-2*time.Millisecond {
		e.differs("%s: %v are left, want %v", what, got, most)
	}
}
