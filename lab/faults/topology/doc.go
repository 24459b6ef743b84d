// Package topology runs the servers of a round, with a relay on every link from a worker to a server.
package topology
