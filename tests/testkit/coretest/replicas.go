package coretest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// Replicated is a master with a replica, and what lies between them.
type Replicated struct {
	Master, Replica *testkit.Server
	Link            *testkit.Relay // the replica is its client
}

func StartReplicated(t testing.TB) *Replicated {
	t.Helper()
	p := &Replicated{Master: testkit.Start(t,
		testkit.Config("repl-diskless-sync", "yes"), testkit.Config("repl-diskless-sync-delay", "0"))}
	p.Link = p.Master.Relay()
	p.Replica = testkit.Start(t, testkit.Config("replicaof", strings.Replace(p.Link.Addr(), ":", " ", 1)))
	p.AwaitReplica(t)
	return p
}

// AwaitReplica returns once the replica acknowledges what is written.
func (p *Replicated) AwaitReplica(t testing.TB) {
	t.Helper()
	conn := p.Master.Client().Conn()
	defer conn.Close()
	testkit.Eventually(t, Within, "the replica to be connected", func() bool {
		conn.Publish(context.Background(), "anything", "that is replicated")
		return conn.Wait(context.Background(), 1, Soon).Val() == 1
	})
}

// AwaitRest returns once the replica has acknowledged all that was written, also the requests to acknowledge.
func (p *Replicated) AwaitRest(t testing.TB) {
	t.Helper()
	testkit.Eventually(t, Within, "the replica to have acknowledged all", func() bool {
		written := p.Master.Info("replication", "master_repl_offset")
		return strings.Contains(p.Master.Info("replication", "slave0"), ",offset="+written+",")
	})
}

// Waits returns how often the master was asked to wait for replicas.
func (p *Replicated) Waits() int64 { return p.Master.CommandStats()["wait"].Calls }

// WantNotReplicated checks the error of a grant that too few replicas acknowledged: so many, or on a busy machine less.
func WantNotReplicated(t testing.TB, err error, acknowledged, wanted int) {
	t.Helper()
	WantErr(t, err, core.ErrUnavailable)
	if WantErr(t, err, core.ErrNotReplicated); err == nil {
		return
	}
	got := -1
	_, numbers, _ := strings.Cut(err.Error(), core.ErrNotReplicated.Error()[len("holdfast: "):]+": ")
	if n, _ := fmt.Sscanf(numbers, fmt.Sprintf("%%d of %d", wanted), &got); n != 1 || got > acknowledged {
		t.Errorf("%v, want %d of %d", err, acknowledged, wanted)
	}
}

const (
	// soon is a time for replicas that is used up by a test in which they do not answer.
	Soon = 100 * time.Millisecond
	// ample is one that is not.
	Ample = 10 * time.Second
)

// Lost counts the locks that the replica, promoted, does not have.
func (p *Replicated) Lost(t *testing.T, tokens map[string]int64) (lost int) {
	t.Helper()
	ctx := context.Background()
	rdb := p.Replica.Client()
	if err := rdb.ReplicaOf(ctx, "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	for name, token := range tokens {
		if TokenOf(t, rdb, "lock:"+name) != token {
			lost++
		}
	}
	p.Master.Restart() // empty: clients that close have less to wait for
	return lost
}

// Grants returns when locks were granted from a moment on, in order.
func (r *Rivals) Grants(from time.Time) (all []time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, sections := range r.Sections {
		for i := len(sections) - 1; i >= 0 && sections[i].From >= from.UnixMicro(); i-- {
			all = append(all, time.UnixMicro(sections[i].From))
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}
