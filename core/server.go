package core

import (
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/preflight"
	"github.com/holdfast-go/holdfast/core/internal/pubsub"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/core/internal/waiters"
)

// server is one Redis as locks use it: the way for commands to it, and its subscriptions. It may be a Sentinel
// group or a Cluster.
type server struct {
	*lockscript.Instance
	keeper *keeper

	warnedPublish   sync.Once // publishing is refused
	warnedSubscribe sync.Once // subscribing is refused
	warnedSharded   sync.Once // only SSUBSCRIBE is
	warnedPanic     sync.Once // the client panics
}

func newServer(k *keeper, rdb redis.UniversalClient) *server {
	background := k.work()
	exec := transport.NewExecutor(rdb, background, k.base.Done())
	verb := "PUBLISH"
	if exec.InCluster() {
		verb = "SPUBLISH"
	}
	s := &server{keeper: k}
	s.Instance = &lockscript.Instance{
		Exec: exec, Subs: pubsub.New(rdb, exec.Nodes, s.cannotSubscribe), IDs: &k.ids, Now: k.now,
		ClientNumber: k.clientNumber, ClientNumberArg: k.clientNumber, PublishVerb: verb, PublishVerbArg: verb,
		PublishRefused: s.cannotPublish,
	}
	s.Subs.UseClientNumber(k.clientNumber, s.wakeNext)
	exec.OnReply = sync.OnceFunc((&preflight.Check{Client: rdb, Background: &background, Logger: k.logger}).Start)
	if k.hasOneServer() { // the servers of a Redlock are asked side by side, for as long as each gets
		exec.UseDirectPath()
		k.heartbeats = waiters.NewHeartbeats(s.Instance, k.now)
	}
	return s
}

// cannotSubscribe warns, once, that this client receives no announcements of releases.
func (s *server) cannotSubscribe(err error, sharded bool) {
	if errors.Is(err, transport.ErrPanic) {
		s.keeper.warnOnce(&s.warnedPanic, "the Redis client does not subscribe: waiters notice releases by polling only", "error", err)
		return
	}
	if sharded {
		s.keeper.warnOnce(&s.warnedSharded, "Redis does not let this user SSUBSCRIBE: waiters notice releases of users "+
			"that may SPUBLISH by polling only", "error", err)
		return
	}
	s.keeper.warnOnce(&s.warnedSubscribe, "Redis does not let this user subscribe: waiters notice releases by polling only",
		"error", err)
}

// cannotPublish warns, once, that releases are not announced.
func (s *server) cannotPublish() {
	s.keeper.warnOnce(&s.warnedPublish, "Redis refuses PUBLISH to this user: waiters notice releases by polling only",
		"channel", "redisson_lock__channel*")
}

// close ends the subscriptions and waits for what is in flight, for a few seconds at most.
func (s *server) close() {
	s.Subs.Close(releaseTimeout)
	s.Exec.Nodes.Close(releaseTimeout)
}
