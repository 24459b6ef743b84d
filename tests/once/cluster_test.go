package once_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestOnceInCluster uses Once on names all over a Cluster, among them such with a hash tag.
func TestOnceInCluster(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 3)
	a, b := coretest.NewClient(t, cluster.Client()), coretest.NewClient(t, cluster.Client())
	for i := range 8 {
		name := fmt.Sprint("name", i)
		if i%4 == 0 {
			name = fmt.Sprintf("{tag%d}:name", i)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			coretest.EndEveryWay(t, a, b, name)
		})
	}
}

// TestKeysOfARecord: everything about it has the hash tag of its name, hence one slot.
func TestKeysOfARecord(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, tag := range map[string]string{"plain": "lock:plain", "{tag}:x": "tag"} {
		rdb := testkit.Start(t).Client()
		once := coretest.NewClient(t, rdb, core.WithInstance("")).Once(name)
		if err := coretest.MustBegin(t, once).Complete(ctx, nil); err != nil {
			t.Error(err)
		}
		coretest.Forget(t, once)
		if err := coretest.ResolveNow(ctx, once, nil); err != nil {
			t.Error(err)
		}
		coretest.Forget(t, once)
		coretest.MustBegin(t, once)
		keys := rdb.Keys(ctx, "*").Val()
		if len(keys) != 6 {
			t.Errorf("%q: keys %q, want the record, the token, a Complete, a Resolve and two Forgets", name, keys)
		}
		for _, key := range keys {
			if got := coretest.HashTag(key); got != tag && key != "holdfast:token" {
				t.Errorf("%q: key %q hashes by %q, not %q", name, key, got, tag)
			}
		}
		wantExpiries(t, rdb)
	}
}
