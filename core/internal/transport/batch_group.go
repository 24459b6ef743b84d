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
func submit(ctx context.Context, l *batchQueue, c *Command) {
	if t, _ := ctx.Value(groupMemberKey{}).(*groupMember); t != nil {
		t.submit(l, c)
	} else {
		l.submit(c)
	}
}

func (t *groupMember) submit(l *batchQueue, c *Command) {
	t.group.mu.Lock()
	defer t.group.mu.Unlock()
	if t.submitted { // a later command: the first was answered, or not in time
		l.submit(c)
		return
	}
	t.group.pending[l] = append(t.group.pending[l], c)
	t.submitLocked()
}

// finish lets the group send without this member.
func (t *groupMember) finish() {
	t.group.mu.Lock()
	defer t.group.mu.Unlock()
	t.submitLocked()
}

func (t *groupMember) submitLocked() {
	if t.submitted {
		return
	}
	t.submitted = true
	if t.group.remaining--; t.group.remaining > 0 {
		return
	}
	for l, calls := range t.group.pending {
		l.submit(calls...)
	}
	t.group.pending = nil
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
	v := &batchGroup{remaining: n, pending: make(map[*batchQueue][]*Command)}
	panics := make(chan any, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			t := &groupMember{group: v}
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
	if t, _ := ctx.Value(groupMemberKey{}).(*groupMember); t != nil {
		t.finish()
		ctx = context.WithValue(ctx, groupMemberKey{}, (*groupMember)(nil))
	}
	return context.WithoutCancel(ctx)
}
