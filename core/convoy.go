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

// seat is one traveller's place in a convoy; it travels in the context.
type seat struct {
	convoy *convoy
	taken  bool // guarded by the convoy's mutex
}

type seatKey struct{}

// submit puts a call into its lane, at once or with the convoy for which ctx has a seat.
func submit(ctx context.Context, l *lane, c *call) {
	if s, _ := ctx.Value(seatKey{}).(*seat); s != nil {
		s.submit(l, c)
	} else {
		l.submit(c)
	}
}

func (s *seat) submit(l *lane, c *call) {
	s.convoy.mu.Lock()
	defer s.convoy.mu.Unlock()
	if s.taken { // and not answered in time, or answered
		l.submit(c)
		return
	}
	s.convoy.calls[l] = append(s.convoy.calls[l], c)
	s.take()
}

// leave lets the others depart without this traveller.
func (s *seat) leave() {
	s.convoy.mu.Lock()
	defer s.convoy.mu.Unlock()
	s.take()
}

func (s *seat) take() {
	if s.taken {
		return
	}
	s.taken = true
	if s.convoy.missing--; s.convoy.missing > 0 {
		return
	}
	for l, calls := range s.convoy.calls {
		l.submit(calls...)
	}
	s.convoy.calls = nil
}

// together calls do for each of n side by side, in one convoy, and returns their errors. If one panics, the others
// end all the same, and then the panic goes on here, where the caller can meet it.
func together(ctx context.Context, n int, do func(ctx context.Context, i int) error) []error {
	errs := make([]error, n)
	if n == 1 {
		errs[0] = do(ctx, 0)
		return errs
	}
	v := &convoy{missing: n, calls: make(map[*lane][]*call)}
	panics := make(chan any, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			s := &seat{convoy: v}
			defer s.leave()
			defer func() {
				if p := recover(); p != nil {
					panics <- p
				}
			}()
			errs[i] = do(context.WithValue(ctx, seatKey{}, s), i)
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
