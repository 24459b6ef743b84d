package client_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// findAll returns all names of a digest, locks and records.
func findAll(t testing.TB, locks *core.Client, digest string) (found []seal.Named) {
	t.Helper()
	for m, err := range seal.NamesOf(locks).FindDigest(context.Background(), digest) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, m)
	}
	return found
}

// TestKeyHashOfTheLog: the hash of a key, as guards log it, leads to the locks and records whose names end with it.
func TestKeyHashOfTheLog(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	coretest.SeedLocks(t, rdb, "other", 300)
	const hash, other = "nMbtemkE3hgwerKqVfQjiQT1LOFpE20lgzOTM-1GekY", "nMbtemkE3hgwerKqVfQjiQT1LOFpE20lgzOTM_1GekY"
	for _, prefix := range []string{"lock:", "shop:lock:", ""} {
		locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithPrefix(prefix))
		coretest.MustLock(t, locks.Mutex("http:"+hash))
		coretest.MustLock(t, locks.Mutex("http:"+other))
		coretest.MustLock(t, locks.Mutex("x"+hash))
		coretest.MustBegin(t, locks.Once("asynq:"+hash))
		coretest.MustBegin(t, locks.Once("http:{"+other+"}:"+hash))
		coretest.MustBegin(t, locks.Once("http:{"+hash+"}:"+other)) // of a user, whose requests have other hashes
		found := findAll(t, locks, " "+hash)
		slices.SortFunc(found, func(a, b seal.Named) int { return strings.Compare(a.Name, b.Name) })
		if want := []seal.Named{{Name: "asynq:" + hash, Record: true}, {Name: "http:" + hash, Record: false}, {Name: "http:{" + other + "}:" + hash, Record: true}}; !slices.Equal(found, want) {
			t.Errorf("prefix %q: %+v, want %+v", prefix, found, want)
		}
		if err := rdb.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDigestOfTheLog: Digest returns what a line of the log shows, and FindDigest the name behind it.
func TestDigestOfTheLog(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	log := new(coretest.Record)
	logging := func() *core.Client { // each names its first loss
		return coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	}
	locks := logging()
	coretest.SeedLocks(t, rdb, "other", 300)
	for _, name := range []string{"name", "{tag}:name"} {
		locks := logging()
		lease := coretest.MustLock(t, locks.Mutex(name))
		lease.Abandon()
		if !strings.Contains(log.String(), "lock="+seal.NamesOf(locks).Digest(name, false)) {
			t.Errorf("%s: %s is not in the log: %s", name, seal.NamesOf(locks).Digest(name, false), log.String())
		}
		if found := findAll(t, locks, seal.NamesOf(locks).Digest(name, false)); !slices.Equal(found, []seal.Named{{Name: name}}) {
			t.Errorf("%s: %+v", name, found)
		}
		o, ofRecord := logging().Once(name), seal.NamesOf(locks).Digest(name, true)
		coretest.MustBegin(t, o).Abandon()
		if !strings.Contains(log.String(), "lock="+ofRecord) {
			t.Errorf("once %s: %s is not in the log: %s", name, ofRecord, log.String())
		}
		if found := findAll(t, locks, ofRecord); !slices.Equal(found, []seal.Named{{Name: name, Record: true}}) {
			t.Errorf("once %s: %+v", name, found)
		}
	}
	if found := findAll(t, locks, "00000000"); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	if found := findAll(t, locks, " "+strings.ToUpper(seal.NamesOf(locks).Digest("name", false))+"\n"); len(found) != 1 {
		t.Errorf("in upper case: %+v", found)
	}
	for _, wrong := range []string{
		"", "xyz", "d092d54", "d092d5455", "g092d545", strings.Repeat("a", 42), strings.Repeat("a", 44), strings.Repeat("a", 42) + "+",
	} {
		for m, err := range seal.NamesOf(locks).FindDigest(ctx, wrong) {
			coretest.WantErr(t, err, core.ErrInvalidOption)
			if m.Name != "" {
				t.Errorf("%q: %+v", wrong, m)
			}
		}
	}
	for m := range seal.NamesOf(locks).FindDigest(ctx, seal.NamesOf(locks).Digest("name", false)) { // stops after the first
		if m.Name != "name" {
			t.Errorf("%+v", m)
		}
		break
	}
}
