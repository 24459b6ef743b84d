package core_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// listEveryWay lists locks and records, and returns the first error.
func listEveryWay(locks *core.Client) error {
	ctx := context.Background()
	_, inLocks := locks.List(ctx, "", "", 0)
	_, inRecords := locks.ListRecords(ctx, "", "", 0)
	errs := []error{inLocks, inRecords}
	for _, err := range locks.FindDigest(ctx, locks.Digest("name")) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// TestListRights: listing needs just the rights that docs/redis.md lists for it. Without them it is refused, and locks work.
func TestListRights(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	few := documentedRules(t, "A Redis user needs")
	setUser(t, server, few)
	locks := newClient(t, server.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }))
	mustLock(t, locks.Mutex("name"))
	mustLock(t, locks.Read("shared"))
	expand(t, locks, "shared")
	mustBegin(t, locks.Once("name"))
	wantErr(t, listEveryWay(locks), core.ErrPermission)
	_, err := locks.ListRecords(t.Context(), "", "", 0)
	wantErr(t, err, core.ErrPermission)
	setUser(t, server, append(few, "+scan"))
	if found := listAll(t, locks, ""); len(found) != 2 {
		t.Errorf("%+v", found)
	}
	_, err = locks.ListRecords(t.Context(), "", "", 0)
	wantErr(t, err, core.ErrPermission)

	able := testkit.Start(t)
	setUser(t, able, append(few, documentedRules(t, "To list, a user needs")...))
	locks = newClient(t, able.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }))
	mustLock(t, locks.Read("shared"))
	expand(t, locks, "shared")
	mustBegin(t, locks.Once("name"))
	if err := listEveryWay(locks); err != nil {
		t.Error(err)
	}
	nothingDenied(t, able)
	setUser(t, able, append(few, "+scan", "+hstrlen", "-info"))
	if err := listEveryWay(locks); err != nil {
		t.Errorf("without INFO: %v", err)
	}
}

// TestListRightsInCluster does the same in a Cluster.
func TestListRightsInCluster(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 2)
	lacksShards(t, cluster)
	few := append(documentedRules(t, "A Redis user needs"), documentedRules(t, "In a Cluster it needs")...)
	able := append(few, documentedRules(t, "To list, a user needs")...)
	able = append(able, documentedRules(t, "In a Cluster a lister needs")...)
	as := func(rules []string) *core.Client {
		for _, s := range cluster.Masters {
			setUser(t, s, rules)
		}
		return newClient(t, cluster.Client(func(o *redis.ClusterOptions) { o.Username, o.Password = "locker", "secret" }))
	}
	locks := as(able)
	mustLock(t, locks.Mutex("name"))
	mustBegin(t, locks.Once("name"))
	if err := listEveryWay(locks); err != nil {
		t.Error(err)
	}
	for _, s := range cluster.Masters {
		nothingDenied(t, s)
	}
	wantErr(t, listEveryWay(as(few)), core.ErrPermission)
	wantErr(t, listEveryWay(as(append(few, "+scan", "+hstrlen"))), core.ErrPermission)
}
