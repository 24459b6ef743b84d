package core

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/acquire"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// server is one Redis as locks use it: the way for commands to it, and its subscriptions. It may be a Sentinel
// group or a Cluster.
type server struct {
	*script.Instance
	once   script.Once
	engine *engine
	check  *transport.SettingsCheck
}

func newServer(e *engine, rdb redis.UniversalClient) *server {
	exec := transport.NewExecutor(rdb, e.work(), e.base.Done())
	verb := "PUBLISH"
	if exec.InCluster() {
		verb = "SPUBLISH"
	}
	s := &server{engine: e}
	s.Instance = &script.Instance{
		Exec: exec, Subs: transport.NewSubscriptions(rdb, exec.Nodes, s.cannotSubscribe), IDs: &e.ids, Now: e.now,
		OfRedlock: !e.acquiring.OneServer, ClientNumberArg: e.clientNumber, PublishVerbArg: verb,
		PublishRefused: s.cannotPublish,
	}
	s.once.Instance = s.Instance
	if _, one := rdb.(*redis.Client); !one { // not known to be one server or Sentinel group
		s.TokenKeys.UseSlots()
	}
	e.announcer.AddServer(exec)
	e.directory.AddServer(exec)
	s.Subs.UseClientNumber(e.clientNumber, s.wakeNext)
	s.Subs.Unconfirmed = s.warnUnconfirmed
	s.check = &transport.SettingsCheck{Exec: exec, Logger: e.logger, Alone: e.acquiring.OneServer}
	exec.OnReply = sync.OnceFunc(s.check.Start)
	exec.Prefix = e.prefix
	if e.acquiring.OneServer { // the servers of a Redlock are asked side by side, for as long as each gets
		exec.OnLasting = s.warnLasting // a Redlock warns of its servers by itself
		exec.UseDirectPath()
		e.acquiring.Heartbeats = acquire.NewHeartbeats(s.Instance, e.now)
	}
	return s
}

// endsNotConfirmed returns an error that says how many completions a closed client has given up, and logs it. It returns
// nil if there are none.
func (s *server) endsNotConfirmed() error {
	ends, err := s.once.Unconfirmed.Left()
	if ends == 0 {
		return nil
	}
	if err = cmp.Or(failure(context.Background(), "", err), ErrUnavailable); errors.Is(err, transport.ErrNotYet) {
		err = ErrStale
	}
	s.engine.logger.Warn("holdfast: closed with unconfirmed completions", "completions", ends, "error", err)
	return errorf("holdfast: close: completions not confirmed (%d): %w", ends, err)
}

// warnLasting warns, once for each kind, of an error that waiting does not mend.
func (s *server) warnLasting(err *transport.LastingError) {
	if transport.ReadOnly(err) { // the inspection of the setup finds the master
		s.check.FoundReplica(err)
		return
	}
	if s.engine.warned.First(err.Advice) {
		s.engine.logger.Warn("holdfast: locks do not work with this setup of Redis or its client", "error", err)
	}
}

// cannotSubscribe warns that this client receives no announcements of releases.
func (s *server) cannotSubscribe(err error, sharded bool) {
	message := "Redis does not let this user subscribe: waiters notice releases by polling only"
	switch {
	case errors.Is(err, transport.ErrPanic):
		message = "the Redis client does not subscribe: waiters notice releases by polling only"
	case sharded:
		message = "Redis does not let this user SSUBSCRIBE: waiters notice releases of users that may SPUBLISH by polling only"
	}
	s.engine.warnOnce(message, "error", err)
}

// warnUnconfirmed warns that this client receives no announcements of releases, for a reason that Redis does not report.
func (s *server) warnUnconfirmed() {
	s.engine.logger.Warn("holdfast: Redis answers commands but confirms no subscription: waiters notice releases by polling only")
}

// cannotPublish warns that releases are not announced.
func (s *server) cannotPublish() {
	s.engine.warnOnce("Redis refuses PUBLISH to this user: waiters notice releases by polling only", "channel", "redisson_lock__channel*")
}

// close ends the subscriptions and waits for what is in flight, for a few seconds at most.
func (s *server) close() {
	s.Subs.Close(acquire.ReleaseTimeout)
	s.Exec.Close(acquire.ReleaseTimeout)
}

// wakeNext wakes the next client, because this one was woken after its last caller had stopped waiting.
func (s *server) wakeNext(lock, set string) {
	s.engine.background(func(ctx context.Context) {
		_ = s.PassTurn(ctx, lock, set) // if it fails, the others ask after a grace
	})
}
