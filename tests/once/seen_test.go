package once_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

var allStates = []core.State{
	core.StateNone, core.StateRunning, core.StateAbandoned, core.StateUnknown, core.StateCompleted,
}

// writeRecord replaces a record by one of the attempt with that token in that state.
func writeRecord(t testing.TB, rdb *redis.Client, name string, state core.State, token int64) {
	t.Helper()
	ctx := context.Background()
	rdb.Del(ctx, coretest.RecordOf(name))
	if state == core.StateNone {
		return
	}
	fields := map[string]any{"state": string(state), "token": token}
	switch state {
	case core.StateRunning, core.StateAbandoned:
		fields["state"], fields["id"], fields["ttl"] = "running", "client:1:1", coretest.Long.Milliseconds()
		fields["deadline"] = time.Now().Add(coretest.Long).UnixMilli()
		if state == core.StateAbandoned {
			fields["deadline"] = 1
		}
	}
	if err := rdb.HSet(ctx, coretest.RecordOf(name), fields).Err(); err != nil {
		t.Fatal(err)
	}
	rdb.Expire(ctx, coretest.RecordOf(name), coretest.Long)
}

// TestSeenRecords: Forget, ForgetRunning and Resolve apply to a record in the state and of the attempt that was seen. They
// change no other one, and report what it has become. Forget keeps the record of a running attempt.
func TestSeenRecords(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	const token = 1_700_000_000_000_000
	actions := map[string]struct {
		do      func(*core.Once, core.Record) error
		leaves  core.State
		refused map[core.State]error
	}{
		"forget": {func(o *core.Once, seen core.Record) error { return o.Forget(ctx, seen) }, core.StateNone, map[core.State]error{
			core.StateRunning: core.ErrInProgress,
		}},
		"forget running": {func(o *core.Once, seen core.Record) error { return o.ForgetRunning(ctx, seen) }, core.StateNone, nil},
		"resolve": {func(o *core.Once, seen core.Record) error { return o.Resolve(ctx, seen, nil) }, core.StateCompleted, map[core.State]error{
			core.StateRunning: core.ErrInProgress, core.StateCompleted: core.ErrCompleted,
		}},
	}
	for what, action := range actions {
		for _, was := range allStates {
			for _, now := range allStates {
				for _, later := range []int64{0, 1} { // the same attempt, and a later one
					name := fmt.Sprintf("%s of %q, now %q of %d", what, was, now, later)
					once := locks.Once(name)
					writeRecord(t, rdb, name, was, token)
					seen := coretest.MustPeek(t, once)
					writeRecord(t, rdb, name, now, token+later)
					before := contents(t, rdb, name)
					err := action.do(once, seen)
					if same := was == now && (later == 0 || was == core.StateNone); same && action.refused[now] == nil {
						coretest.WantErr(t, err, nil)
						wantStateOnly(t, once, action.leaves)
						continue
					} else if same {
						coretest.WantErr(t, err, action.refused[now])
						if errors.Is(err, core.ErrChanged) {
							t.Errorf("%s: %v", name, err)
						}
					} else {
						says := fmt.Sprintf("once %q: the record has changed since it was seen: it is %s now", name, now)
						if now == core.StateNone {
							says = "there is none now"
						}
						if !errors.Is(err, core.ErrChanged) || !strings.Contains(err.Error(), says) {
							t.Errorf("%s: %v", name, err)
						}
						if errors.Is(err, core.ErrCompleted) != (now == core.StateCompleted) || errors.Is(err, core.ErrInProgress) != (now == core.StateRunning) {
							t.Errorf("%s: %v", name, err)
						}
					}
					if after := contents(t, rdb, name); !maps.Equal(before, after) {
						t.Errorf("%s: %v has become %v", name, before, after)
					}
				}
			}
		}
	}
}

// TestSeenRecordWithForeignToken: a record of a co-tenant, with a token that no script grants, can be forgotten as it was seen.
func TestSeenRecordWithForeignToken(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb)
	for _, token := range []string{"abc", "-7", "007", "9223372036854775807", "1e3", "0x10", ""} {
		name := "token " + token
		rdb.HSet(ctx, coretest.RecordOf(name), "state", "completed", "token", token)
		seen := coretest.MustPeek(t, locks.Once(name))
		if err := locks.Once(name).Forget(ctx, seen); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantStateOnly(t, locks.Once(name), core.StateNone)
	}
}

// TestSeenRecordIsChecked: a record of another key, or in no known state, is refused before Redis is asked.
func TestSeenRecordIsChecked(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	once := coretest.NewClient(t, rdb).Once("name")
	for _, seen := range []core.Record{{Key: "other"}, {State: "retry"}} {
		coretest.WantErr(t, once.Forget(ctx, seen), core.ErrInvalidOption)
		coretest.WantErr(t, once.ForgetRunning(ctx, seen), core.ErrInvalidOption)
		coretest.WantErr(t, once.Resolve(ctx, seen, nil), core.ErrInvalidOption)
	}
	if n := rdb.DBSize(ctx).Val(); n != 0 {
		t.Errorf("%d keys", n)
	}
}
