package guardconformance

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// rawKey is a key as a client sends it, which others must not see.
const rawKey = "card-4111-of-alice"

// stored returns all that is stored in Redis, uncompressed.
func (s *stage) stored() map[string]string {
	s.t.Helper()
	rdb := s.server.Client()
	if err := rdb.ConfigSet(s.t.Context(), "rdbcompression", "no").Err(); err != nil { // for DUMP
		s.t.Fatal(err)
	}
	return testkit.Stored(s.t, rdb, "*")
}

// wantHidden checks that nothing in Redis has the raw key, and that there is something.
func (s *stage) wantHidden(when string) {
	s.t.Helper()
	stored := s.stored()
	if len(stored) == 0 {
		s.t.Errorf("%s: nothing is stored in Redis", when)
	}
	for name, value := range stored {
		if strings.Contains(name, rawKey) || strings.Contains(value, rawKey) {
			s.t.Errorf("%s: Redis has the raw key: %q: %q", when, name, value)
		}
	}
}

// ofPlace matches the name of a lock or record that no other place has: a hash has no colon.
var ofPlace = regexp.MustCompile("^[a-z]+:.")

// testName: the same key may come to two places, which must not share its lock or record.
func testName(t *testing.T, s *stage) {
	s.send(s.with(counted(new(atomic.Int64))), Ran)
	if name := s.name(); !ofPlace.MatchString(name) {
		t.Errorf("the name %q in Redis does not begin with the place and a colon", name)
	}
}

// testRawKey: an item of each end, and no trace of its key outside of this process.
func testRawKey(t *testing.T, s *stage) {
	blocks, began, end := blocking(t)
	deliver := s.with(func(ctx context.Context, payload string) (string, error) {
		if strings.HasPrefix(payload, "payload") {
			return blocks(ctx, payload)
		}
		return "", errEffect
	}, impatient...)
	first := s.beginItem(deliver, rawKey, "payload")
	await(t, began, "the run")
	s.wantHidden("during the run")
	s.want(deliver(t.Context(), rawKey, "payload"), Busy)
	end <- nil
	s.end(first, Ran)
	if s.kind == Once {
		s.wantHidden("after the run")
		s.want(deliver(t.Context(), rawKey, "payload"), again...)
		deliver(t.Context(), rawKey, "another payload")
	}
	s.want(deliver(t.Context(), rawKey+"-2", "fails"), Failed)
	s.away()
	s.want(deliver(t.Context(), rawKey+"-3", "payload"), Unavailable)

	s.told.mu.Lock()
	defer s.told.mu.Unlock()
	for what, told := range map[string]any{
		"BeginStart or AcquireStart": s.told.names, "RunStart": s.told.starts, "RunEnd": s.told.ends, "NotRun": s.told.nots,
		"Incident": s.told.incidents,
	} {
		if text := fmt.Sprintf("%+v", told); strings.Contains(text, rawKey) {
			t.Errorf("hook %s has the raw key: %s", what, text)
		}
	}
	if strings.Contains(s.log.String(), rawKey) {
		t.Errorf("the log has the raw key:\n%s", s.log)
	}
}

// testSecret: with another secret, or none, the same item has other names, hashes and fingerprints. So nobody without the secret can
// find out which keys and payloads there were.
func testSecret(t *testing.T, s *stage) {
	names, hashes, fingerprints := map[string]int{}, map[string]int{}, map[string]int{}
	for i, opts := range [][]guard.Option{
		nil,
		{guard.WithKeySecret([]byte("a secret of 16 bytes at least"))},
		{guard.WithKeySecret([]byte("another secret, after the first"))},
	} {
		fn, began, end := blocking(t)
		deliver, known := s.with(fn, opts...), len(s.asked())
		item := s.begin(deliver)
		await(t, began, "the run, whose name the secret makes another one")
		for _, name := range slices.Compact(slices.Sorted(slices.Values(s.asked()[known:]))) {
			names[name]++
			if s.kind == Exclusive {
				continue
			}
			record, err := s.locks.Once(name).Peek(t.Context())
			if err != nil || record.State != core.StateRunning {
				t.Errorf("%+v, error %v", record, err)
			}
			if len(record.Fingerprint) > 0 { // some places compare no payloads
				fingerprints[string(record.Fingerprint)]++
			}
		}
		end <- nil
		s.end(item, Ran)
		hashes[s.wantRuns(i+1).KeyHash]++
		if s.kind == Once {
			s.send(deliver, again...)
		}
	}
	for what, of := range map[string]map[string]int{"names": names, "key hashes": hashes, "fingerprints": fingerprints} {
		for value, n := range of {
			if n > 1 {
				t.Errorf("WithKeySecret does not change the %s: %d of 3 guards have %q", what, n, value)
			}
		}
	}
}
