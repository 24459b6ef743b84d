package core

import (
	"fmt"
	"os"
	"strings"
)

// ConnectionName returns a name for the connections of this process, which CLIENT LIST and MONITOR of Redis then tell apart:
// "<service>@<host>:<process id>". Set it before you make the go-redis client, as its option ClientName. holdfast names no
// connection by itself: go-redis reads the option when it connects, and the client exists already.
//
// Redis refuses names with spaces and control characters, and so would refuse every connection. Each of them becomes "_". The
// user needs the right to CLIENT SETNAME.
func ConnectionName(service string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, fmt.Sprintf("%s@%s:%d", service, host, os.Getpid()))
}
