package script

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// An election is a lock of the strategy Queue. Its leader is the holder, and what the leader proclaims is one more field of the
// lock. Observers have a channel of their own, because the subscribers of the main channel count as waiters.

// leaderChannel returns the channel on which observers of an election are notified that they should read the state. It begins
// with the channel of the lock, so the rights of a Redis user cover both.
func (k Keys) leaderChannel() string { return k.Channel + ":leader" }

// Leader is the leader of an election at one instant. The zero value is a vacancy.
type Leader struct {
	Owner   string // "" of a vacancy
	Value   string
	Token   int64
	Granted time.Time // by the server's clock
	TTL     time.Duration
	Number  int64 // of the proclamation, which grows with each in a grant; 0 until the first
}

// maxLeaderFields bounds the fields that are read of a leader's lock. Of a larger one the fixed fields are enough.
const maxLeaderFields = 64

// Leader reads the leader of the election of that lock. It is a vacancy if the lock is free, has expired, stays taken for its
// minimum hold time only, or is held by another strategy.
func (i *Instance) Leader(ctx context.Context, k Keys) (Leader, error) {
	s, err := i.snapshot(ctx, transport.Transient, []string{k.Lock}, maxLeaderFields)
	state := s.state(0)
	if err != nil || state.Mode != "fair" || len(state.Holders) != 1 {
		return Leader{}, err
	}
	h := state.Holders[0]
	if h.Token == 0 || h.Granted.IsZero() { // another program has written them
		return Leader{}, Unexpected([]any{s.fields["token"], s.fields["granted"]})
	}
	return Leader{h.Owner, state.Value, h.Token, h.Granted, h.TTL, state.Proclamation}, nil
}

// Proclaim writes the value of a leader into the lock that it holds, and notifies the observers. It returns false if the hold
// does not have the lock with that token any more. Of two proclamations of one hold the one with the greater number wins,
// whichever arrives last.
func (i *Instance) Proclaim(ctx context.Context, k Keys, id string, token, number int64, value string) (bool, error) {
	reply, err := i.Exec.Do(ctx, proclaimScript, []string{k.Lock}, id, token, number, value, k.leaderChannel(), i.PublishVerbArg)
	if err != nil {
		return false, err
	}
	status, err := readStatus(reply, 0, 3)
	if err != nil {
		return false, err
	}
	if status >= 2 {
		i.PublishRefused()
	}
	return status != 0, nil
}

// announce notifies the observers that leadership was given up. It does not wait, because the release has been confirmed. Nothing
// follows from an error: observers also poll.
func (i *Instance) announce(k Keys) {
	c := transport.NewCommand(announceScript, []string{k.Lock}, k.leaderChannel(), i.PublishVerbArg)
	c.Done = func(*transport.Command) {}
	i.Exec.SubmitRenewals([]*transport.Command{c})
}

// SubscribeToLeader subscribes to the changes of leadership. The caller must call Close.
func (i *Instance) SubscribeToLeader(k Keys) *transport.Subscriber {
	return i.Subs.Subscribe(k.leaderChannel(), "")
}
