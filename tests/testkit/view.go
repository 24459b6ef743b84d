package testkit

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// node is a server of a Cluster in the eyes of one of them.
type node struct {
	port   string
	master string   // name of the node that it is a replica of, or "-"
	slots  [][2]int // first and last of each range that it owns
}

// view returns how a server sees the Cluster, nothing if it does not answer soon: it may be frozen.
func view(s *Server) []node { return viewWithin(s, time.Second) }

func viewWithin(s *Server, within time.Duration) []node {
	text, _ := s.ask("CLUSTER NODES", within)
	var nodes []node
	for line := range strings.Lines(text) {
		// name, address, flags, master, four more, and the slots
		if fields := strings.Fields(line); len(fields) >= 8 {
			addr, _, _ := strings.Cut(fields[1], "@")
			nodes = append(nodes, node{
				port:   addr[strings.LastIndex(addr, ":")+1:],
				master: fields[3],
				slots:  ranges(fields[8:]),
			})
		}
	}
	return nodes
}

// ranges parses slots like 7 and 10-20. Those that are on their way are in brackets too, and are left out there.
func ranges(fields []string) (all [][2]int) {
	for _, field := range fields {
		if strings.HasPrefix(field, "[") {
			continue
		}
		first, last, found := strings.Cut(field, "-")
		if !found {
			last = first
		}
		from, _ := strconv.Atoi(first)
		to, _ := strconv.Atoi(last)
		all = append(all, [2]int{from, to})
	}
	return all
}

func (n node) owns(slot int) bool {
	return slices.ContainsFunc(n.slots, func(r [2]int) bool { return r[0] <= slot && slot <= r[1] })
}

// owner returns whom all servers that answer call the owner of a slot, or nil.
func (c *Cluster) owner(slot int) *Server {
	port := ""
	for _, s := range c.Servers() {
		for _, n := range view(s) {
			if !n.owns(slot) {
				continue
			}
			if port != "" && port != n.port {
				return nil
			}
			port = n.port
		}
	}
	return c.byPort(port)
}

// isReplica reports whether all servers that answer know whose replica a server is.
func (c *Cluster) isReplica(replica, master *Server) bool {
	id := master.nodeID()
	for _, s := range c.Servers() {
		for _, n := range view(s) {
			if n.port == portOf(replica) && n.master != id {
				return false
			}
		}
	}
	return true
}

// restartable reports whether what a node has noted of the Cluster is consistent. Since Redis 7.2 it says which shard
// each node belongs to, and a node does not start again with a note that knows a replica, but not yet its new shard.
func restartable(s *Server) bool {
	text, err := os.ReadFile(filepath.Join(s.dir, "nodes.conf"))
	shards, masters := make(map[string]string), make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 8 {
			_, shard, _ := strings.Cut(fields[1], "shard-id=")
			shards[fields[0]] = shard
			if fields[3] != "-" {
				masters[fields[0]] = fields[3]
			}
		}
	}
	for replica, master := range masters {
		if shards[replica] != shards[master] {
			return false
		}
	}
	return err == nil
}

// complete reports whether all servers know each other, who is whose replica, and that the Cluster works.
func (c *Cluster) complete() bool {
	for _, s := range c.Servers() {
		info, _ := s.roundTrip("CLUSTER INFO")
		state, _ := infoField(info, "cluster_state")
		known, _ := infoField(info, "cluster_known_nodes")
		assigned, _ := infoField(info, "cluster_slots_assigned")
		if state != "ok" || known != strconv.Itoa(len(c.Servers())) || assigned != strconv.Itoa(slots) || !restartable(s) {
			return false
		}
	}
	for i, replica := range c.Replicas {
		if !c.isReplica(replica, c.Masters[i%len(c.Masters)]) {
			return false
		}
	}
	return true
}
