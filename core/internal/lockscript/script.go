package lockscript

import (
	"embed"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// The scripts, one per operation. Each file opens with its contract.
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

// load returns the script of these files. The last one is its own file, the others are parts that scripts share.
func load(names ...string) *transport.Script { return transport.NewScript(Source(names...)) }

// Source returns the text of the files lua/<name>.lua of this package, one behind the other. It panics if there is no such file.
func Source(names ...string) string { return transport.ReadScripts(luaFiles, names...) }
