//go:build holdfast_simulation

package simulate_test

import (
	"slices"
	"strings"
	"testing"
)

// outlived tells whether a majority without the weak servers has each lock of a Redlock that any server has: if callers
// split their votes, a lease may be on a bare majority until its first renewal, and ends if one of these servers forgets. See
// docs/redlock.md.
func (n *nemesis) outlived() bool {
	votes := make(map[string]map[string]int) // by key and owner, of the servers that are not weak
	for _, s := range n.servers {
		for key, owner := range s.owners() {
			if votes[key] == nil {
				votes[key] = make(map[string]int)
			}
			if !slices.Contains(n.weak, s) {
				votes[key][owner]++
			}
		}
	}
	for _, byOwner := range votes {
		most := 0
		for _, count := range byOwner {
			most = max(most, count)
		}
		if most <= len(n.servers)/2 {
			return false
		}
	}
	return true
}

// owners returns the owner of each lock that a server has, by its key. It is the field of the lock's hash with the name of a
// client and a number.
func (s *server) owners() map[string]string {
	owners := make(map[string]string)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.redis == nil {
		return owners
	}
	s.tickLocked()
	for _, key := range s.redis.Keys() {
		if s.redis.HGet(key, "mode") == "" {
			continue
		}
		fields, _ := s.redis.HKeys(key) // no error: the key has a mode
		for _, field := range fields {
			if strings.Contains(field, ":") && !strings.HasPrefix(field, "hold:") {
				owners[key] = field
			}
		}
	}
	return owners
}

// TestOutlived: a minority may forget a lock that the others have, and none that is on a bare majority with it.
func TestOutlived(t *testing.T) {
	n := &nemesis{world: &world{kind: kind{servers: 3}}}
	for number := range 3 {
		s := newServer(number)
		t.Cleanup(s.stop)
		n.servers = append(n.servers, s)
	}
	expect := func(weak int, want bool) {
		t.Helper()
		n.weak = n.servers[weak : weak+1]
		if got := n.outlived(); got != want {
			t.Errorf("server %d may forget: %t", weak, got)
		}
	}
	expect(0, true)
	for _, s := range n.servers[:2] {
		s.redis.HSet("lock", "client:1", "1", "mode", "30000 7")
	}
	expect(0, false)
	expect(2, true)
	n.servers[2].redis.HSet("lock", "client:2", "1", "hold:client:2", "1", "mode", "mutex")
	expect(1, false)
	expect(2, true)
	n.servers[2].redis.Del("lock")
	n.servers[2].redis.HSet("lock", "client:1", "1", "hold:client:1", "1", "mode", "mutex")
	expect(1, true)
}
