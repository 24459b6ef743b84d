package core

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/core/internal/acquire"
	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Election elects one leader at a time among all candidates of a name, in all processes. It is cheap to make, holds
// nothing by itself, and may be used by many goroutines at once. Each call of Run or Campaign is a separate candidate.
// The methods of a nil Election return [ErrInvalidOption].
//
// The leader's context ends before another candidate can win, with the reservations that apply to every lock on Redis.
// So let the resource that the leader writes to refuse smaller terms, see [TokenFrom]. While Redis is unreachable, no
// candidate is elected, and the leader's context ends after the TTL at most.
//
// An election is a [Client.Fair] lock of the same name: candidates win in the order of arrival, [Client.Inspect] and
// [Client.ForceUnlock] work on it, and hooks see it. Do not use the name for a lock too. The holder of a
// Fair lock would count as a leader, and the holder of any other lock would keep all candidates from winning.
type Election struct {
	handle
	lock  *singleLock
	redis *script.Instance // where the lock lies
	value string

	mu      sync.Mutex
	current *Leadership // with the greatest term that this Election has won; guarded by mu
}

// Election returns the [Election] of that name. Election does no I/O; its methods report a wrong name or option.
func (c *Client) Election(name string, opts ...ElectionOption) *Election {
	config := newElectionConfig(c.lock, opts)
	queue := c.queue("fair")
	queue.Observed = true
	l := c.newLock(name, queue, nil)
	l.config = &config.lock
	return &Election{handle: seal.HandleOf(electionFacts{l}), lock: l, redis: c.server.Instance, value: config.value}
}

// check returns the error of an Election that does not exist, or whose name or options are refused.
func (e *Election) check() error {
	if e == nil || e.lock == nil {
		return invalidOption("the Election is nil: make it with Client.Election")
	}
	return e.lock.check()
}

// electionFacts gives adapters the facts of an election.
type electionFacts struct{ *singleLock }

// Facts implements [seal.Source].
func (e electionFacts) Facts() seal.Facts {
	return seal.Facts{Logger: e.engine.logger, Hooks: &e.engine.hooks, Instance: e.engine.instance, Election: e.name}
}

const (
	// campaignInterval is how long Run pauses after an outage that Lock has not endured. Up to as much is added at random,
	// so that candidates do not all return at the same moment.
	campaignInterval = 500 * time.Millisecond
)

// Run campaigns, and calls lead once it has won. If leadership is lost, Run waits for lead to return, and campaigns again,
// until ctx ends. So lead is never called again while an earlier call of this Run is running.
//
// The context that lead gets carries the term as its fencing token: see [TokenFrom]. It ends when ctx ends, or when the
// lead does, with [ErrLeaseLost] as its cause if leadership was lost.
//
// If lead returns while it leads, Run waits for calls of TryDo, and gives up leadership, which elects the next
// candidate at once. It returns what lead returned. If lead returns after leadership was lost, the client logs an error
// of lead that the end of its context does not explain.
//
// If lead panics, or calls [runtime.Goexit], what it has started may still run. So leadership is abandoned, and the
// election is free after the TTL at most; the panic continues. See [Lease.Abandon].
//
// While Redis does not reply, Run continues campaigning. It returns other errors of Campaign. With [WithWait], that is
// [ErrNotAcquired] after that time. If ctx ends during a campaign, the error also wraps the error of ctx.
func (e *Election) Run(ctx context.Context, lead func(context.Context) error) error {
	if lead == nil {
		return invalidOption("Run: the function is nil")
	}
	for {
		l, err := e.campaignThroughOutages(ctx)
		if err != nil {
			return err
		}
		err, lost := l.run(ctx, lead)
		switch {
		case lost == nil:
			return err
		case ctx.Err() != nil, errors.Is(lost, ErrClosed):
			if err == nil || !errors.Is(err, lost) {
				err = errors.Join(err, lost)
			}
			return err
		case err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, ErrLeaseLost):
			e.lock.engine.logger.Warn("holdfast: leader returned an error after leadership was lost",
				"lock", digest(e.lock.keys.Lock), "error", err)
		}
	}
}

// campaignThroughOutages is Campaign until Redis replies.
func (e *Election) campaignThroughOutages(ctx context.Context) (*Leadership, error) {
	for logged := false; ; logged = true {
		l, err := e.campaign(ctx, ctx)
		if err == nil || !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrNotAcquired) || ctx.Err() != nil {
			return l, err
		}
		if !logged {
			e.lock.engine.logger.Warn("holdfast: campaign failed, retrying until Redis replies",
				"lock", digest(e.lock.keys.Lock), "error", nameless(err))
		}
		keepalive.Pause(ctx, campaignInterval+rand.N(campaignInterval), nil, e.lock.engine.operations.Closing)
	}
}

// Campaign waits until this candidate is elected, or ctx ends; ctx bounds the waiting, not the leadership. The caller must call
// [Leadership.Resign] when its work has stopped. With an error, the candidate does not lead, now or later.
//
// It returns the errors of [Lock.Lock], and [ErrLeading] if ctx is, or descends from, the context of a leader of
// this election through the same go-redis client.
func (e *Election) Campaign(ctx context.Context) (*Leadership, error) {
	return e.campaign(ctx, context.WithoutCancel(ctx))
}

// campaign is Campaign for a lead whose work ends with the context leading too.
func (e *Election) campaign(ctx, leading context.Context) (*Leadership, error) {
	ctx, err := e.candidate(ctx)
	if err != nil {
		return nil, err
	}
	lease, err := e.lock.acquire(ctx, false, nil)
	if err != nil {
		return nil, err
	}
	l := &Leadership{election: e, lease: lease}
	l.leading, l.stop, _ = lease.end.Within(lease.within(leading), keptLease{lease}) // bound until leadership ends
	e.won(l)
	l.introduce(ctx)
	return l, nil
}

// candidate returns the context of a new candidate. It is not always ctx, because a lock enters again with the context of its
// holder, and two leaders would share a term. If ctx carries the lease of another client, which may reach another Redis, the
// candidate has to forget it.
func (e *Election) candidate(ctx context.Context) (context.Context, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	h := holdingFrom(ctx).of(e.lock.engine, e.lock.keys.Lock)
	switch {
	case h == nil:
		return ctx, nil
	case sameRedis(h.lease.engine, e.lock.engine):
		return nil, errorf("%w: election %q: the context is that of its leader", ErrLeading, e.lock.name)
	}
	return context.WithValue(ctx, holdingKey{}, (*holding)(nil)), nil
}

// won notes a lead. Several candidates of this Election may have won one after the other before any of them gets here, so the
// greatest term counts.
func (e *Election) won(l *Leadership) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current == nil || e.current.Term() < l.Term() {
		e.current = l
	}
}

// IsLeader returns nil while a call of Run or Campaign of this very Election leads, and [ErrNotLeader] otherwise. It does no
// I/O: it returns nil only while the context of the leadership is valid. Use it for schedulers that check before each run.
// Leadership may end right after the call, so long work needs the context of the leadership: see [Election.TryDo].
func (e *Election) IsLeader(context.Context) error {
	_, err := e.leadership()
	return err
}

// ElectionOption configures an [Election]. Every [LockOption] is one too. [WithTTL] is how long a crashed leader blocks
// the others. [WithMaxHold] limits a term, and [WithFixedTTL] makes it end without renewal: the leader's context ends
// then, as after a loss. [WithWait] limits a campaign. [WithOwner] is refused, because candidates with equal owners would
// lead together. [WithMinHold] is refused, because a resignation elects the next leader at once. WithTTL, without a fixed one, and
// [WithReplicaAck] default to what the client has. All others default to none, because what suits the client's locks would end
// campaigns and terms. The methods report an invalid value as [ErrInvalidOption].
type ElectionOption interface{ applyElection(*electionConfig) }

// maxLeaderValue bounds what a leader proclaims, because every observer reads it after each change.
const maxLeaderValue = 4096

// electionConfig holds the effective options of an Election.
type electionConfig struct {
	lock  lockConfig
	value string
}

func newElectionConfig(client lockConfig, opts []ElectionOption) electionConfig {
	c := electionConfig{lock: client}
	c.lock.minHold, c.lock.owner, c.lock.leavesLosses = 0, "", true
	c.lock.wait, c.lock.maxHold, c.lock.fixed = -1, 0, false
	for _, opt := range opts {
		if opt != nil {
			opt.applyElection(&c)
		}
	}
	switch {
	case c.lock.owner != "":
		c.lock.refuse(invalidOption("WithOwner is for locks: every candidate of an Election has an owner of its own"))
	case c.lock.minHold != 0:
		c.lock.refuse(invalidOption("WithMinHold is for locks: a resignation elects the next leader at once"))
	}
	return c
}

type electionOption func(*electionConfig)

func (o electionOption) applyElection(c *electionConfig) { o(c) }

// WithValue sets what a leader proclaims when it is elected, for instance its address: see [Leader]. At most 4,096 bytes
// of UTF-8. [Leadership.Proclaim] changes it. Defaults to "".
func WithValue(value string) ElectionOption {
	return electionOption(func(c *electionConfig) {
		if err := checkLeaderValue("WithValue", value); err != nil {
			c.lock.refuse(err)
		}
		c.value = value
	})
}

func checkLeaderValue(option, value string) error {
	switch {
	case len(value) > maxLeaderValue:
		return invalidOption("%s: %d bytes, at most %d are allowed", option, len(value), maxLeaderValue)
	case !utf8.ValidString(value):
		return invalidOption("%s: no valid UTF-8", option)
	}
	return nil
}

// Leader is the leader of an election, or a vacancy.
type Leader struct {
	// Owner is the owner of the leader's lock in Redis. It is "" for a vacancy, which only [Election.Observe] returns.
	Owner string
	// Value is what the leader proclaims, see [WithValue].
	Value string
	// Term is the fencing token of the leader, greater than the terms of all earlier leaders. Of a vacancy, it is the term
	// of the last leader that this Observe has seen, or 0.
	Term int64
	// Since is when the leader was elected, by the server's clock, to within 10 ms.
	Since time.Time
	// TTL is the time after which leadership ends unless it is renewed.
	TTL time.Duration
}

func newLeader(l script.Leader) Leader {
	return Leader{Owner: l.Owner, Value: l.Value, Term: l.Token, Since: l.Granted, TTL: l.TTL}
}

// Leader reads the present leader, which may be outdated when it arrives. It returns [ErrNoLeader] if no process leads.
// Right after its election, a leader may be returned without its value. Any process may ask, without a candidate.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	if err := e.check(); err != nil {
		return Leader{}, err
	}
	var found script.Leader
	err := e.lock.engine.operate(ctx, "leader of election", e.lock.name, e.lock.keys, func() (err error) {
		found, err = e.read(ctx)
		return err
	})
	switch {
	case err != nil:
		return Leader{}, err
	case found.Owner == "":
		return Leader{}, errorf("%w: election %q", ErrNoLeader, e.lock.name)
	}
	return newLeader(found), nil
}

func (e *Election) read(ctx context.Context) (script.Leader, error) {
	return e.redis.Leader(ctx, e.lock.keys)
}

// Observe returns the present leader, and each change of the leader or its value, vacancies included. Terms
// never go back, even if a replica or a master that was replaced answers. A loop that is slow gets only the newest state.
// Any process may observe, without a candidate.
//
// Changes arrive by a message, or with the next poll: after the TTL of the leader, and after two to three seconds at most.
// While Redis does not reply, nothing is returned: the leader may have changed, or have ended after its [Leader.TTL].
//
// The loop ends when ctx ends or the client closes. It ends at once for a wrong name or option, which [Election.Leader]
// reports.
func (e *Election) Observe(ctx context.Context) iter.Seq[Leader] {
	return func(yield func(Leader) bool) {
		if e.check() != nil {
			return
		}
		c := e.lock.engine
		if !c.operations.Start() {
			return
		}
		news := e.redis.SubscribeToLeader(e.lock.keys)
		c.operations.Finish()
		defer news.Close()
		observer := acquire.Observer{
			Read: e.read, Operations: c.operations, Notifications: news.Notifications(),
			Failed: func(err error) {
				c.logger.Warn("holdfast: leader unknown, retrying until Redis replies",
					"lock", digest(e.lock.keys.Lock), "error", err)
			},
		}
		observer.Run(ctx, func(l script.Leader) bool { return yield(newLeader(l)) })
	}
}
