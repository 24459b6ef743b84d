package proof_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The model is the protocol of InTx, the proof and the lease, without clocks: two clients come again until they have their answer,
// each in one process at a time. Anything may happen between two steps: a lease expires while its process continues, a process
// crashes, Redis loses the record, the reply of a commit is lost, and a transaction whose process has ended commits or rolls back
// later. The search visits every state that can be reached with three crashes and two losses of the record.

// step is where a process is.
type step uint8

const (
	idle     step = iota // it is going to begin
	asking               // its attempt is not the first, so it asks the proof
	doubting             // the outcome of an earlier attempt is unknown, so it asks the proof
	handling             // its handler has begun
	working              // it has inserted the row, and is going to do the effect
	ending               // it has done the effect, and is going to commit
	deciding             // it has no reply to its commit
	complete             // it has committed, and is going to complete the record
	failing              // it has rolled back, and is going to release the key
	answered             // its client has the answer
)

// process is one of the two processes.
type process struct {
	step  step
	token uint8 // of its attempt
	row   bool  // its transaction has inserted the row
}

// orphan is a transaction whose process does not know it any more.
type orphan struct {
	open, row bool
	commits   bool // the commit is on its way
	effect    bool
}

// record is what Redis has of the key.
type record struct {
	state    uint8
	token    uint8
	expired  bool // the lease
	attempts bool // there was one before
}

const (
	none uint8 = iota
	running
	unknown
	completed
)

// world is one state of everything.
type world struct {
	processes [2]process
	orphans   [2]orphan
	record    record
	next      uint8 // token
	row       bool  // committed
	effects   uint8 // committed
	crashes   uint8
	losses    uint8
}

// model is a protocol: the right one, or a mutant.
type model struct {
	holds                               bool // HoldFailures without OnlyEffect
	insertLast, swallowed, unasked      bool // the mutants
	states                              map[world]bool
	edges                               map[world][]world // without faults
	queue                               []world
	transitions                         int
	broken                              string
	mostCrashes, mostLosses, mostBegins uint8
}

// locked reports whether an open transaction has inserted the row.
func (w *world) locked() bool {
	return slices.ContainsFunc(w.processes[:], func(p process) bool { return p.row && (p.step == working || p.step == ending) }) ||
		slices.ContainsFunc(w.orphans[:], func(o orphan) bool { return o.open && o.row })
}

// fail notes what a state violates.
func (m *model) fail(format string, args ...any) {
	if m.broken == "" {
		m.broken = fmt.Sprintf(format, args...)
	}
}

// visit visits a state that follows from w.
func (m *model) visit(from, to world, fault bool) {
	m.transitions++
	if to.effects > 1 {
		m.fail("two effects have committed")
	}
	if to.record.state == completed && to.effects == 0 {
		m.fail("the record is completed without an effect")
	}
	if !fault {
		m.edges[from] = append(m.edges[from], to)
	}
	if !m.states[to] {
		m.states[to] = true
		m.queue = append(m.queue, to)
	}
}

// completeRecord is Complete of an attempt.
func (w *world) completeRecord(token uint8) {
	r := &w.record
	if r.state == running && r.token != token && !r.expired || r.state == unknown || r.state == completed {
		return // another attempt counts
	}
	*r = record{state: completed, token: token, attempts: true}
}

// steps visits all states that follow from w.
func (m *model) steps(w world) {
	for i := range w.processes {
		m.step(w, i)
		if p := w.processes[i]; p.step != idle && p.step != answered && w.crashes < m.mostCrashes {
			next := w
			next.crashes++
			m.abandon(&next, i, false)
			next.processes[i] = process{}
			m.visit(w, next, true)
		}
	}
	for i, o := range w.orphans {
		if !o.open {
			continue
		}
		next := w // the server rolls it back
		next.orphans[i] = orphan{}
		m.visit(w, next, false)
		if o.commits && !(o.row && w.row) {
			next := w
			next.orphans[i] = orphan{}
			next.commit(o.row, o.effect)
			m.visit(w, next, false)
		}
	}
	if w.record.state == running && !w.record.expired {
		next := w
		if next.record.expired = true; m.holds {
			next.record.state = unknown
		}
		m.visit(w, next, false)
	}
	if w.record.state != none && w.losses < m.mostLosses {
		next := w
		next.record = record{}
		next.losses++
		m.visit(w, next, true)
	}
}

// abandon makes an orphan of the transaction of a process.
func (m *model) abandon(w *world, i int, commits bool) {
	p := w.processes[i]
	if p.step != working && p.step != ending {
		return
	}
	for j := range w.orphans {
		if !w.orphans[j].open {
			w.orphans[j] = orphan{open: true, row: p.row, commits: commits || p.step == ending, effect: p.step == ending}
			return
		}
	}
	m.fail("there are more transactions than the model has room for")
}

func (w *world) commit(row, effect bool) {
	if row {
		w.row = true
	}
	if effect {
		w.effects++
	}
}

// handle begins the handler of an attempt.
func (m *model) handle(w, next world, i int, first bool) {
	if w.row && !first {
		m.fail("the handler of a later attempt begins although an earlier one has committed")
	}
	next.processes[i].step = handling
	m.visit(w, next, false)
}

// work begins the effect.
func (m *model) work(w, next world, i int, row bool) {
	if w.row {
		m.fail("the function runs although an earlier one has committed")
	}
	if other := next.processes[1-i].step; other == working || other == ending {
		m.fail("two functions run at once")
	}
	next.processes[i].step, next.processes[i].row = working, row
	m.visit(w, next, false)
}

// answer is the answer of a run that has found, or made, the effect.
func (m *model) answer(w, next world, i int) {
	if next.effects == 0 {
		m.fail("a client is told of an effect that there is not")
	}
	next.processes[i] = process{step: answered}
	m.visit(w, next, false)
}

// step visits the states that follow from w by a step of one process.
func (m *model) step(w world, i int) {
	next, p := w, w.processes[i]
	own := &next.processes[i]
	switch p.step {
	case idle:
		r := w.record
		switch {
		case r.state == completed:
			m.answer(w, next, i)
		case r.state == unknown:
			own.step = doubting
			m.visit(w, next, false)
		case r.state == running && !r.expired, w.next >= m.mostBegins:
		default:
			next.next++
			next.record = record{state: running, token: next.next, attempts: true}
			own.token = next.next
			if !r.attempts || m.unasked {
				m.handle(w, next, i, !r.attempts)
				return
			}
			own.step = asking
			m.visit(w, next, false)
		}
	case asking:
		if w.row {
			next.completeRecord(p.token)
			m.answer(w, next, i)
			return
		}
		m.handle(w, next, i, false)
	case doubting:
		if w.row && !m.unasked {
			next.record = record{state: completed, token: w.record.token, attempts: true}
			m.answer(w, next, i)
			return
		}
		own.step = idle // an operator has to decide, unless the client comes again after a commit
		m.visit(w, next, false)
	case handling:
		switch {
		case m.insertLast:
			m.work(w, next, i, false)
		case w.row && !m.swallowed:
			next.completeRecord(p.token)
			m.answer(w, next, i)
		case w.row, w.locked() && m.swallowed:
			own.step, own.row = working, false // the insert has failed, and nobody has looked
			m.visit(w, next, false)
		case !w.locked():
			m.work(w, next, i, true)
		}
	case working:
		own.step = ending
		if m.insertLast {
			if w.row || w.locked() {
				own.step = failing
			}
			own.row = own.step == ending
		}
		m.visit(w, next, false)
		failed := w // the function returns an error
		failed.processes[i].step, failed.processes[i].row = failing, false
		m.visit(w, failed, false)
	case ending:
		next.commit(p.row, true)
		own.step, own.row = complete, false
		m.visit(w, next, false)
		own.step = deciding // the reply is lost
		m.visit(w, next, false)
		lost := w // the request is lost, or late: the server knows nothing of it yet
		m.abandon(&lost, i, true)
		lost.processes[i].step, lost.processes[i].row = deciding, false
		m.visit(w, lost, false)
	case deciding:
		switch {
		case w.row:
			own.step = complete
			m.visit(w, next, false)
		case !w.locked():
			own.step = failing
			m.visit(w, next, false)
		}
	case complete:
		next.completeRecord(p.token)
		m.answer(w, next, i)
	case failing:
		if next.record.token == p.token && next.record.state == running {
			next.record = record{attempts: true, token: p.token}
			if m.holds {
				next.record.state = unknown
			}
		}
		next.processes[i] = process{}
		m.visit(w, next, false)
	}
}

// search visits all states, and then looks for those from which the clients cannot get their answer without a further fault.
func (m *model) search() {
	var first world
	m.states, m.edges = map[world]bool{first: true}, make(map[world][]world)
	m.queue = []world{first}
	for len(m.queue) > 0 && m.broken == "" {
		w := m.queue[len(m.queue)-1]
		m.queue = m.queue[:len(m.queue)-1]
		m.steps(w)
	}
	if m.broken != "" {
		return
	}
	back := make(map[world][]world)
	for from, all := range m.edges {
		for _, to := range all {
			back[to] = append(back[to], from)
		}
	}
	reaches := make(map[world]bool)
	var queue []world
	for w := range m.states {
		over := w.processes[0].step == answered && w.processes[1].step == answered
		// Two cases need more than the clients: an operator, of what is not committed, and more attempts than the search has.
		if over || w.next >= m.mostBegins || m.holds && w.effects == 0 {
			reaches[w] = true
			queue = append(queue, w)
		}
	}
	for len(queue) > 0 {
		w := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, from := range back[w] {
			if !reaches[from] {
				reaches[from] = true
				queue = append(queue, from)
			}
		}
	}
	for w := range m.states {
		if !reaches[w] {
			m.fail("no answer can be had any more: %+v", w)
			return
		}
	}
}

// TestModel searches all states of the protocol, and finds the fault of each mutant.
func TestModel(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		model model
		fault string
	}{
		"OnlyEffect":                {model{}, ""},
		"HoldFailures":              {model{holds: true}, ""},
		"insert last":               {model{insertLast: true}, "two functions run at once|the function runs although"},
		"failed insert swallowed":   {model{swallowed: true}, "two effects"},
		"proof not asked":           {model{unasked: true}, "the handler of a later attempt"},
		"unknown outcome not asked": {model{holds: true, unasked: true}, "no answer|the handler of a later attempt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := test.model
			m.mostCrashes, m.mostLosses, m.mostBegins = 3, 2, 6
			m.search()
			t.Logf("%d states, %d transitions: %q", len(m.states), m.transitions, m.broken)
			found := m.broken == ""
			if test.fault != "" {
				found = slices.ContainsFunc(strings.Split(test.fault, "|"), func(fault string) bool { return strings.Contains(m.broken, fault) })
			}
			if !found {
				t.Errorf("found %q, want %q", m.broken, test.fault)
			}
		})
	}
}
