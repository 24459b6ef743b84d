package script

import (
	"embed"
	"strings"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

//go:embed lua/lock/*.lua lua/once/*.lua
var luaFiles embed.FS

// The scripts of locks, one per operation. Each file opens with its contract.
var (
	acquireScript        = load("token", "compact_grant", "acquire_fast", "lock_kind", "compact", "mutex_owner", "mutex_common", "acquire")
	acquireAllScript     = load("token", "lock_kind", "compact", "mutex_owner", "mutex_common", "acquire_all")
	releaseScript        = load("publish", "wake_next", "release_fast", "lock_kind", "compact", "release")
	wakeNextIfFreeScript = load("publish", "wake_next", "wake_next_if_free")
	queueAcquireScript   = load("token", "compact_grant", "queue_acquire_fast", "publish", "lock_kind", "compact", "permits", "mutex_owner", "queue_common", "queue_holder", "queue_acquire")
	queueReleaseScript   = load("publish", "queue_release_fast", "token", "lock_kind", "compact", "permits", "queue_common", "queue_release")
	queueHeartbeatScript = load("publish", "token", "lock_kind", "compact", "permits", "mutex_owner", "queue_common", "queue_holder", "queue_heartbeat")
	forceScript          = load("publish", "token", "lock_kind", "compact", "permits", "queue_common", "force")
	forceHolderScript    = load("publish", "token", "lock_kind", "compact", "permits", "queue_common", "force_holder")
	wasForcedScript      = load("was_forced")
	renewScript          = load("renew")
	raiseScript          = load("token", "lock_kind", "compact", "raise")
	redlockCommitScript  = load("token", "lock_kind", "compact", "mutex_owner", "mutex_common", "redlock_commit")
	barScript            = load("bar")
	serverRunIDScript    = load("server_run_id")
	deploymentIDScript   = load("deployment_id")
	inspectScript        = load("lock_kind", "inspect")
	summaryScript        = load("lock_kind", "summary")
	proclaimScript       = load("publish", "lock_kind", "compact", "proclaim")
	leaderScript         = load("lock_kind", "leader")
	announceScript       = load("publish", "announce")
)

// The scripts of Once. Those that announce the end of an attempt have lua/lock/publish.lua too.
var (
	onceBeginScript    = load("once/begin_fast", "once/common", "once/group", "once/begin")
	onceRenewScript    = load("once/common", "once/renew")
	onceEnlistScript   = load("once/common", "once/group", "once/enlist")
	onceDeclareScript  = load("once/common", "once/declare")
	oncePeekScript     = load("once/common", "once/peek")
	onceListScript     = load("once/list")
	onceSummaryScript  = load("once/common", "once/summary")
	onceCompleteScript = load("once/complete_fast", "publish", "once/common", "once/group", "once/finish_common", "once/finish", "once/complete")
	onceHoldScript     = load("publish", "once/common", "once/group", "once/finish_common", "once/finish", "once/hold")
	onceReleaseScript  = load("publish", "once/common", "once/group", "once/release")
	onceResolveScript  = load("publish", "once/common", "once/seen", "once/group", "once/marks", "once/finish_common", "once/resolve")
	onceForgetScript   = load("publish", "once/common", "once/seen", "once/marks", "once/forget")
)

// load returns the script of these files. The last one is its own file, the others are parts that scripts share.
func load(names ...string) *transport.Script { return transport.NewScript(source(names...)) }

// source returns the text of the files lua/<name>.lua of this package, one behind the other. A name without a folder is one of
// lua/lock. It panics if there is no such file.
func source(names ...string) string {
	files := make([]string, len(names))
	for i, name := range names {
		if files[i] = name; !strings.Contains(name, "/") {
			files[i] = "lock/" + name
		}
	}
	return transport.ReadScripts(luaFiles, files...)
}
