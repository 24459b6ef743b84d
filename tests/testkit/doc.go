// Package testkit runs real Redis servers for tests, one or more private to
// each test, and breaks them and the network in front of them on purpose.
//
// # Servers
//
// [Start] starts a redis-server process which lives until the test ends. It
// listens on a unix socket in a directory of its own, keeps nothing on disk and
// is up within some milliseconds, so every test, also every parallel one, can
// have its own. The program is the one named by the environment variable
// HOLDFAST_REDIS_SERVER, else redis-server in PATH. A test fails if there is
// none: a lock that was never tried against Redis is not tested.
//
// With [TLS] it listens on a port with TLS as well, and demands certificates of an [Authority] that the test has made.
//
//	srv := testkit.Start(t)
//	rdb := srv.Client()
//	srv.Pause() // the server is frozen: requests queue up in its socket
//
// # Deployments
//
// [StartSentinel] starts a master with replicas and three sentinels, [StartCluster]
// a Cluster of masters with or without replicas. Both can hand over to a replica
// in good order, wait for the one that takes over from a server which a test has
// killed, and lose what a server has acknowledged, by [Server.CutReplication].
// Slots of a Cluster migrate step by step, see [Cluster.BeginMigration]. These
// servers know and tell each other's TCP ports, so clients reach them through
// [Relays] only by a dialer.
//
//	s := testkit.StartSentinel(t, testkit.DownAfter(3*time.Second))
//	rdb := s.Client()
//	s.Servers[1].CutReplication()
//	rdb.Set(ctx, "lost", "x", 0)
//	s.Servers[0].Kill()
//	s.AwaitMaster(s.Servers[0])
//
// # Relays
//
// A [Relay] stands between clients and a server and loses, delays or holds
// back what passes. The fault which matters most to a lock is the request that
// was executed while its reply was lost:
//
//	relay := srv.Relay()
//	rdb := relay.Client()
//	relay.LoseReplies("mykey", 1, testkit.Closed)
//
// Every fault lasts until [Relay.Heal]. A fault on a [Direction] acts on bytes
// which arrive at the relay after the call that sets it; what the relay
// has in its queue already is touched only by [Relay.Hold], [Relay.CutAfter] and
// [Relay.Reset]. The order of bytes is always kept.
//
// What the relay cannot show: a connect always succeeds, since the kernel
// accepts it, even if the server is down (the client then sees its connection
// closed) or the relay drops everything.
//
// # Goroutines
//
// Nothing stays behind when a test is over: servers, relays and clients are
// closed by the test's cleanup. Call [VerifyTestMain] in TestMain to check it.
// A check within a test, while a server runs, sees one goroutine per server,
// which [SupervisorFunction] names, and the goroutines of the relays: take
// goleak.IgnoreCurrent() after they are started.
//
// The methods of [Server] and [Relay] may be called from any goroutine. Those
// of Server, and of deployments, end the calling goroutine by t.Fatalf if a
// server does not obey, so the test itself should be the caller.
package testkit
