package core

import (
	"context"
	"sync"
)

// convoy lets what several goroutines send for one purpose leave together: it departs once each of them has sent
// something, or has ended without. Later commands go alone.
type convoy struct {
	mu      sync.Mutex
	missing int // travellers that have not sent anything yet
	calls   map[*lane][]*call
}

// ticket is one traveller's place in a convoy; it travels in the context.
type ticket struct {
	convoy *convoy
	used   bool // guarded by the convoy's mutex
}

type ticketKey struct{}

// submit puts a call into its lane, at once or with the convoy for which ctx has a ticket.
func submit(ctx context.Context, l *lane, c *call) {
	if t, _ := ctx.Value(ticketKey{}).(*ticket); t != nil {
		t.submit(l, c)
	} else {
		l.submit(c)
	}
}

func (t *ticket) submit(l *lane, c *call) {
	t.convoy.mu.Lock()
	defer t.convoy.mu.Unlock()
	if t.used { // and not answered in time, or answered
		l.submit(c)
		return
	}
	t.convoy.calls[l] = append(t.convoy.calls[l], c)
	t.use()
}

// leave lets the others depart without this traveller.
func (t *ticket) leave() {
	t.convoy.mu.Lock()
	defer t.convoy.mu.Unlock()
	t.use()
}

func (t *ticket) use() {
	if t.used {
		return
	}
	t.used = true
	if t.convoy.missing--; t.convoy.missing > 0 {
		return
	}
	for l, calls := range t.convoy.calls {
		l.submit(calls...)
	}
	t.convoy.calls = nil
}

// together calls do for each of n side by side, in one convoy, and returns their errors. If one panics, the others
// end all the same, and then the panic goes on here, where the caller can meet it.
func together(ctx context.Context, n int, do func(ctx context.Context, i int) error) []error {
	errs := make([]error, n)
	if n == 1 {
		errs[0] = do(ctx, 0)
		return errs
	}
	if t, _ := ctx.Value(ticketKey{}).(*ticket); t != nil {
		t.leave() // no convoy waits for another one's answers
	}
	v := &convoy{missing: n, calls: make(map[*lane][]*call)}
	panics := make(chan any, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			t := &ticket{convoy: v}
			defer t.leave()
			defer func() {
				if p := recover(); p != nil {
					panics <- p
				}
			}()
			errs[i] = do(context.WithValue(ctx, ticketKey{}, t), i)
		})
	}
	all.Wait()
	select {
	case p := <-panics:
		panic(p)
	default:
		return errs
	}
}
