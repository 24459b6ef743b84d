package script

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Once is the [Strategy] of a Once. An attempt is a hold: its lease is renewed and waited for like that of a lock. Only the
// state in Redis differs. The field Terms of each hold must be set.
type Once struct {
	*onceInstance
}

// onceInstance is one Redis as the scripts of Once use it.
type onceInstance struct {
	*Instance
	Unconfirmed Unconfirmed // ends of attempts of this client
}

// NewOnce returns the strategy of one client for a Redis.
func NewOnce(redis *Instance) Once {
	return Once{&onceInstance{Instance: redis}}
}

// What a running attempt counts as when its lease has expired: outcome_on_expiry in lua/once/common.lua.
const (
	ExpiryAllowsRetry    = "retry"     // the next attempt may begin
	ExpiryMeansUnknown   = "unknown"   // the outcome is unknown and has to be resolved
	ExpiryMeansCompleted = "completed" // the run has completed, without a value
)

// Name implements [Strategy].
func (Once) Name() string { return "once" }

// termsOf returns the terms of the attempt of a hold.
func termsOf(h *Hold) *Terms { return h.Terms }

// SetOutcomeOnExpiry sets what the attempt counts as when its lease has expired. The value is one of the constants above. It
// returns false if the attempt is not in the record any more, for instance because another one has begun. Of two calls for
// one attempt the one with the greater number wins, whichever arrives last.
func (s Once) SetOutcomeOnExpiry(ctx context.Context, h *Hold, number int64, what string) (bool, error) {
	reply, err := s.Exec.DoWithAck(ctx, h.Ack, onceDeclareScript, []string{h.Keys.Lock}, h.ID, what, number)
	return done(reply, err)
}

// Renew implements [Strategy].
func (s Once) Renew(ctx context.Context, h *Hold, ttl time.Duration) (bool, error) {
	reply, err := s.Exec.DoWithAck(ctx, h.Ack, onceRenewScript, []string{h.Keys.Lock}, renewArgs(h, ttl)...)
	return done(reply, err)
}

// done returns whether a script that replies 1 or 0 has replied 1.
func done(reply any, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	status, err := readStatus(reply, 0, 1)
	return status == 1, err
}

// RenewAll implements [Strategy]. Behind each renewal of a grouped record, it sends the command that extends the
// membership.
func (s Once) RenewAll(renewals []*Renewal) {
	commands := make([]*transport.Command, 0, 2*len(renewals))
	for _, r := range renewals {
		c := transport.NewCommand(onceRenewScript, []string{r.Hold.Keys.Lock}, renewArgs(r.Hold, r.Hold.TTL)...)
		c.Ack = r.Hold.Ack
		c.OnSend = func() { r.Sent.Store(true) }
		c.Done = func(c *transport.Command) {
			held, err := done(c.Reply, c.Err)
			r.Done(c.SentAt, held, err)
		}
		if commands = append(commands, c); termsOf(r.Hold).Group.Key != "" {
			commands = append(commands, enlistCommand(r.Hold))
		}
	}
	s.Exec.SubmitRenewals(commands)
}

// enlistCommand returns the command that extends the membership of a running record in its group. The membership lasts for a
// whole retention, or a TTL if that is longer. If the command fails, the next renewal repeats it.
func enlistCommand(h *Hold) *transport.Command {
	c := transport.NewCommand(onceEnlistScript, termsOf(h).Group.withGroup(h.Keys.Lock), h.ID,
		Counted(termsOf(h).content(termsOf(h).MaxValue)))
	c.Done = func(*transport.Command) {}
	return c
}

// renewArgs returns the arguments of lua/once/renew.lua.
func renewArgs(h *Hold, ttl time.Duration) []any {
	return []any{h.ID, Milliseconds(ttl), Milliseconds(termsOf(h).Retention)}
}

// Peek returns the record of a name. Its State is "" if there is none. The keys must be those of Keys.Once.
func (s Once) Peek(ctx context.Context, k Keys) (Record, error) {
	reply, err := s.Exec.Do(ctx, oncePeekScript, []string{k.Lock})
	if err != nil {
		return Record{}, err
	}
	return readRecord(reply)
}

// MaxListed bounds how many records of a group one script reads: while it runs, the server does nothing else.
const MaxListed = 1000

// List returns the keys of records of a group, without the prefix of the client. It leaves out the seen members that earlier
// calls have read. read is how many members it has read; fewer than MaxListed were the last ones.
func (s Once) List(ctx context.Context, group, prefix string, seen int) (read int, keys []string, err error) {
	reply, err := s.Exec.Do(ctx, onceListScript, []string{group}, seen, MaxListed)
	if err != nil {
		return 0, nil, err
	}
	return readList(reply, prefix)
}

// readList returns what a reply of lua/once/list.lua says: how many members the script has read, and those of their keys that have the
// prefix.
func readList(reply any, prefix string) (read int, keys []string, err error) {
	d := newDecoder(reply)
	read = int(d.Int(0, MaxListed))
	if _, list := reply.([]any); !list || d.Len() > read {
		d.Fail()
	}
	for d.Len() > 0 {
		record := d.Text()
		// Keys of a group have braces, so the key of a record is "=" and the key, see NewKeys.
		if key, ok := strings.CutPrefix(record, Reserved+"once="+prefix); ok {
			keys = append(keys, key)
		}
	}
	if err := d.End(); err != nil {
		return 0, nil, err
	}
	return read, keys, nil
}
