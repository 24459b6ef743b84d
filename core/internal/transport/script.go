package transport

import (
	"embed"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Script is a Lua script and the SHA-1 under which servers know it.
type Script struct {
	Source   string
	shaArg   any  // a string
	integers bool // it answers with a list of integers, always
}

// NewScript returns the script of a Lua source.
func NewScript(source string) *Script {
	return &Script{Source: source, shaArg: redis.NewScript(source).Hash()}
}

// evalsha is the command that runs a script by its hash.
var evalsha any = "evalsha"

// ReturnsIntegers declares that every reply of the script is a list of integers.
func (s *Script) ReturnsIntegers() *Script {
	s.integers = true
	return s
}

// ReadScripts returns the text of the files lua/name.lua, in order. It panics if one is missing: the files are part of the
// program.
func ReadScripts(files embed.FS, names ...string) string {
	var source strings.Builder
	for _, name := range names {
		text, err := files.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err)
		}
		source.Write(text)
	}
	return source.String()
}
