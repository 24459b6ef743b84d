package rights_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// listEveryWay lists locks and records, and returns the first error.
func listEveryWay(locks *core.Client) error {
	ctx := context.Background()
	_, inLocks := coretest.LockPage(ctx, locks, "", "", 0)
	_, inRecords := coretest.RecordPage(ctx, locks, "", "", 0)
	errs := []error{inLocks, inRecords}
	for _, err := range seal.NamesOf(locks).FindDigest(ctx, seal.NamesOf(locks).Digest("name", false)) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// TestListRights: listing needs just the rights that docs/keys-and-rights.md lists for it. Without them it is refused, and locks
// work.
func TestListRights(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	few := coretest.DocumentedRules(t, "A Redis user needs")
	coretest.SetUser(t, server, few)
	locks := coretest.NewClient(t, server.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }))
	coretest.MustLock(t, locks.Mutex("name"))
	coretest.MustLock(t, locks.Read("shared"))
	coretest.Expand(t, locks, "shared")
	coretest.MustBegin(t, locks.Once("name"))
	coretest.WantErr(t, listEveryWay(locks), core.ErrPermission)
	_, err := coretest.RecordPage(t.Context(), locks, "", "", 0)
	coretest.WantErr(t, err, core.ErrPermission)
	coretest.SetUser(t, server, append(few, "+scan"))
	if found := coretest.ListAll(t, locks, ""); len(found) != 2 {
		t.Errorf("%+v", found)
	}
	_, err = coretest.RecordPage(t.Context(), locks, "", "", 0)
	coretest.WantErr(t, err, core.ErrPermission)

	able := testkit.Start(t)
	coretest.SetUser(t, able, append(few, coretest.DocumentedRules(t, "To list, a user needs")...))
	locks = coretest.NewClient(t, able.Client(func(o *redis.Options) { o.Username, o.Password = "locker", "secret" }))
	coretest.MustLock(t, locks.Read("shared"))
	coretest.Expand(t, locks, "shared")
	coretest.MustBegin(t, locks.Once("name"))
	if err := listEveryWay(locks); err != nil {
		t.Error(err)
	}
	coretest.NothingDenied(t, able)
	coretest.SetUser(t, able, append(few, "+scan", "+hstrlen", "-info"))
	if err := listEveryWay(locks); err != nil {
		t.Errorf("without INFO: %v", err)
	}
}

// TestListRightsInCluster does the same in a Cluster.
func TestListRightsInCluster(t *testing.T) {
	t.Parallel()
	cluster := testkit.StartCluster(t, 2)
	coretest.LacksShards(t, cluster)
	few := append(coretest.DocumentedRules(t, "A Redis user needs"), coretest.DocumentedRules(t, "In a Cluster it needs")...)
	able := append(few, coretest.DocumentedRules(t, "To list, a user needs")...)
	able = append(able, coretest.DocumentedRules(t, "In a Cluster a lister needs")...)
	as := func(rules []string) *core.Client {
		for _, s := range cluster.Masters {
			coretest.SetUser(t, s, rules)
		}
		return coretest.NewClient(t, cluster.Client(func(o *redis.ClusterOptions) { o.Username, o.Password = "locker", "secret" }))
	}
	locks := as(able)
	coretest.MustLock(t, locks.Mutex("name"))
	coretest.MustBegin(t, locks.Once("name"))
	if err := listEveryWay(locks); err != nil {
		t.Error(err)
	}
	for _, s := range cluster.Masters {
		coretest.NothingDenied(t, s)
	}
	coretest.WantErr(t, listEveryWay(as(few)), core.ErrPermission)
	coretest.WantErr(t, listEveryWay(as(append(few, "+scan", "+hstrlen"))), core.ErrPermission)
}
