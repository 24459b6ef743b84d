package core_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// repliesOf returns a reply of Redis as it is on the wire.
func repliesOf(reply string) string { return strings.ReplaceAll(reply, " ", "\r\n") + "\r\n" }

// TestForeignServerSlots: a server that replies a slot that the semaphore does not have, or a slot of a lock that has none, gives no
// lock.
func TestForeignServerSlots(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{"*3 :1 :5 :2", "*3 :1 :5 :999999", "*3 :1 :5 :1000000", "*3 :1 :5 :-1", "*3 :1 :5 :0", "*3 :1 :5 $1 1"} {
		locks := newClient(t, foreignServer(t, repliesOf(reply)), core.WithTTL(long))
		for kind, strategy := range map[string]core.Strategy{"semaphore": locks.Limit(2), "fair": locks.Fair, "read": locks.Read, "write": locks.Write} {
			if lease, err := strategy(kind).TryLock(context.Background()); err == nil || !strings.Contains(err.Error(), "unexpected reply") {
				t.Errorf("%s: %s: slot %d, error %v", reply, kind, lease.Slot(), err)
			}
		}
	}
	locks := newClient(t, foreignServer(t, repliesOf("*3 :1 :5 :1")), core.WithTTL(long))
	if lease, err := locks.Limit(2)("semaphore").TryLock(context.Background()); err != nil || lease.Slot() != 1 {
		t.Errorf("slot %d, error %v", lease.Slot(), err)
	}
}

// TestForeignServerRecords: a server that replies no list of records to a request for the records of a group gives an error, and not
// an empty list.
func TestForeignServerRecords(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{
		":1", ":0", "*0", "*1 $1 1", "*1 :-1", "*1 :99999999", "*2 :0 $1 x", "*2 :1 :1", "*3 :1 $1 x $1 y", "*2 :1 $-1", "*2 :1 *0", "$1 x",
	} {
		locks := newClient(t, foreignServer(t, repliesOf(reply)), core.WithTTL(long))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		records, err := locks.Records(ctx, "{group}key")
		cancel()
		if err == nil || !strings.Contains(err.Error(), "unexpected reply") {
			t.Errorf("%s: %d records, error %v", reply, len(records), err)
		}
	}
}
