package core

import (
	"sync"

	"github.com/redis/go-redis/v9"
)

// server is one Redis as locks use it: the way for commands to it, and what is heard from it. It may be a Sentinel
// group or a Cluster.
type server struct {
	keeper *keeper
	exec   *executor
	listen *listeners
	beats  *beats

	unheard sync.Once // PUBLISH is refused
	deaf    sync.Once // SUBSCRIBE is refused
}

func newServer(k *keeper, rdb redis.UniversalClient) *server {
	s := &server{keeper: k, exec: newExecutor(rdb, k.now, k.base.Done())}
	s.listen = newListeners(rdb, func(err error) {
		k.warnOnce(&s.deaf, "Redis does not let this user subscribe: waiters learn of releases by polling only",
			"error", err)
	})
	s.beats = newBeats(s.exec, k.now)
	return s
}

// cannotPublish tells, once, that releases are not announced.
func (s *server) cannotPublish() {
	s.keeper.warnOnce(&s.unheard, "Redis refuses PUBLISH to this user: waiters learn of releases by polling only",
		"channel", "redisson_lock__channel*")
}
