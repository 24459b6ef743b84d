package core

import (
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

// server is one Redis as locks use it: the way for commands to it, and what is heard from it. It may be a Sentinel
// group or a Cluster.
type server struct {
	keeper  *keeper
	exec    *executor
	verb    string // with which scripts announce something, see lua/publish.lua
	verbArg any    // the same, as their argument
	listen  *listeners
	beats   *beats

	unheard sync.Once // publishing is refused
	deaf    sync.Once // subscribing is refused
	plain   sync.Once // only SSUBSCRIBE is
	broken  sync.Once // the client panics

	findings sync.Map // that were warned of, see setup.go
}

func newServer(k *keeper, rdb redis.UniversalClient) *server {
	s := &server{keeper: k, exec: newExecutor(rdb, k.now, k.base.Done()), verb: "PUBLISH"}
	s.exec.nodes.attach(k)
	if s.exec.nodes.cluster != nil {
		s.verb = "SPUBLISH"
	}
	if k.hasOneServer() { // the servers of a Redlock are asked side by side, for as long as each gets
		s.exec.direct.rdb, _ = rdb.(*redis.Client)
	}
	s.verbArg = s.verb
	s.exec.onReply = sync.OnceFunc(s.inspectLater)
	s.listen = newListeners(rdb, s.exec.nodes, s.cannotSubscribe)
	s.listen.number, s.listen.pass = k.caller, s.pass
	s.beats = newBeats(s, k.now)
	return s
}

// cannotSubscribe tells, once, that releases are not heard of.
func (s *server) cannotSubscribe(err error, sharded bool) {
	if errors.Is(err, errPanic) {
		s.keeper.warnOnce(&s.broken, "the Redis client does not subscribe: waiters notice releases by polling only", "error", err)
		return
	}
	if sharded {
		s.keeper.warnOnce(&s.plain, "Redis does not let this user SSUBSCRIBE: waiters notice releases of users "+
			"that may SPUBLISH by polling only", "error", err)
		return
	}
	s.keeper.warnOnce(&s.deaf, "Redis does not let this user subscribe: waiters notice releases by polling only",
		"error", err)
}

// cannotPublish tells, once, that releases are not announced.
func (s *server) cannotPublish() {
	s.keeper.warnOnce(&s.unheard, "Redis refuses PUBLISH to this user: waiters notice releases by polling only",
		"channel", "redisson_lock__channel*")
}

// close listens no more and leaves nothing in flight, as far as that ends within a few seconds.
func (s *server) close() {
	s.listen.close(releaseTimeout)
	s.exec.nodes.close(releaseTimeout)
}
