package transport

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// maxGroupWait bounds how long a batch group keeps a command. A member may be kept from submitting by what needs the command of
// another member: then nothing would be sent before that one's timeout. It is far longer than n goroutines need to start.
const maxGroupWait = 100 * time.Millisecond

// batchGroup sends the first command of each of n goroutines in one batch, once every member has submitted a command or
// finished, in the order of the members, or maxGroupWait after the first command. Later commands of a member are not grouped.
type batchGroup struct {
	mu sync.Mutex

	// Guarded by mu.
	remaining int // members that have neither submitted a command nor finished
	members   []groupMember
	overdue   *time.Timer // sends what there is; set with the first command
	sent      bool        // true once the batch was sent: commands are sent at once
}

// groupMember is one goroutine of a batchGroup. The context of the goroutine carries it. Its fields are guarded by the mutex of
// the group.
type groupMember struct {
	group   *batchGroup
	done    bool // true once the member has submitted or finished
	queue   *batchQueue
	command *Command // that waits for the other members; nil if there is none
}

type groupMemberKey struct{}

func groupMemberFrom(ctx context.Context) *groupMember {
	m, _ := ctx.Value(groupMemberKey{}).(*groupMember)
	return m
}

// pending returns true if the first command of the member is still to come. Contexts of leases carry a member for longer.
func (m *groupMember) pending() bool {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	return !m.done && !m.group.sent
}

// submit queues a command: with the batch group of ctx if it is the first command of its member, at once otherwise.
func submit(ctx context.Context, q *batchQueue, c *Command) {
	if !groupMemberFrom(ctx).finish(q, c) {
		q.submit(c)
	}
}

// finish lets the group send without waiting for this member any more, but with its command unless that is nil. The last member to
// finish sends for all. It returns false if it has not taken the command: the member has finished, the group has sent, or m is nil.
func (m *groupMember) finish(q *batchQueue, c *Command) bool {
	if m == nil {
		return false
	}
	g := m.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.done || g.sent {
		return false
	}
	m.done, m.queue, m.command = true, q, c
	if g.remaining--; g.remaining == 0 {
		g.sendLocked()
	} else if c != nil && g.overdue == nil {
		g.overdue = time.AfterFunc(maxGroupWait, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.sendLocked()
		})
	}
	return true
}

// sendLocked sends what the members have submitted, whoever is missing. The caller must hold the mutex.
func (g *batchGroup) sendLocked() {
	if g.sent {
		return
	}
	g.sent = true
	if g.overdue != nil {
		g.overdue.Stop()
	}
	batches := make(map[*batchQueue][]*Command, 1)
	for i := range g.members {
		if m := &g.members[i]; m.command != nil {
			batches[m.queue] = append(batches[m.queue], m.command)
			m.queue, m.command = nil, nil // the contexts of leases keep the group
		}
	}
	for q, commands := range batches {
		q.submit(commands...)
	}
}

// LeaveGroup lets the batch group of which ctx is a member send without it. Its commands are sent at once from then on.
func LeaveGroup(ctx context.Context) { groupMemberFrom(ctx).finish(nil, nil) }

// DoGrouped calls do n times concurrently and returns the errors by index. The first command that each call sends with
// its context is queued together with the commands of the others, in the order of i. So they leave in one batch, unless other
// batches are in flight and they are more than the share of one sender. No command waits for the others for longer than
// maxGroupWait. If a call panics, DoGrouped waits for the others, and then panics on the caller's goroutine, with an error that
// wraps the value, if that is an error, and has the stack of the call. The error of a call that has ended its goroutine is
// errExited. A single call is made on the caller's goroutine, and is left to panic or exit there.
func DoGrouped(ctx context.Context, n int, do func(ctx context.Context, i int) error) []error {
	errs := make([]error, n)
	if n == 1 {
		errs[0] = do(ctx, 0)
		return errs
	}
	LeaveGroup(ctx) // otherwise the outer group would wait until the inner one has been answered
	g := &batchGroup{remaining: n, members: make([]groupMember, n)}
	panics := make(chan error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			m := &g.members[i]
			m.group = g
			defer m.finish(nil, nil)
			defer func() {
				if p := recover(); p != nil {
					err, ok := p.(error)
					if !ok {
						err = fmt.Errorf("%v", p)
					}
					panics <- fmt.Errorf("%w\n\npanic at index %d of %d, %s", err, i, n, debug.Stack())
				}
			}()
			errs[i] = errExited
			errs[i] = do(context.WithValue(ctx, groupMemberKey{}, m), i)
		})
	}
	all.Wait()
	select {
	case err := <-panics:
		panic(err)
	default:
		return errs
	}
}

var errExited = errors.New("holdfast: the function has ended its goroutine")

// WithoutEnd returns ctx without its end and its deadline, and leaves the batch group of which ctx is a member.
//
// Because a Redlock sends several commands for one call. The end of ctx must not keep them from the servers that are asked
// last. And a batch group takes only one command of each member.
func WithoutEnd(ctx context.Context) context.Context {
	LeaveGroup(ctx)
	return context.WithoutCancel(ctx)
}
