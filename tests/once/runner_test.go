package once_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// wantRunner checks what a record says of the process and the place of its attempt, to Peek and in a list.
func wantRunner(t *testing.T, locks *core.Client, key, instance, label string) {
	t.Helper()
	if r := coretest.MustPeek(t, locks.Once(key)); r.Instance != instance || r.Label != label {
		t.Errorf("%s: by %q, for %q, want %q and %q", key, r.Instance, r.Label, instance, label)
	}
	page, err := coretest.RecordPage(t.Context(), locks, key, "", 0)
	if err != nil || len(page.Records) != 1 || page.Records[0].Instance != instance || page.Records[0].Label != label {
		t.Errorf("%s: listed as %+v, %v", key, page.Records, err)
	}
}

// TestRecordNamesItsRunner: a record tells which process ran the last attempt, and for which place, in each state, also
// after the process has ended and its own key has expired.
func TestRecordNamesItsRunner(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	observer := coretest.NewClient(t, rdb, core.WithInstance("observer"))
	process, err := core.New(rdb, core.WithInstance("web-1:7"), core.WithTTL(coretest.Long))
	if err != nil {
		t.Fatal(err)
	}
	ends := map[string]func(*core.Attempt) error{
		"running":   func(*core.Attempt) error { return nil },
		"completed": func(a *core.Attempt) error { return a.Complete(ctx, []byte("value")) },
		"unknown":   func(a *core.Attempt) error { return a.Hold(ctx, "no answer") },
		"abandoned": func(a *core.Attempt) error { coretest.Abandon(t, rdb, "abandoned"); return nil },
	}
	for name, end := range ends {
		o := process.Once(name, core.WithLabel("POST /orders/{id}"))
		if name == "running" { // its grant has another form
			o = process.Once(name, core.WithLabel("POST /orders/{id}"), core.WithWindow(time.Time{}, time.Now().Add(coretest.Long)))
		}
		if err := end(coretest.MustBegin(t, o)); err != nil {
			t.Fatal(err)
		}
	}
	_ = process.Close()
	for _, key := range rdb.Keys(ctx, "holdfast:client:*").Val() {
		rdb.Del(ctx, key)
	}
	for name := range ends {
		wantRunner(t, observer, name, "web-1:7", "POST /orders/{id}")
	}
	next := coretest.NewClient(t, rdb, core.WithInstance("web-2:8"))
	coretest.MustBegin(t, next.Once("abandoned"))
	wantRunner(t, observer, "abandoned", "web-2:8", "")
	if err := coretest.ResolveNow(ctx, observer.Once("unknown"), nil); err != nil {
		t.Fatal(err)
	}
	wantRunner(t, observer, "unknown", "web-1:7", "POST /orders/{id}")

	silent := coretest.NewClient(t, rdb, core.WithInstance(""))
	coretest.MustBegin(t, silent.Once("silent"))
	wantRunner(t, observer, "silent", "", "")
	coretest.MustBegin(t, silent.Once("labelled", core.WithLabel("job")))
	wantRunner(t, observer, "labelled", "", "job")
	if err := coretest.MustBegin(t, next.Once("released", core.WithLabel("job"))).Release(ctx); err != nil {
		t.Fatal(err)
	}
	if r := coretest.MustPeek(t, observer.Once("released")); r.Instance != "" || r.Label != "" || r.Attempt != 1 {
		t.Errorf("released: %+v", r)
	}
	usual, err := core.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	defer usual.Close()
	coretest.MustBegin(t, usual.Once("usual"))
	if r := coretest.MustPeek(t, observer.Once("usual")); !strings.Contains(r.Instance, ":") {
		t.Errorf("by default: %q", r.Instance)
	}
}

// TestLateEndNamesItsRunner: an attempt whose record was lost, or was taken by one that took no effect, is recorded with its
// own process and label, not with the other's.
func TestLateEndNamesItsRunner(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	first, second := coretest.NewClient(t, rdb, core.WithInstance("web-1:7"), core.WithTTL(coretest.Long)), coretest.NewClient(t, rdb, core.WithInstance("web-2:8"))
	for _, own := range []string{"POST /a", ""} {
		for name, overtake := range map[string]func(key string){
			"lost": func(key string) { rdb.Del(ctx, coretest.RecordOf(key)) },
			"overtaken": func(key string) {
				coretest.Abandon(t, rdb, key)
				coretest.MustBegin(t, second.Once(key, core.WithLabel("POST /b"), core.WithNote("b")))
				coretest.Abandon(t, rdb, key)
			},
		} {
			for how, end := range map[string]func(*core.Attempt) error{
				"complete": func(a *core.Attempt) error { return a.Complete(ctx, nil) },
				"hold":     func(a *core.Attempt) error { return a.Hold(ctx, "") },
			} {
				for _, opts := range [][]core.OnceOption{nil, {core.WithGroup()}} {
					key := fmt.Sprint("{a}", name, how, own, len(opts))
					a := coretest.MustBegin(t, first.Once(key, append(opts, core.WithLabel(own))...))
					overtake(key)
					if err := end(a); err != nil {
						t.Errorf("%s: %v", key, err)
					}
					wantRunner(t, first, key, "web-1:7", own)
				}
			}
		}
	}
}

// TestRecordIsSmall: what docs/keys-and-rights.md says a record takes, with a process and a label of common length.
func TestRecordIsSmall(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithInstance("checkout-7d9f8b6c5d-x2x4z:1"))
	for label, most := range map[string]int64{"": 190, "POST /orders/{id}/items": 230} {
		o := locks.Once("order:42", core.WithLabel(label))
		if err := coretest.MustBegin(t, o).Complete(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		taken := rdb.MemoryUsage(t.Context(), coretest.RecordOf("order:42")).Val()
		t.Logf("label %q: %d bytes", label, taken)
		if taken > most {
			t.Errorf("label %q: %d bytes, more than %d", label, taken, most)
		}
		coretest.Forget(t, o)
	}
}

// TestLabelIsBounded: 256 bytes are allowed, one more is refused.
func TestLabelIsBounded(t *testing.T) {
	t.Parallel()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	longest := strings.Repeat("é", 128)
	coretest.MustBegin(t, locks.Once("a", core.WithLabel(longest)))
	if r := coretest.MustPeek(t, locks.Once("a")); r.Label != longest {
		t.Errorf("label %q", r.Label)
	}
	_, err := locks.Once("b", core.WithLabel(longest+"x")).Begin(t.Context())
	coretest.WantErr(t, err, core.ErrInvalidOption)
}

// TestRecordsByState: a page of the list leaves out the records of other states, and reads no value.
func TestRecordsByState(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	of := func(key string) *core.Once { return locks.Once(key, core.WithGroup()) }
	for i := range 3 {
		key := func(state string) string { return fmt.Sprint("{ada}:", state, i) }
		coretest.MustBegin(t, of(key("running")))
		coretest.MustBegin(t, of(key("abandoned")))
		coretest.Abandon(t, rdb, key("abandoned"))
		if err := coretest.MustBegin(t, of(key("unknown"))).Hold(ctx, ""); err != nil {
			t.Fatal(err)
		}
		if err := coretest.MustBegin(t, of(key("completed"))).Complete(ctx, []byte("value")); err != nil {
			t.Fatal(err)
		}
		if err := coretest.MustBegin(t, of(key("released"))).Release(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, states := range [][]core.State{
		{core.StateRunning},
		{core.StateAbandoned},
		{core.StateUnknown},
		{core.StateCompleted},
		{core.StateUnknown, core.StateAbandoned},
		nil,
	} {
		want := 3 * len(states)
		if states == nil {
			want = 12
		}
		in := func(r core.Record) bool { return states == nil || slices.Contains(states, r.State) }
		before := server.CommandStats()["hgetall"].Calls
		listed := 0
		wanted := make([]string, len(states))
		for i, s := range states {
			wanted[i] = string(s)
		}
		for r, err := range locks.Records(seal.WithPage(ctx, &seal.Page{States: wanted}), "{ada}:") {
			if listed++; err != nil || !in(r.Record) {
				t.Fatalf("%q: %+v, %v", states, r, err)
			}
		}
		if n := server.CommandStats()["hgetall"].Calls - before; n != 0 {
			t.Errorf("%q: %d records were read whole", states, n)
		}
		if listed != want {
			t.Errorf("%q: %d listed, want %d", states, listed, want)
		}
	}
	for _, bad := range []string{"", "Unknown"} {
		_, err := coretest.RecordPage(ctx, locks, "", "", 0, bad)
		coretest.WantErr(t, err, core.ErrInvalidOption)
	}
}

// TestPageOfOneState: a page continues beyond records of other states until it has found some, and all pages together have
// each record once.
func TestPageOfOneState(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long))
	const records, every = 600, 100
	besiege(records, func(i int) {
		a, err := locks.Once(fmt.Sprintf("%03d", i)).Begin(ctx)
		if err == nil && i%every == 0 {
			err = a.Hold(ctx, "")
		}
		if err != nil {
			t.Error(err)
		}
	})
	page, err := coretest.RecordPage(ctx, locks, "", "", 10, string(core.StateUnknown))
	if err != nil || len(page.Records) != records/every {
		t.Errorf("first page: %d records, %v", len(page.Records), err)
	}
	var found []string
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := coretest.RecordPage(ctx, locks, "", cursor, 2, string(core.StateUnknown))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			found = append(found, r.Key)
		}
		cursor = page.Next
	}
	slices.Sort(found)
	if found = slices.Compact(found); len(found) != records/every {
		t.Errorf("found %q", found)
	}
}
