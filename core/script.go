package core

import (
	"embed"
	"strings"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// The scripts, one per operation. Each file opens with its contract.
var (
	acquireScript        = loadScript("acquire_fast", "mutex_common", "acquire").ReturnsIntegers()
	acquireAllScript     = loadScript("mutex_common", "acquire_all")
	releaseScript        = loadScript("publish", "wake_next", "release")
	wakeNextIfFreeScript = loadScript("publish", "wake_next", "wake_next_if_free")
	queueAcquireScript   = loadScript("publish", "queue_common", "queue_acquire")
	queueReleaseScript   = loadScript("publish", "queue_common", "queue_release")
	queueHeartbeatScript = loadScript("publish", "queue_common", "queue_heartbeat")
	forceScript          = loadScript("publish", "queue_common", "force")
	renewScript          = loadScript("renew")
	raiseScript          = loadScript("raise")
	redlockCommitScript  = loadScript("mutex_common", "redlock_commit")
	barScript            = loadScript("bar")
	serverRunIDScript    = loadScript("server_run_id")
	deploymentIDScript   = loadScript("deployment_id")
	inspectScript        = loadScript("inspect")

	onceBeginScript    = loadScript("once_begin_fast", "once_common", "group", "once_begin")
	onceRenewScript    = loadScript("once_common", "once_renew")
	onceEnlistScript   = loadScript("once_common", "group", "once_enlist")
	onceDeclareScript  = loadScript("once_common", "once_declare")
	onceCompleteScript = loadScript("publish", "once_common", "group", "once_finish_common", "once_complete")
	onceHoldScript     = loadScript("publish", "once_common", "group", "once_finish_common", "once_hold")
	onceReleaseScript  = loadScript("publish", "once_common", "group", "once_release")
	onceResolveScript  = loadScript("publish", "once_common", "group", "once_finish_common", "once_resolve")
	onceForgetScript   = loadScript("publish", "once_common", "once_forget")
	oncePeekScript     = loadScript("once_common", "once_peek")
	onceListScript     = loadScript("once_list")
)

// loadScript puts a script together from what it shares with others and its own file, which comes last.
func loadScript(names ...string) *transport.Script {
	var source strings.Builder
	for _, name := range names {
		text, err := luaFiles.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(err) // the file is part of the binary
		}
		source.Write(text)
	}
	return transport.NewScript(source.String())
}
