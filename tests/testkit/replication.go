package testkit

import (
	"context"
	"net"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// ReplicaOf makes the server a replica of the one at a host:port, and waits until the link to it is up. The address
// may be the address of a [Relay] in front of the master, which then can lose, delay and hold back what is replicated.
func (s *Server) ReplicaOf(addr string) {
	s.t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		s.t.Fatalf("testkit: replica of %s: %v", addr, err)
	}
	s.do("replicaof", host, port)
	await(s.t, "the replica to be connected", func() bool {
		text, _ := s.roundTrip("INFO replication")
		link, _ := infoField(text, "master_link_status")
		return link == "up"
	})
}

// Promote makes a replica a master, whatever its master does meanwhile.
func (s *Server) Promote() {
	s.t.Helper()
	s.do("replicaof", "no", "one")
}

// CutReplication cuts a replica off from its master for the time being: what the master acknowledges from now on is
// lost if the replica is promoted. Only the link is broken, so it works wherever servers find each other by
// themselves; a password that no master takes keeps it from being mended.
func (s *Server) CutReplication() {
	s.t.Helper()
	s.do("config", "set", "masterauth", "cut off")
	s.do("client", "kill", "type", "master")
}

// RestoreReplication ends [Server.CutReplication]. The link comes up by itself, within some seconds.
func (s *Server) RestoreReplication() {
	s.t.Helper()
	s.do("config", "set", "masterauth", "")
	s.do("config", "rewrite") // a sentinel may have put the password there, for the server's next start
}

// AwaitInSync returns once the server, a replica, has all that the master has now.
func (s *Server) AwaitInSync(master *Server) {
	s.t.Helper()
	await(s.t, "the replica to be in sync", func() bool { return s.inSync(master) })
}

func (s *Server) inSync(master *Server) bool {
	original, err := master.roundTrip("INFO replication")
	copied, _ := s.roundTrip("INFO replication")
	link, _ := infoField(copied, "master_link_status")
	return err == nil && link == "up" && sameHistory(original, copied) &&
		offsetOf(copied, "slave_repl_offset") >= offsetOf(original, "master_repl_offset")
}

// sameHistory reports whether offsets in these two answers count the same bytes.
func sameHistory(a, b string) bool {
	idA, _ := infoField(a, "master_replid")
	idB, _ := infoField(b, "master_replid")
	return idA == idB
}

func offsetOf(text, name string) int64 {
	value, _ := infoField(text, name)
	n, _ := strconv.ParseInt(value, 10, 64)
	return n
}

// do runs a command that has to succeed.
func (s *Server) do(args ...any) {
	s.t.Helper()
	rdb := redis.NewClient(s.Options())
	defer rdb.Close()
	if err := rdb.Do(context.Background(), args...).Err(); err != nil {
		s.t.Fatalf("testkit: %v: %v", args, err)
	}
}
