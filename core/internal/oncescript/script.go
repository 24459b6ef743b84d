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
	summaryScript = load("common", "summary")

	completeScript = transport.NewScript(source("complete_fast") + lockscript.Source("publish") +
		source("common", "group", "finish_common", "finish", "complete"))
	holdScript    = loadPublishing("common", "group", "finish_common", "finish", "hold")
	releaseScript = loadPublishing("common", "group", "release")
	resolveScript = loadPublishing("common", "seen", "group", "marks", "finish_common", "resolve")
	forgetScript  = loadPublishing("common", "seen", "marks", "forget")
)

// load returns the script of these files. The last one is its own file, the others are parts that scripts share.
func load(names ...string) *transport.Script { return transport.NewScript(source(names...)) }

// loadPublishing is load for a script that announces the end of an attempt. It uses lua/publish.lua of package lockscript.
func loadPublishing(names ...string) *transport.Script {
	return transport.NewScript(lockscript.Source("publish") + source(names...))
}

// source returns the text of the files lua/<name>.lua of this package, one behind the other. It panics if there is no such file.
func source(names ...string) string { return transport.ReadScripts(luaFiles, names...) }
