package core

import (
	"context"
	"fmt"
	"time"
)

const (
	// placeTTL is how long Redis keeps the place of a waiter that gives no sign of life, and the lock that was
	// granted to a waiter which has not asked for more. So it is what a waiter that crashes costs the others.
	placeTTL = 5 * time.Second
	// beat is how often a waiter gives a sign of life.
	beat = time.Second
)

// inLine is the protocol of the strategies whose waiters stand in a line in Redis: who releases the lock grants it
// to the next, in one script, and tells only that one. See lua/line.lua.
type inLine struct {
	oneRedis
	as string // how Redis calls it: fair, writing or reading
	// readersNext lets all readers who wait at the end of a write go before the next writer.
	readersNext bool
}

func (p inLine) line() *inLine { return &p }

// channel is the client's own for this lock: what is said there is meant for one of its waiters.
func (p inLine) channel(k keys) string { return k.channel + ":" + p.server.keeper.id }

func (p inLine) acquire(ctx context.Context, h *hold) (answer, error) {
	h.shares = p.as == "reading"
	waits := 0
	if h.waits {
		waits = 1
	}
	reply, err := p.server.exec.doForHold(ctx, h, joinScript, h.keys.line(h.released), p.server.lineArgs(h.keys,
		h.owner, h.id, milliseconds(h.ttl), milliseconds(h.minHold), p.as, waits, h.number, h.parentID())...)
	if err != nil {
		return answer{}, err
	}
	list, err := integers(reply, 1, 2, 6)
	switch {
	case err != nil:
		return answer{}, err
	case list[0] == 1:
		return answer{granted: true, token: list[1]}, nil
	case list[0] == -1:
		return answer{gone: true}, nil
	case list[0] == -2:
		return answer{refused: fmt.Errorf("%w: %q", ErrUpgrade, h.name)}, nil
	}
	h.number = list[3]
	return answer{standing: standing{
		left: time.Duration(list[1]) * time.Millisecond, before: int(list[2]), last: list[4], plain: list[5] == 1,
	}}, nil
}

func (p inLine) release(ctx context.Context, h *hold, what usage) (bool, error) {
	found, missing := h.memories(what)
	abandoned, readersNext := 0, 0
	if what != used {
		abandoned = 1
	}
	if p.readersNext {
		readersNext = 1
	}
	reply, err := p.server.exec.do(ctx, leaveScript, h.keys.line(h.released), p.server.lineArgs(h.keys,
		h.owner, h.id, found, abandoned, readersNext, missing)...)
	if err != nil {
		return false, err
	}
	list, err := integers(reply, 2)
	if err != nil {
		return false, err
	}
	if list[1] == 1 {
		p.server.cannotPublish()
	}
	return list[0] == 1, nil
}

// line returns the keys of line.lua and the one that comes after them.
func (k keys) line(more ...string) []string {
	return append([]string{k.lock, k.token, k.reads(), k.writers(), k.readers(), k.waiters()}, more...)
}

// lineArgs returns the arguments of line.lua and those that come after them.
func (s *server) lineArgs(k keys, more ...any) []any {
	return append([]any{k.channel, milliseconds(tokenMemory), milliseconds(placeTTL), s.publishVerb}, more...)
}
