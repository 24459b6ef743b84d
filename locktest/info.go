package locktest

import (
	"fmt"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/google/uuid"
)

// answerInfo answers INFO with what clients of holdfast read: the embedded Redis lacks these sections. It returns
// false for every other command.
func (s *Server) answerInfo(peer *server.Peer, command string, _ ...string) bool {
	if command != "INFO" {
		return false
	}
	peer.WriteBulk(fmt.Sprintf("# Server\r\nredis_version:%s\r\nrun_id:%s\r\nuptime_in_seconds:%d\r\n"+
		"# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n# Replication\r\nrole:master\r\n",
		redisVersion, s.runID, time.Now().Unix()-s.began.Unix())) // the difference of two whole seconds, as in Redis
	return true
}

// redisVersion is the one that miniredis is compared with by its authors.
const redisVersion = "8.4.0"

// newRunID returns 40 hexadecimal digits, by which a Redlock distinguishes servers.
func newRunID() string {
	return (strings.ReplaceAll(uuid.NewString()+uuid.NewString(), "-", ""))[:40]
}
