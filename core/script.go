package core

import (
	"context"
	"embed"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// The scripts, one per operation. Each file opens with its contract.
var (
	acquireScript    = loadScript("grant", "acquire")
	acquireAllScript = loadScript("grant", "acquire_all")
	releaseScript    = loadScript("publish", "release")
	joinScript       = loadScript("publish", "line", "join")
	leaveScript      = loadScript("publish", "line", "leave")
	beatScript       = loadScript("publish", "line", "beat")
	forceScript      = loadScript("publish", "line", "force")
	renewScript      = loadScript("renew")
	raiseScript      = loadScript("raise")
	settleScript     = loadScript("grant", "settle")
	identityScript   = loadScript("identity")
	locationScript   = loadScript("location")
	inspectScript    = loadScript("inspect")

	onceBeginScript    = loadScript("record", "once_begin")
	onceRenewScript    = loadScript("record", "once_renew")
	oncePresumeScript  = loadScript("record", "once_presume")
	onceCompleteScript = loadScript("publish", "record", "conclude", "once_complete")
	onceHoldScript     = loadScript("publish", "record", "conclude", "once_hold")
	onceReleaseScript  = loadScript("publish", "record", "once_release")
	onceResolveScript  = loadScript("publish", "record", "conclude", "once_resolve")
	onceForgetScript   = loadScript("publish", "record", "once_forget")
	oncePeekScript     = loadScript("record", "once_peek")
	onceListScript     = loadScript("once_list")
)

// script is a Lua script and the SHA-1 under which servers know it.
type script struct {
	source string
	sha    string
}

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
	return &script{source: source.String(), sha: redis.NewScript(source.String()).Hash()}
}

// attempt is one command on its way to Redis. The client's own retries are switched off for it (go-redis
// re-sends after a lost reply, up to four executions, without telling): whether to ask again, and for how
// long, is decided here, by the outcome and by what the caller has left to wait.
type attempt struct {
	*redis.Cmd
}

// NoRetry is asked by go-redis before it re-sends a command.
func (attempt) NoRetry() bool { return true }

// verb is the way to ask for a script.
type verb = func(s *script, keys []string, args []any) attempt

// evalsha asks for the script by its hash, eval by its text, for a server that does not know it (yet, or any
// more: SCRIPT FLUSH, restart, failover).
func (s *script) evalsha(keys []string, args []any) attempt {
	return s.command("evalsha", s.sha, keys, args)
}

func (s *script) eval(keys []string, args []any) attempt {
	return s.command("eval", s.source, keys, args)
}

func (s *script) command(verb, body string, keys []string, args []any) attempt {
	argv := make([]any, 0, 3+len(keys)+len(args))
	argv = append(argv, verb, body, len(keys))
	for _, key := range keys {
		argv = append(argv, key)
	}
	argv = append(argv, args...)
	cmd := redis.NewCmd(context.Background(), argv...) // the context is given again when it is sent
	cmd.SetFirstKeyPos(3)
	return attempt{cmd}
}
