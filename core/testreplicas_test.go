package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// replicated is a master with a replica, and what lies between them.
type replicated struct {
	master, replica *testkit.Server
	link            *testkit.Relay // the replica is its client
}

func startReplicated(t testing.TB) *replicated {
	t.Helper()
	p := &replicated{master: testkit.Start(t,
		testkit.Config("repl-diskless-sync", "yes"), testkit.Config("repl-diskless-sync-delay", "0"))}
	p.link = p.master.Relay()
	p.replica = testkit.Start(t, testkit.Config("replicaof", strings.Replace(p.link.Addr(), ":", " ", 1)))
	p.awaitReplica(t)
	return p
}

// awaitReplica returns once the replica acknowledges what is written.
func (p *replicated) awaitReplica(t testing.TB) {
	t.Helper()
	conn := p.master.Client().Conn()
	defer conn.Close()
	testkit.Eventually(t, within, "the replica to be connected", func() bool {
		conn.Publish(context.Background(), "anything", "that is replicated")
		return conn.Wait(context.Background(), 1, soon).Val() == 1
	})
}

// awaitRest returns once the replica has acknowledged all that was written, also the requests to acknowledge.
func (p *replicated) awaitRest(t testing.TB) {
	t.Helper()
	testkit.Eventually(t, within, "the replica to have acknowledged all", func() bool {
		written := p.master.Info("replication", "master_repl_offset")
		return strings.Contains(p.master.Info("replication", "slave0"), ",offset="+written+",")
	})
}

// waits returns how often the master was asked to wait for replicas.
func (p *replicated) waits() int64 { return p.master.CommandStats()["wait"].Calls }

// wantNotReplicated checks the error of a grant that too few replicas acknowledged: so many, or on a busy machine less.
func wantNotReplicated(t testing.TB, err error, acknowledged, wanted int) {
	t.Helper()
	wantErr(t, err, core.ErrUnavailable)
	wantErr(t, err, core.ErrNotReplicated)
	var short *core.NotReplicatedError
	if errors.As(err, &short) && (short.Acknowledged > acknowledged || short.Wanted != wanted) {
		t.Errorf("%+v, want %d of %d", *short, acknowledged, wanted)
	}
}

// awaitFree returns once no owner holds a lock of that name.
func awaitFree(t testing.TB, locks *core.Client, name string) {
	t.Helper()
	testkit.Eventually(t, within, name+" to be free", func() bool {
		info, err := locks.Inspect(context.Background(), name)
		return err == nil && info.Mode == ""
	})
}
