package testkit

import (
	"fmt"
	"testing"
)

// busOffset is how far the port on which nodes of a Cluster talk to each other lies above that for clients.
const busOffset = 10000

const lastPort = 65535

// takePort finds a free TCP port of 127.0.0.1 for a server, and keeps it until release is called: nobody else gets it
// while the server is down. Others of a deployment would take whoever answers there for the server. With bus, the
// port of a node of a Cluster for its bus is taken as well.
func takePort(bus bool) (port int, release func(), err error) {
	for range 1000 {
		port, release, err := reserve(0)
		if err != nil || !bus {
			return port, release, err
		}
		if port+busOffset <= lastPort {
			if _, releaseBus, err := reserve(port + busOffset); err == nil {
				return port, func() { release(); releaseBus() }, nil
			}
		}
		defer release() // not earlier, so that the next try is another port
	}
	return 0, nil, fmt.Errorf("no free pair of ports, %d apart", busOffset)
}

// Port returns a port of 127.0.0.1 that no other program gets while the test runs, also while the test's own server there is down. The
// server has to set SO_REUSEADDR, as those of Go do.
func Port(t testing.TB) int {
	t.Helper()
	port, release, err := takePort(false)
	if err != nil {
		t.Fatalf("testkit: port: %v", err)
	}
	t.Cleanup(release)
	return port
}
