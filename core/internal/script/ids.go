package script

import (
	"strconv"
	"strings"
	"sync/atomic"
)

// IDs makes the IDs of owners and holds of one client: its UUID, a colon and a number that is never used again. An owner has
// the ID of the first of its holds. It is safe for concurrent use.
type IDs struct {
	Client  string // the UUID; must be set before the first ID is made
	counter atomic.Uint64
}

// Next returns a new ID.
func (ids *IDs) Next() string {
	var digits [20]byte
	return ids.Client + ":" + string(strconv.AppendUint(digits[:0], ids.counter.Add(1), 10))
}

// Renew gives a hold a new ID, without unanswered requests. Why not SetID: ID and Released are parts of one string here, which
// costs one allocation.
func (ids *IDs) Renew(h *Hold) {
	var digits [20]byte
	number := strconv.AppendUint(digits[:0], ids.counter.Add(1), 10)
	h.Released = released + h.Keys.tag + ":" + ids.Client + ":" + string(number)
	h.ID = h.Released[len(h.Released)-len(ids.Client)-1-len(number):]
	h.Unanswered, h.Stored = 0, false
	h.setScriptArgs()
}

// ClientOf returns the UUID of the client that has made an owner. It returns false for an owner of another form, which
// WithOwner has named. Owners of Redisson's clients have the same form.
func ClientOf(owner string) (client string, ok bool) {
	client, number, _ := strings.Cut(owner, ":")
	if len(client) != 36 || number == "" || len(number) > 20 {
		return "", false
	}
	for i := range len(client) {
		switch c := client[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return "", false
			}
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return "", false
		}
	}
	return client, strings.Trim(number, "0123456789") == ""
}
