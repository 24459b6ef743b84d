package script

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Once is the [Strategy] of a Once. An attempt is a hold: its lease is renewed and waited for like the lease of a lock. Only the
// state in Redis differs. The field Terms of each hold must be set.
type Once struct {
	*Instance
	Unconfirmed Unconfirmed // ends of attempts of this client
}

// What a running attempt counts as when its lease has expired: outcome_on_expiry in lua/once/common.lua.
const (
	ExpiryAllowsRetry    = "retry"     // the next attempt may begin
	ExpiryMeansUnknown   = "unknown"   // the outcome is unknown and has to be resolved
	ExpiryMeansCompleted = "completed" // the run has completed, without a value
)

// Name implements [Strategy].
func (*Once) Name() string { return "once" }

// SetOutcomeOnExpiry sets what the attempt counts as when its lease has expired. The value is one of the constants above. It
// returns false if the attempt is not in the record any more, for instance because another one has begun. Of two calls for
// one attempt the one with the greater number wins, whichever arrives last.
func (s *Once) SetOutcomeOnExpiry(ctx context.Context, h *Hold, number int64, what string) (bool, error) {
	return done(s.Exec.DoWithAck(ctx, h.Ack, onceDeclareScript, []string{h.Keys.Lock}, h.ID, what, number))
}

// Renew implements [Strategy].
func (s *Once) Renew(ctx context.Context, h *Hold, ttl time.Duration) (bool, error) {
	return done(s.Exec.DoWithAck(ctx, h.Ack, onceRenewScript, []string{h.Keys.Lock}, renewArgs(h, ttl)...))
}

// RenewAll implements [Strategy]. Behind each renewal of a grouped record, it sends the command that extends the
// membership.
func (s *Once) RenewAll(renewals []*Renewal) {
	commands := make([]*transport.Command, 0, 2*len(renewals))
	for _, r := range renewals {
		c := transport.NewCommand(onceRenewScript, []string{r.Hold.Keys.Lock}, renewArgs(r.Hold, r.Hold.TTL)...)
		c.Ack = r.Hold.Ack
		c.OnSend = func() { r.Sent.Store(true) }
		c.Done = func(c *transport.Command) {
			held, err := done(c.Reply, c.Err)
			r.Done(c.SentAt, held, err)
		}
		if commands = append(commands, c); r.Hold.Terms.Group.Key != "" {
			commands = append(commands, enlistCommand(r.Hold))
		}
	}
	s.Exec.SubmitRenewals(commands)
}

// enlistCommand returns the command that extends the membership of a running record in its group. The membership lasts for a
// whole retention, or a TTL if that is longer. If the command fails, the next renewal repeats it.
func enlistCommand(h *Hold) *transport.Command {
	c := transport.NewCommand(onceEnlistScript, h.Terms.Group.withGroup(h.Keys.Lock), h.ID,
		Counted(h.Terms.content(h.Terms.MaxValue)))
	c.Done = func(*transport.Command) {}
	return c
}

// renewArgs returns the arguments of lua/once/renew.lua.
func renewArgs(h *Hold, ttl time.Duration) []any {
	return []any{h.ID, Milliseconds(ttl), Milliseconds(h.Terms.Retention)}
}

// Peek returns the record of a name. Its State is "" if there is none. The keys must come from Keys.Once.
func (s *Once) Peek(ctx context.Context, k Keys) (Record, error) {
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
func (s *Once) List(ctx context.Context, group, prefix string, seen int) (read int, keys []string, err error) {
	reply, err := s.Exec.Do(ctx, onceListScript, []string{group}, seen, MaxListed)
	if err != nil {
		return 0, nil, err
	}
	return readList(reply, prefix)
}

// readList returns what a reply of lua/once/list.lua says: how many members the script has read, and which of their keys have the
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

// Terms are what an attempt says of the record that it is to leave. The field Terms of its hold refers to them.
type Terms struct {
	Retention    time.Duration // for which the record is kept after its end
	Fingerprint  []byte        // of the request; nil for none
	HoldFailures bool          // true if an expired attempt has an unknown outcome; false if the next attempt may begin
	MaxValue     int           // the longest value that is recorded, in bytes
	Grouped      bool          // true if the records of the same hash tag form a group
	Group        Group         // that group; zero if Grouped is false
	Earliest     time.Time     // the window in which an attempt may begin, by the server's clock; zero for no bound
	Latest       time.Time
	Note         string // for readers of the record
	Instance     string // of the client, see package inventory
	Label        string // place of the guard
}

// question is what an answer depends on beside the record.
type question struct {
	ack              transport.Ack
	fingerprint      string
	holdFailures     bool
	group            Group
	size             int64 // that the attempt counts in the group
	earliest, latest any
}

// Question returns a comparable value. Callers of one key with equal questions get equal answers from one state of Redis.
func (t *Terms) Question(ack transport.Ack) any {
	return question{
		ack: ack, fingerprint: string(t.Fingerprint), holdFailures: t.HoldFailures, group: t.Group,
		size: Counted(t.content(t.MaxValue)), earliest: windowBound(t.Earliest), latest: windowBound(t.Latest),
	}
}

// Group is the group in which a record counts, see lua/once/group.lua. The zero value is no group.
type Group struct {
	Key        string // "" if the record is in no group
	MaxRecords int    // 0 for any number
}

// bounded returns true if there is a quota. Then what a release leaves of a record has to be counted too.
func (g Group) bounded() bool { return g.MaxRecords > 0 }

// withGroup returns the keys, followed by the key of the group if there is one.
func (g Group) withGroup(keys ...string) []string {
	if g.Key == "" {
		return keys
	}
	return append(keys, g.Key)
}

// recordOverhead is how many bytes a record takes in Redis beside its content, with its membership in the group.
const recordOverhead = 1536

// Counted returns how many bytes a record with that many bytes of content counts in its group. It adds the overhead, and
// rounds up to one of four sizes for each power of two, as lua/once/group.lua does.
func Counted(content int) int64 {
	n := int64(content) + recordOverhead
	step := int64(1) << (bits.Len64(uint64(n-1)) - 3)
	return (n + step - 1) / step * step
}

// content returns how many bytes of content a record has whose value has that many bytes.
func (t *Terms) content(value int) int { return value + len(t.Fingerprint) + len(t.Note) }

// Acquire implements [Strategy]: it begins an attempt.
//
// It sends unconfirmed ends of the key first, and nothing else while one has no answer. If the reply to an end is that
// another attempt is running, that is the answer to the begin as well. Not a begin then, because that attempt may have
// ended before the begin arrives.
func (s *Once) Acquire(ctx context.Context, h *Hold, want Wanted) (Result, error) {
	var other *overtaken
	if err := s.Unconfirmed.settle(ctx, h.Keys.Lock); errors.As(err, &other) {
		return Result{WaitState: other.by}, nil
	} else if err != nil {
		return Result{}, err
	}
	result, err := s.begin(ctx, h)
	if result.Granted && s.Unconfirmed.first(h.Keys.Lock) != nil {
		// Another attempt of this client has ended meanwhile, without a lease. Its end comes first, so this one is withdrawn.
		h.Stored = true
		return Result{HoldReleased: true}, nil
	}
	return result, err
}

// begin sends the request for an attempt.
func (s *Once) begin(ctx context.Context, h *Hold) (Result, error) {
	tokenKey := s.TokenKeys.Of(h.Keys.Lock)
	c := transport.NewCommand(onceBeginScript, h.Terms.Group.withGroup(h.Keys.Lock, tokenKey, h.Released), beginArgs(h)...)
	c.Ack = h.Ack
	err := s.Exec.Run(ctx, c)
	h.countRepeated(c)
	if s.TokenKeys.learnSlots(err, h.Keys.Lock, tokenKey) {
		return s.begin(ctx, h)
	}
	if err != nil {
		return Result{}, err
	}
	return readBegin(c.Reply)
}

// beginArgs returns the arguments of lua/once/begin.lua.
func beginArgs(h *Hold) []any {
	t := h.Terms
	onExpiry := ""
	if t.HoldFailures {
		onExpiry = ExpiryMeansUnknown
	}
	args := []any{
		h.ID, Milliseconds(h.TTL), Milliseconds(max(t.Retention, h.TTL)), tokenMemoryArg,
		onExpiry, text(t.Fingerprint), t.Note, t.Instance, t.Label,
		windowBound(t.Earliest), windowBound(t.Latest),
	}
	if g := t.Group; g.Key != "" {
		args = append(args, Counted(t.content(t.MaxValue)))
		if g.MaxRecords > 0 {
			args = append(args, g.MaxRecords)
		}
	}
	return trimDefaults(args)
}

var tokenMemoryArg any = Milliseconds(tokenMemory)

// text returns bytes as an argument of scripts.
func text(b []byte) any {
	if len(b) == 0 {
		return ""
	}
	return b
}

// readBegin returns the result for a reply of lua/once/begin.lua.
func readBegin(reply any) (result Result, err error) {
	if _, first := reply.(int64); first {
		token, err := readStatus(reply, leastToken, TokenLimit)
		return Result{Granted: err == nil, Grant: Grant{Token: token, Attempt: 1, Began: time.UnixMicro(token)}}, err
	}
	d := newDecoder(reply)
	refused := &Refusal{}
	switch status := d.Int(-7, 1); status {
	case 1:
		result.Granted, result.Token = true, d.Token()
		result.Attempt, result.Began = int(d.Int(1, math.MaxInt32)), d.Time()
	case 0:
		result.HolderTTL, result.Holder = d.TTL(), d.Text()
	case -1:
		d.Int(0, 0)
		result.HoldReleased = true
	case -2:
		d.Int(0, 0)
		refused.Kind = fingerprintMismatch
	case -3:
		refused.Kind, refused.Record = OutcomeUnknown, decodeRecord(&d)
	case -4:
		refused.Kind, refused.Record = Completed, decodeRecord(&d)
	case -5:
		refused.Kind, refused.RetryAfter = TooManyRecords, d.TTL()
	case -6:
		refused.Kind, refused.ServerTime = TooEarly, d.Time()
	case -7:
		refused.Kind, refused.ServerTime = TooLate, d.Time()
	}
	if err := d.End(); err != nil {
		return Result{}, err
	}
	if refused.Kind != 0 {
		result.Refused = refused
	}
	return result, nil
}

// windowBound returns a bound of a window as an argument of lua/once/begin.lua: ms since 1970, or "" for the zero time, which is no
// bound. For times that do not fit into milliseconds, it returns one that the clock of no server reaches.
func windowBound(t time.Time) any {
	const never = int64(1) << 40 // s
	switch s := t.Unix(); {
	case t.IsZero():
		return ""
	case s > never:
		return never * 1000
	case s < -never:
		return -never * 1000
	}
	return cmp.Or(t.UnixMilli(), 1) // 0 would be a default, see trimDefaults
}

// Refusal is why an attempt may not begin, a record cannot be resolved or forgotten, or a lock cannot be granted
// however long its owner waits.
type Refusal struct {
	Kind       RefusalKind
	Record     Record        // of Completed, OutcomeUnknown and Changed; zero for other kinds
	RetryAfter time.Duration // of TooManyRecords and InProgress; 0 for other kinds
	ServerTime time.Time     // of TooEarly and TooLate; zero for other kinds
}

// Error returns a text for tests. The API has an error for each kind of refusal.
func (r *Refusal) Error() string { return fmt.Sprintf("refused: %d", r.Kind) }

// RefusalKind is the reason of a refusal.
type RefusalKind int

// The reasons of refusals. Package core takes every other value for fingerprintMismatch.
const (
	Completed           RefusalKind = iota + 1 // a run has completed before
	OutcomeUnknown                             // a run has an unknown outcome, which has to be resolved first
	InProgress                                 // an attempt is running, so the record cannot be resolved, or forgotten without force
	fingerprintMismatch                        // the record was made for another fingerprint
	TooManyRecords                             // the group has as many records as it may have
	TooEarly                                   // the server's clock has not reached the window
	TooLate                                    // the server's clock is past the window
	Changed                                    // the record is not as the operator saw it
	Upgrade                                    // of a lock: its owner holds it in another way, and would wait for itself
)

// Settled returns true if no attempt will begin unless an operator decides so. Then waiting helps no caller of the key.
func (r *Refusal) Settled() bool {
	return r.Kind == Completed || r.Kind == OutcomeUnknown && r.Record.State == "unknown"
}

// Record is a record as it is in Redis, see lua/once/common.lua. Times are by the server's clock.
type Record struct {
	State        string // running, retry, unknown or completed; "" if there is no record
	Attempt      int    // number of the last attempt, from 1; 0 if there was none
	Token        int64  // of that attempt
	Value        []byte // of a completed run; nil if Omitted
	Omitted      bool   // true if a completed run had a value that was not recorded
	Fingerprint  []byte // nil if the attempt had none
	Reason, Note string
	Instance     string        // of the client that began the attempt
	Label        string        // place of the guard that began it
	Began, Ended time.Time     // of the attempt; zero if it has not begun or ended
	OnExpiry     string        // state of a running attempt when its lease has expired
	Lease        time.Duration // until the lease of a running attempt expires
	Retention    time.Duration // until the record expires
}

// readRecord returns the record in a reply that is made by report in lua/once/common.lua.
func readRecord(reply any) (Record, error) {
	d := newDecoder(reply)
	d.Int(0, 0)
	r := decodeRecord(&d)
	return r, d.End()
}

// decodeRecord reads what report in lua/once/common.lua returns behind the status. A field with an impossible number
// counts as absent.
func decodeRecord(d *decoder) Record {
	state, lease, retention, fields := d.Text(), d.TTL(), d.TTL(), d.Pairs()
	r := Record{State: state, Attempt: int(number(usually(fields, "attempt", firstAttempt(fields)), math.MaxInt32))}
	switch state {
	case "":
		return r
	case "running", ExpiryAllowsRetry, ExpiryMeansUnknown, ExpiryMeansCompleted:
	default:
		d.Fail()
		return Record{}
	}
	r.Token = tokenOf(fields["token"])
	r.Began, r.Ended = moment(usually(fields, "began", fields["token"])), moment(fields["ended"])
	r.Fingerprint, r.Reason = bytesOf(fields, "fingerprint"), fields["reason"]
	r.Note, r.Instance, r.Label = fields["note"], fields["by"], fields["label"]
	r.Lease, r.Retention = lease, retention
	if state == "running" {
		r.OnExpiry = usually(fields, "outcome_on_expiry", ExpiryAllowsRetry)
	}
	if state != ExpiryMeansCompleted {
		return r
	}
	// A run that was declared completed and has crashed since has left no value. Its record still says that it is running.
	if r.Omitted = fields["omitted"] != "" || fields["state"] != state; !r.Omitted {
		r.Value = []byte(fields["value"])
	}
	return r
}

// usually returns the value of a field. It returns usual if the field is absent, see lua/once/common.lua.
func usually(fields map[string]string, name, usual string) string {
	if value, ok := fields[name]; ok {
		return value
	}
	return usual
}

// firstAttempt returns the number of an attempt that is not in the record: a record with a token has had one.
func firstAttempt(fields map[string]string) string {
	if fields["token"] != "" {
		return "1"
	}
	return "0"
}

// bytesOf returns the value of a field. It returns nil if the field is absent, and an empty slice if its value is empty.
func bytesOf(fields map[string]string, name string) []byte {
	text, ok := fields[name]
	if !ok {
		return nil
	}
	return []byte(text)
}

// Summary reads a record for a list: without its value and fingerprint, and with the bytes of the value. Its State is "" if there
// is no record. The keys must come from Keys.Once.
func (s *Once) Summary(ctx context.Context, k Keys) (r Record, size int, err error) {
	var reply any
	err = transport.Retry(ctx, 0, transport.Transient, func() (err error) {
		reply, err = s.Exec.Do(ctx, onceSummaryScript, []string{k.Lock})
		return err
	})
	if err != nil {
		return Record{}, 0, err
	}
	d := newDecoder(reply)
	d.Int(0, 0)
	r = decodeRecord(&d)
	r.Value, size = nil, int(d.Int(0, math.MaxInt32))
	return r, size, d.End()
}
