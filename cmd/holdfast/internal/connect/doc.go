// Package connect makes a Redis client of a URL, of a server, a Sentinel group or a Cluster.
//
//	redis://user@host:6379/0                       one server; rediss:// with TLS
//	unix:///run/redis.sock?db=0                    one server
//	redis+sentinel://host1:26379,host2:26379/main  a Sentinel group, by the name of its master; then /0 for a database
//	redis+cluster://host1:6379,host2:6379          a Cluster
//
// rediss+sentinel and rediss+cluster use TLS. The parameters behind a "?" are go-redis's, such as dial_timeout=3s.
// The user and the password of a Sentinel URL are for the master. The parameters sentinel_username and
// sentinel_password are for the sentinels.
package connect
