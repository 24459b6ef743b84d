package script_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/script"
)

// budget is how many grants and removals queue_common.lua makes in one run.
const budget = 100

// group is some contenders that wait in line one after the other. Every so many of them die there, 0 for none.
type group struct {
	kind
	size, deadEvery int
}

// TestModelCrowd has more in line than one run of a script deals with: whatever the stage, none may pass those before
// it, and after as many runs as it takes the state must be the model's.
func TestModelCrowd(t *testing.T) {
	instance := startInstance(t)
	ears := listenAll(t, instance)
	for name, crowd := range map[string]struct {
		holder kind
		line   []group
	}{
		"after a write":    {aWrite, []group{{aFair, 1, 0}, {aRead, 350, 3}, {aWrite, 1, 0}}},
		"in turns":         {aFairWrite, []group{{aRead, 150, 0}, {aFair, 1, 0}, {aRead, 250, 5}, {aWrite, 2, 0}}},
		"readers only":     {aFair, []group{{aRead, 350, 3}}},
		"the dead before":  {aFair, []group{{aFair, 250, 1}, {aRead, 120, 1}, {aFair, 1, 0}}},
		"the dead between": {aFair, []group{{aFair, 1, 0}, {aFair, 150, 1}, {aRead, 150, 1}, {aRead, 1, 0}, {aFair, 2, 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, instance, ears, func(e *episode) { e.comeAndGo(crowd.holder, crowd.line) })
		})
	}
}

// comeAndGo fills the line behind a holder, and lets one after the other have the lock.
func (e *episode) comeAndGo(holder kind, line []group) {
	e.line(group{holder, 1, 0})
	for _, g := range line {
		e.line(g)
	}
	e.pass(4)
	e.beat(e.active)
	e.pass(2) // now those without heartbeats count as crashed
	for e.err == nil && !e.model.free() && !e.tooLate() {
		var holders []*contender
		for _, c := range e.active {
			if e.model.holds(c) {
				holders = append(holders, c)
			}
		}
		for _, c := range holders {
			e.forget(c)
			e.release(c, script.HeldByCaller)
		}
		e.converge()
	}
	if len(e.active) > 0 {
		e.differs("%d were never let in", len(e.active))
	}
	e.compareGrants()
}

// line lets a group come. Each is its own owner; active are those that live.
func (e *episode) line(g group) {
	for i := range g.size {
		c := e.asks(fmt.Sprintf("crowd%d", e.nextID), g.kind, 29)
		if g.deadEvery > 0 && i%g.deadEvery == 0 {
			e.forget(c)
		}
	}
}

// converge runs scripts until Redis has done what the model has, and looks at every stage.
func (e *episode) converge() {
	want := e.model.info()
	runs := 2 + len(e.model.tokens)/budget + e.nextID/budget
	for e.err == nil && !e.tooLate() {
		got, err := e.instance.State(context.Background(), e.keys, inspected)
		if err != nil {
			e.differs("State: %v", err)
			return
		}
		e.checkStage(got, want)
		if len(got.Holders) == len(want.Holders) && slices.Equal(got.Queue, want.Queue) {
			return
		}
		if runs--; runs < 0 {
			e.differs("%d hold the lock and %d wait, want %d and %d",
				len(got.Holders), len(got.Queue), len(want.Holders), len(want.Queue))
			return
		}
		e.checkNewcomer(want)
		if err := e.instance.Exec.Run(context.Background(), e.instance.Heartbeat(e.keys)); err != nil {
			e.differs("beat: %v", err)
		}
	}
}

// checkStage compares the holders of the lock with those when all is done: the same, or the first of them.
func (e *episode) checkStage(got, want script.State) {
	held := make(map[string]bool)
	for _, h := range got.Holders {
		held[h.Owner] = true
	}
	if len(held) > 0 && got.Mode != want.Mode {
		e.differs("held as %s, want %s", got.Mode, want.Mode)
	}
	for _, c := range e.active { // in the order of arrival
		switch {
		case len(held) == 0:
			return
		case held[c.Owner] && !e.model.holds(c):
			e.differs("%s came in before its turn", c.ID)
		case held[c.Owner]:
			delete(held, c.Owner)
		case e.model.holds(c):
			e.differs("somebody came in before %s", c.ID)
			return
		}
	}
	if len(held) > 0 {
		e.differs("hold the lock: %v", held)
	}
}

// checkNewcomer lets a contender ask that may pass no other.
func (e *episode) checkNewcomer(want script.State) {
	c := e.contend("newcomer", some(e, []kind{aFair, aRead}), 29)
	e.forget(c)
	if c.shared() && len(e.model.living(false)) == 0 && want.Mode == modeRead {
		return // it could come in with the rest
	}
	c.mayQueue = false
	got, err := e.protocol(c.kind).Acquire(context.Background(), &c.Hold, script.Wanted{Place: c.mayQueue})
	if err != nil || got.Granted {
		e.differs("a newcomer that asks as %s: %+v, %v", c.mode, got, err)
	}
}

// compareGrants compares which contenders were notified of a grant. That the lock is free may be said while only the dead are found.
func (e *episode) compareGrants() {
	heard, hints, ok := e.messages()
	if !ok {
		return
	}
	heard = slices.DeleteFunc(heard, func(message string) bool { return message == "0" })
	told := slices.DeleteFunc(e.model.told, func(n news) bool { return n.id == "" })
	e.compareNews(heard, told)
	if len(hints) == 0 {
		e.differs("nobody was told to go on")
	}
}
