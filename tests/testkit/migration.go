package testkit

import (
	"context"
	"slices"
	"time"
)

// Migration is a slot of a Cluster on its way from one master to another. While it continues, keys that are still at the
// old owner are served there, and commands for all others are sent on to the new one. Begin it with
// [Cluster.BeginMigration].
type Migration struct {
	c        *Cluster
	slot     int
	from, to *Server
}

// migrateTimeout is how long one MIGRATE may take.
const migrateTimeout = 10 * time.Second

// BeginMigration opens the slot at both ends. No key is moved yet.
func (c *Cluster) BeginMigration(slot int, to *Server) *Migration {
	c.t.Helper()
	m := &Migration{c: c, slot: slot, from: c.Owner(slot), to: to}
	to.do("cluster", "setslot", slot, "importing", m.from.nodeID())
	m.from.do("cluster", "setslot", slot, "migrating", to.nodeID())
	return m
}

// MoveKeys moves the keys given, or without any all keys of the slot that are still at the old owner.
func (m *Migration) MoveKeys(keys ...string) {
	m.c.t.Helper()
	if len(keys) > 0 {
		m.move(keys)
		return
	}
	rdb := m.from.Client()
	for {
		keys, err := rdb.ClusterGetKeysInSlot(context.Background(), m.slot, 100).Result()
		if err != nil {
			m.c.t.Fatalf("testkit: keys of slot %d: %v", m.slot, err)
		}
		if len(keys) == 0 {
			return
		}
		m.move(keys)
	}
}

func (m *Migration) move(keys []string) {
	m.c.t.Helper()
	args := []any{"migrate", "127.0.0.1", portOf(m.to), "", 0, migrateTimeout.Milliseconds(), "keys"}
	for _, key := range keys {
		args = append(args, key)
	}
	m.from.do(args...)
}

// End moves what is left, makes the new owner known and returns when all servers know it.
func (m *Migration) End() {
	m.c.t.Helper()
	m.MoveKeys()
	id := m.to.nodeID()
	// The new owner first: if the old one gave the slot up before, nobody would own it meanwhile.
	for _, s := range append([]*Server{m.to, m.from}, m.others()...) {
		s.do("cluster", "setslot", m.slot, "node", id)
	}
	m.c.AwaitOwner(m.slot, m.from)
}

// Migrate moves a slot with all its keys to another master, and returns when all servers know.
func (c *Cluster) Migrate(slot int, to *Server) {
	c.t.Helper()
	c.BeginMigration(slot, to).End()
}

// others returns the masters that have no part in it.
func (m *Migration) others() (masters []*Server) {
	for _, s := range m.c.Servers() {
		if s.running() && s.Info("replication", "role") == "master" && !slices.Contains([]*Server{m.from, m.to}, s) {
			masters = append(masters, s)
		}
	}
	return masters
}
