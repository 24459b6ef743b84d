package redistest

import "context"

// Master returns the server that is master now, as most sentinels say.
func (s *Sentinel) Master() *Server {
	s.t.Helper()
	return s.AwaitMaster(nil)
}

// AwaitMaster returns the master once most sentinels say that it is another one than the given, for instance after
// that was killed. See [DownAfter].
func (s *Sentinel) AwaitMaster(not *Server) *Server {
	s.t.Helper()
	var master *Server
	await(s.t, "the sentinels to agree on a master", func() bool {
		master = s.elected()
		return master != nil && master != not
	})
	return master
}

// elected returns whom most sentinels call master, or nil.
func (s *Sentinel) elected() *Server {
	votes := make(map[string]int)
	for _, sentinel := range s.Sentinels {
		rdb := connect(sentinel)
		addr := rdb.GetMasterAddrByName(context.Background(), MasterName).Val()
		_ = rdb.Close()
		if len(addr) == 2 {
			votes[addr[1]]++
		}
	}
	for _, server := range s.Servers {
		if votes[portOf(server)] >= quorum {
			return server
		}
	}
	return nil
}

// Failover lets the sentinels put a replica in the place of the master, which works on, and returns the new master
// when most of them know it. Until they find the time to tell the old one, that believes to be master as well.
func (s *Sentinel) Failover() *Server {
	s.t.Helper()
	old := s.Master()
	await(s.t, "a failover to begin", func() bool {
		rdb := connect(s.Sentinels[0])
		defer rdb.Close()
		return rdb.Failover(context.Background(), MasterName).Err() == nil
	})
	return s.AwaitMaster(old)
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
	master := s.Master()
	for _, server := range s.Servers {
		if server != master && server.running() {
			server.AwaitInSync(master)
		}
	}
}
