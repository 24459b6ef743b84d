package script

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Force takes the lock from its holders, of whatever strategy. forced is true if the lock was held. If seen is not nil, it takes the
// lock only from these holders, which an operator saw: changed is true if another owner holds it, or more owners than one script
// compares. Then nothing was written. It is idempotent: another call with the same id returns the same, for AbandonMemory.
func (i *Instance) Force(ctx context.Context, k Keys, id string, seen []Holder) (forced, changed bool, err error) {
	var args []any
	if seen != nil {
		args = append(args, len(seen))
	}
	for _, h := range seen {
		args = append(args, h.Owner, h.Token)
	}
	reply, err := i.force(ctx, forceScript, k, id, args...)
	if err != nil {
		return false, false, err
	}
	status, err := readStatus(reply, -1, 1)
	return status == 1, status == -1, err
}

// ForceHolder takes the lock from the owner with that name and that token, with all of its holds. An empty name and a token of 0
// may be any owner's. It returns true if it ended a hold.
//
// It begins anew because one script looks at some shares only, and renewals move others past it meanwhile.
func (i *Instance) ForceHolder(ctx context.Context, k Keys, owner string, token int64) (bool, error) {
	found, endedInPass := false, int64(0)
	from := int64(0)
	for range maxForceScripts {
		reply, err := i.force(ctx, forceHolderScript, k, i.IDs.Next(), owner, token, from)
		if err != nil {
			return found, err
		}
		ended, next, err := readForced(reply, from)
		if err != nil {
			return found, err
		}
		endedInPass += ended
		found = found || ended > 0
		whole := from == 0
		if from = next; from >= 0 {
			continue
		}
		if whole || endedInPass == 0 {
			return found, nil
		}
		from, endedInPass = 0, 0
	}
	return found, errEndless
}

const (
	// maxLooked is how many shares one run of lua/lock/force_holder.lua looks at.
	maxLooked = 1000
	// maxForceScripts bounds the scripts of one ForceHolder: enough for ten passes over as many shares as a semaphore may have.
	maxForceScripts = 10 * MaxLimit / maxLooked
)

// errEndless is the error for a server that has always further shares of an owner.
var errEndless = transport.WithOutcome(errors.New("holdfast: the owner's shares do not come to an end"), transport.Failed)

// readForced returns what a reply of lua/lock/force_holder.lua to a request for the shares from that rank on says: how
// many holds it has ended, the exclusive one among them, and the rank at which to continue, or -1. The shares that it
// has ended have no rank any more. A run that has ended some may have looked at fewer than maxLooked.
func readForced(reply any, from int64) (ended, next int64, err error) {
	d := newDecoder(reply)
	ended = d.Int(0, maxLooked+1)
	most := from + maxLooked - ended
	if next = d.Int(-1, most+1); next >= 0 && (next < from || next < most && ended == 0) {
		d.Fail()
	}
	return ended, next, d.End()
}

// force runs a script that takes the lock, until it is answered.
func (i *Instance) force(ctx context.Context, script *transport.Script, k Keys, id string, args ...any) (reply any, err error) {
	// The timeout lets no repetition arrive after Redis has forgotten the first one.
	bounded, cancel := context.WithTimeout(ctx, transport.AnswerTimeout)
	defer cancel()
	done := k.Released("forced:" + id)
	send := func(ctx context.Context) error {
		c := new(transport.Command)
		i.initQueue(c, script, k.Lock, newQueueArgs(k), []any{done, k.Forced()}, append([]any{Milliseconds(AbandonMemory)}, args...)...)
		err := i.Exec.Run(ctx, c)
		if err == nil {
			reply = c.Reply
		}
		return err
	}
	tokenKey := i.TokenKeys.arg(k.Lock)
	err = transport.RetryUntilAnswered(bounded, send)
	if i.TokenKeys.learnSlots(err, k.Lock, tokenKey) {
		err = transport.RetryUntilAnswered(bounded, send)
	}
	return reply, err
}
