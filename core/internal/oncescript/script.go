package oncescript

import (
	"embed"

	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// The scripts, one per operation. Each file opens with its contract.
var (
	beginScript   = load("begin_fast", "common", "group", "begin")
	renewScript   = load("common", "renew")
	enlistScript  = load("common", "group", "enlist")
	declareScript = load("common", "declare")
	peekScript    = load("common", "peek")
	listScript    = load("list")

	completeScript = loadPublishing("common", "group", "finish_common", "complete")
	holdScript     = loadPublishing("common", "group", "finish_common", "hold")
	releaseScript  = loadPublishing("common", "group", "release")
	resolveScript  = loadPublishing("common", "group", "finish_common", "resolve")
	forgetScript   = loadPublishing("common", "forget")
)

// load puts a script together from the parts that it shares with others and its own file, which comes last.
func load(names ...string) *transport.Script { return transport.NewScript(source(names...)) }

// loadPublishing is load for a script that announces the end of an attempt.
func loadPublishing(names ...string) *transport.Script {
	return transport.NewScript(lockscript.Source("publish") + source(names...))
}

// Source returns the text of Lua files of this package, in order.
func source(names ...string) string { return transport.ReadScripts(luaFiles, names...) }
