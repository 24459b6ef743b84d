package oncescript

import (
	"time"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
)

// Record is a record as it is in Redis, see lua/common.lua.
type Record struct {
	State        string // running, retry, unknown, completed; empty if there is no record
	Attempt      int
	Token        int64
	Value        []byte // nil if Omitted
	Omitted      bool
	Fingerprint  []byte
	Reason, Note string
	Began, Ended time.Time
	Lease        time.Duration // the rest of it
	Retention    time.Duration // the rest of it
}

// readRecord reads what report in lua/common.lua returns.
func readRecord(reply any) (Record, error) {
	list, _ := reply.([]any)
	if len(list) != 5 {
		return Record{}, lockscript.Unexpected(reply)
	}
	state, _ := list[1].(string)
	lease, _ := list[2].(int64)
	retention, _ := list[3].(int64)
	fields := lockscript.Pairs(list[4])
	r := Record{State: state, Attempt: int(lockscript.Number(fields["attempt"]))}
	if state == "" {
		return r, nil
	}
	r.Token = lockscript.Number(fields["token"])
	r.Began, r.Ended = moment(fields["began"]), moment(fields["ended"])
	r.Fingerprint, r.Reason = bytesOf(fields, "fingerprint"), fields["reason"]
	r.Note = fields["note"]
	r.Lease, r.Retention = time.Duration(lease)*time.Millisecond, time.Duration(retention)*time.Millisecond
	if state == "completed" {
		r.Value = bytesOf(fields, "value")
		r.Omitted = r.Value == nil
	}
	return r, nil
}

// moment reads microseconds of the server's clock; there are none for what has not happened.
func moment(text string) time.Time {
	if us := lockscript.Number(text); us > 0 {
		return time.UnixMicro(us)
	}
	return time.Time{}
}

// bytesOf returns nil for a field that is absent, which is not the same as an empty one.
func bytesOf(fields map[string]string, name string) []byte {
	text, ok := fields[name]
	if !ok {
		return nil
	}
	return []byte(text)
}
