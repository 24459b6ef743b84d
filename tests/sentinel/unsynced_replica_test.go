package sentinel_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
	"github.com/holdfast-go/holdfast/tests/testkit/luasource"
)

// TestFormerMasterLacksTheLease: a sentinel that has not seen a failover yet sends clients to the former master, which may be a
// replica by now without the data of the new master. A lease that it lacks is not necessarily lost.
func TestFormerMasterLacksTheLease(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t, testkit.TCP())
	nowhere := testkit.Start(t, testkit.TCP()).Relay()
	nowhere.Refuse(true)
	rdb := server.Client()
	locks := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithLogger(nil))
	var leases []*core.Lease
	for _, lock := range coretest.Locks(locks) {
		leases = append(leases, coretest.MustLock(t, lock))
	}
	attempt := coretest.MustBegin(t, locks.Once("once"))
	host, port, _ := net.SplitHostPort(nowhere.Addr())
	if err := errors.Join(rdb.FlushDB(t.Context()).Err(), rdb.ReplicaOf(t.Context(), host, port).Err()); err != nil {
		t.Fatal(err)
	}
	for _, lease := range leases {
		coretest.WantErr(t, lease.Extend(t.Context(), coretest.Long), core.ErrUnavailable)
	}
	coretest.WantErr(t, attempt.Declare(t.Context(), core.StateUnknown), core.ErrUnavailable)
	renewed := rdb.Eval(t.Context(), luasource.Text("once/common", "once/renew"), []string{coretest.RecordOf("once")}, "id", 1000, 1000)
	if renewed.Err() == nil {
		t.Errorf("to renew an attempt was answered with %v", renewed.Val())
	}
	for _, lease := range leases[1:] {
		soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		coretest.WantErr(t, lease.Unlock(soon), core.ErrUnavailable)
		cancel()
	}
	if err := rdb.ReplicaOf(t.Context(), "no", "one").Err(); err != nil {
		t.Fatal(err)
	}
	coretest.WantErr(t, leases[0].Extend(t.Context(), coretest.Long), core.ErrNotHeld)
}
