package lockscript

import (
	"embed"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// The scripts, one per operation. Each file opens with its contract.
var (
	acquireScript        = load("acquire_fast", "mutex_common", "acquire").ReturnsIntegers()
	acquireAllScript     = load("mutex_common", "acquire_all")
	releaseScript        = load("publish", "wake_next", "release")
	wakeNextIfFreeScript = load("publish", "wake_next", "wake_next_if_free")
	QueueAcquireScript   = load("publish", "queue_common", "queue_acquire")
	QueueReleaseScript   = load("publish", "queue_common", "queue_release")
	QueueHeartbeatScript = load("publish", "queue_common", "queue_heartbeat")
	ForceScript          = load("publish", "queue_common", "force")
	renewScript          = load("renew")
	raiseScript          = load("raise")
	redlockCommitScript  = load("mutex_common", "redlock_commit")
	barScript            = load("bar")
	serverRunIDScript    = load("server_run_id")
	deploymentIDScript   = load("deployment_id")
	inspectScript        = load("inspect")
)

// load returns the script of these files. The last one is its own file, the others are parts that scripts share.
func load(names ...string) *transport.Script { return transport.NewScript(Source(names...)) }

// Source returns the text of the files lua/NAME.lua of this package, one behind the other. It panics if there is no such file.
func Source(names ...string) string { return transport.ReadScripts(luaFiles, names...) }
