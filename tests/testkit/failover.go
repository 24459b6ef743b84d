package testkit

import (
	"context"
	"slices"
)

// Master returns the server that is master now, as the sentinels say.
func (s *Sentinel) Master() *Server {
	s.t.Helper()
	return s.AwaitMaster(nil)
}

// AwaitMaster returns the master once all sentinels that were not killed say that it is another one than the given, for
// instance after that was killed. See [DownAfter].
//
// Most of them are not enough: should the old master come back, without its data, before the last one has heard of the
// new one, that sentinel sends clients to the old one, and makes the new one its replica.
func (s *Sentinel) AwaitMaster(not *Server) *Server {
	s.t.Helper()
	var master *Server
	defer func() {
		if master == nil || master == not {
			s.logViews()
		}
	}()
	await(s.t, "the sentinels to agree on a master", func() bool {
		master = s.elected()
		return master != nil && master != not
	})
	return master
}

// logViews logs what each sentinel knows of the master and its replicas: without it, the cause of a disagreement is unknown.
func (s *Sentinel) logViews() {
	s.t.Helper()
	for i, sentinel := range s.Sentinels {
		rdb := connect(sentinel)
		master, err := rdb.Master(context.Background(), MasterName).Result()
		replicas, replicasErr := rdb.Replicas(context.Background(), MasterName).Result()
		s.t.Logf("sentinel %d: master %v, error %v; replicas %v, error %v", i, master, err, replicas, replicasErr)
		_ = rdb.Close()
	}
}

// elected returns whom all sentinels that were not killed call master, or nil.
func (s *Sentinel) elected() (master *Server) {
	for _, sentinel := range s.Sentinels {
		if !sentinel.running() {
			continue
		}
		followed := s.followedBy(sentinel)
		if followed == nil || master != nil && followed != master {
			return nil
		}
		master = followed
	}
	return master
}

// followedBy returns whom a sentinel calls master, or nil.
func (s *Sentinel) followedBy(sentinel *Server) *Server {
	rdb := connect(sentinel)
	defer rdb.Close()
	addr := rdb.GetMasterAddrByName(context.Background(), MasterName).Val()
	for _, server := range s.Servers {
		if len(addr) == 2 && addr[1] == portOf(server) {
			return server
		}
	}
	return nil
}

// Failover lets the sentinels put a replica in the place of the master, which works on, and returns the new master
// when all sentinels know it. Until they find the time to tell the old one, that believes to be master as
// well.
func (s *Sentinel) Failover() *Server {
	s.t.Helper()
	old := s.Master()
	for _, sentinel := range s.Sentinels {
		tune(sentinel, "publish-period", patiently)
	}
	await(s.t, "a failover to begin", func() bool {
		rdb := connect(s.Sentinels[0])
		defer rdb.Close()
		return rdb.Failover(context.Background(), MasterName).Err() == nil
	})
	master := s.AwaitMaster(old)
	for _, sentinel := range s.Sentinels {
		tune(sentinel, "publish-period", hastily)
	}
	return master
}

// AwaitSettled is [Sentinel.AwaitInSync] for all servers, and waits until each sentinel knows of it. Until then they may
// find nobody to put in the place of the master.
func (s *Sentinel) AwaitSettled() {
	s.t.Helper()
	s.AwaitInSync()
	for _, sentinel := range s.Sentinels {
		Eventually(s.t, agreeTimeout, "the sentinels to know the replicas", func() bool { return s.knowsAll(sentinel) })
	}
}

// AwaitInSync returns once all servers that were not killed are replicas of the master and have all that it has now.
func (s *Sentinel) AwaitInSync() {
	s.t.Helper()
	await(s.t, "the replicas to be in sync", func() bool {
		master := s.elected() // who may change once more while a former master comes back
		return master != nil && !slices.ContainsFunc(s.Servers, func(server *Server) bool {
			return server != master && server.running() && !server.inSync(master)
		})
	})
}
