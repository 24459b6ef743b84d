package script

import (
	"context"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Record is a record as it is in Redis, see lua/once/common.lua. Times are those of the server's clock.
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

// decodeRecord reads what report in lua/once/common.lua returns behind the status. A field with an impossible number counts as absent.
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
// is no record. The keys must be those of Keys.Once.
func (s Once) Summary(ctx context.Context, k Keys) (r Record, size int, err error) {
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
