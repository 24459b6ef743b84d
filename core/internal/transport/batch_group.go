package transport

import (
	"context"
	"sync"
)

// batchGroup sends the first command of each of n goroutines in one batch, once every member has submitted a command or
// finished. Later commands of a member are not grouped.
type batchGroup struct {
	mu        sync.Mutex
	remaining int // members that have neither submitted a command nor finished
	pending   map[*batchQueue][]*Command
}

// GroupMember is one goroutine of a batchGroup. Its context carries it.
type groupMember struct {
	group     *batchGroup
	submitted bool // guarded by the group's mutex
}

type groupMemberKey struct{}

// submit queues a command: with its batch group if ctx carries a GroupMember, at once otherwise.
func submit(ctx context.Context, q *batchQueue, c *Command) {
	if m, _ := ctx.Value(groupMemberKey{}).(*groupMember); m != nil {
		m.submit(q, c)
	} else {
		q.submit(c)
	}
}

func (m *groupMember) submit(q *batchQueue, c *Command) {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	if m.submitted { // a later command: the first was answered, or not in time
		q.submit(c)
		return
	}
	m.group.pending[q] = append(m.group.pending[q], c)
	m.submitLocked()
}

// finish lets the group send without this member.
func (m *groupMember) finish() {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	m.submitLocked()
}

func (m *groupMember) submitLocked() {
	if m.submitted {
		return
	}
	m.submitted = true
	if m.group.remaining--; m.group.remaining > 0 {
		return
	}
	for q, commands := range m.group.pending {
		q.submit(commands...)
	}
	m.group.pending = nil
}

// DoGrouped calls do n times concurrently, as members of one batchGroup, and returns the errors by index. If a call
// panics, DoGrouped waits for the others and then panics with the same value on the caller's goroutine.
func DoGrouped(ctx context.Context, n int, do func(ctx context.Context, i int) error) []error {
	errs := make([]error, n)
	if n == 1 {
		errs[0] = do(ctx, 0)
		return errs
	}
	if t, _ := ctx.Value(groupMemberKey{}).(*groupMember); t != nil {
		t.finish() // otherwise the outer group would wait for answers of the inner one
	}
	g := &batchGroup{remaining: n, pending: make(map[*batchQueue][]*Command)}
	panics := make(chan any, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			t := &groupMember{group: g}
			defer t.finish()
			defer func() {
				if p := recover(); p != nil {
					panics <- p
				}
			}()
			errs[i] = do(context.WithValue(ctx, groupMemberKey{}, t), i)
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

// WithoutEnd returns ctx without its end and without its GroupMember.
//
// Why: the end of ctx must not keep requests from the servers that are asked last. A batch group takes one command of
// each member, and a Redlock sends several.
func WithoutEnd(ctx context.Context) context.Context {
	if m, _ := ctx.Value(groupMemberKey{}).(*groupMember); m != nil {
		m.finish()
		ctx = context.WithValue(ctx, groupMemberKey{}, (*groupMember)(nil))
	}
	return context.WithoutCancel(ctx)
}
