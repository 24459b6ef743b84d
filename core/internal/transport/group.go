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
	overdue   *time.Timer // calls send; set with the first command
	sent      bool        // true once the batch was sent: commands are sent at once
}

// groupMember is one goroutine of a batchGroup. The context of the goroutine carries it. Its fields are guarded by the mutex of
// the group.
type groupMember struct {
	group     *batchGroup
	submitted bool // true once the member has submitted or finished
	queue     *batchQueue
	command   *Command // that waits for the other members; nil if there is none
}

type groupMemberKey struct{}

// submit queues a command: with the batch group if ctx carries a groupMember, at once otherwise.
func submit(ctx context.Context, q *batchQueue, c *Command) {
	if m, _ := ctx.Value(groupMemberKey{}).(*groupMember); m != nil {
		m.submit(q, c)
	} else {
		q.submit(c)
	}
}

// submit queues the member's first command together with the commands of the group, and any later one at once.
func (m *groupMember) submit(q *batchQueue, c *Command) {
	g := m.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.submitted || g.sent { // a later command: the first was answered, or not in time
		q.submit(c)
		return
	}
	m.queue, m.command = q, c
	if m.submitLocked(); !g.sent && g.overdue == nil {
		g.overdue = time.AfterFunc(maxGroupWait, g.send)
	}
}

// finish lets the group send without this member. It does nothing if the member has submitted a command.
func (m *groupMember) finish() {
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	m.submitLocked()
}

// submitLocked records that the member is done. The last member to be done sends for all. The caller must hold the mutex of
// the group.
func (m *groupMember) submitLocked() {
	if m.submitted {
		return
	}
	m.submitted = true
	if m.group.remaining--; m.group.remaining == 0 {
		m.group.sendLocked()
	}
}

// send sends what the members have submitted, whoever is missing.
func (g *batchGroup) send() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sendLocked()
}

// sendLocked is send for a caller that holds the mutex.
func (g *batchGroup) sendLocked() {
	g.sent = true
	if g.overdue != nil {
		g.overdue.Stop()
	}
	batches := make(map[*batchQueue][]*Command, 1)
	for i := range g.members {
		if member := &g.members[i]; member.command != nil {
			batches[member.queue] = append(batches[member.queue], member.command)
			member.queue, member.command = nil, nil
		}
	}
	for q, commands := range batches {
		q.submit(commands...)
	}
}

// DoGrouped calls do n times concurrently and returns the errors by index. The first command that each call sends with
// its context leaves in one batch with the commands of the others, in the order of i. No command waits for the others for
// longer than maxGroupWait. If a call panics, DoGrouped waits for the others, and then panics with a [GroupPanic] on the caller's
// goroutine. The error of a call that has ended its goroutine is errExited.
func DoGrouped(ctx context.Context, n int, do func(ctx context.Context, i int) error) []error {
	errs := make([]error, n)
	if n == 1 {
		errs[0] = do(ctx, 0)
		return errs
	}
	LeaveGroup(ctx) // otherwise the outer group would wait until the inner one has been answered
	g := &batchGroup{remaining: n, members: make([]groupMember, n)}
	panics := make(chan *GroupPanic, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			m := &g.members[i]
			m.group = g
			defer m.finish()
			defer func() {
				if p := recover(); p != nil {
					panics <- &GroupPanic{p, i, n, debug.Stack()}
				}
			}()
			errs[i] = errExited
			errs[i] = do(context.WithValue(ctx, groupMemberKey{}, m), i)
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

var errExited = errors.New("holdfast: the function has ended its goroutine")

// GroupPanic is the first panic of a call of [DoGrouped]. It has the stack of the call, which would otherwise be lost with its
// goroutine. Its text is what a crashing process prints.
type GroupPanic struct {
	Value    any
	Index, N int
	Stack    []byte
}

// Error returns the value, the index of the call, and its stack.
func (p *GroupPanic) Error() string {
	return fmt.Sprintf("%v\n\npanic at index %d of %d, %s", p.Value, p.Index, p.N, p.Stack)
}

// Unwrap returns the value if it is an error.
func (p *GroupPanic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// LeaveGroup lets the batch group of which ctx is a member send without it. Its commands are sent at once from then on.
func LeaveGroup(ctx context.Context) {
	if m, _ := ctx.Value(groupMemberKey{}).(*groupMember); m != nil {
		m.finish()
	}
}

// WithoutEnd returns ctx without its end, its deadline and its membership of a batch group.
//
// Because a Redlock sends several commands for one call. The end of ctx must not keep them from the servers that are asked
// last. And a batch group takes only one command of each member.
func WithoutEnd(ctx context.Context) context.Context {
	if m, _ := ctx.Value(groupMemberKey{}).(*groupMember); m != nil {
		m.finish()
		ctx = context.WithValue(ctx, groupMemberKey{}, (*groupMember)(nil))
	}
	return context.WithoutCancel(ctx)
}
