package hosted

import (
	"strings"

	"github.com/holdfast-go/holdfast/internal/ginroute"
)

// rest is the name of the wildcard for the rest of a path, which has no name in Echo.
const rest = "rest"

// EchoPattern returns a route of Echo in the form of [http.ServeMux]: "/cart/{id}" for "/cart/:id", "/files/{rest...}" for
// "/files/*".
func EchoPattern(path string) string {
	if before, found := strings.CutSuffix(path, "*"); found {
		path = before + "*" + rest
	}
	return ginroute.Pattern(path) // which is like Echo's otherwise
}

// EchoWildcard returns the name that a parameter of Echo has in the pattern.
func EchoWildcard(name string) string {
	if name == "*" {
		return rest
	}
	return name
}
