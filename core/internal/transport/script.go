package transport

import (
	"embed"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Script is a Lua script and the SHA-1 under which servers know it. It is not changed, so it is safe for concurrent use.
type Script struct {
	Source string // the text
	shaArg any    // the SHA-1 in hexadecimal digits, a string; kept as any to save an allocation for each command
	writes bool   // true if it can write, so that a replica refuses it
}

// writing finds the commands of scripts that write.
var writing = regexp.MustCompile(`call\('(SET|HSET|HDEL|HINCRBY|INCR|DEL|UNLINK|ZADD|ZREM|PEXPIRE)'`)

// NewScript returns the script of a Lua source.
func NewScript(source string) *Script {
	return &Script{Source: source, shaArg: redis.NewScript(source).Hash(), writes: writing.MatchString(source)}
}

// evalsha is the command that runs a script by its hash.
var evalsha any = "evalsha"

// ReadScripts returns the text of the files lua/<name>.lua, one behind the other. It panics if one is missing, because the
// files are part of the program.
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
