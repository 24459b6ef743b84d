package core

import (
	"embed"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// The scripts, one per operation. Each file opens with its contract.
var (
	acquireScript    = loadScript("free", "grant", "acquire").returnsIntegers()
	acquireAllScript = loadScript("grant", "acquire_all")
	releaseScript    = loadScript("publish", "call", "release")
	wakeNextScript   = loadScript("publish", "call", "pass")
	joinScript       = loadScript("publish", "line", "join")
	leaveScript      = loadScript("publish", "line", "leave")
	beatScript       = loadScript("publish", "line", "beat")
	forceScript      = loadScript("publish", "line", "force")
	renewScript      = loadScript("renew")
	raiseScript      = loadScript("raise")
	settleScript     = loadScript("grant", "settle")
	barScript        = loadScript("bar")
	identityScript   = loadScript("identity")
	locationScript   = loadScript("location")
	inspectScript    = loadScript("inspect")

	onceBeginScript    = loadScript("once_new", "record", "group", "once_begin")
	onceRenewScript    = loadScript("record", "once_renew")
	onceEnlistScript   = loadScript("record", "group", "once_enlist")
	oncePresumeScript  = loadScript("record", "once_presume")
	onceCompleteScript = loadScript("publish", "record", "group", "conclude", "once_complete")
	onceHoldScript     = loadScript("publish", "record", "group", "conclude", "once_hold")
	onceReleaseScript  = loadScript("publish", "record", "group", "once_release")
	onceResolveScript  = loadScript("publish", "record", "group", "conclude", "once_resolve")
	onceForgetScript   = loadScript("publish", "record", "once_forget")
	oncePeekScript     = loadScript("record", "once_peek")
	onceListScript     = loadScript("once_list")
)

// script is a Lua script and the SHA-1 under which servers know it.
type script struct {
	source   string
	shaArg   any  // a string
	integers bool // it answers with a list of integers, always
}

// evalsha is the command that runs a script by its hash.
var evalsha any = "evalsha"

// loadScript puts a script together from what it shares with others and its own file, which comes last.
func loadScript(names ...string) *script {
	var source strings.Builder
	for _, name := range names {
		text, err := luaFiles.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err) // the file is part of the binary
		}
		source.Write(text)
	}
	return &script{source: source.String(), shaArg: redis.NewScript(source.String()).Hash()}
}

// returnsIntegers declares that every reply of the script is a list of integers.
func (s *script) returnsIntegers() *script {
	s.integers = true
	return s
}
