package lockscript

import (
	"embed"
	"strings"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// The scripts, one per operation. Each file opens with its contract.
var (
	acquireScript        = Load("acquire_fast", "mutex_common", "acquire").ReturnsIntegers()
	acquireAllScript     = Load("mutex_common", "acquire_all")
	releaseScript        = Load("publish", "wake_next", "release")
	wakeNextIfFreeScript = Load("publish", "wake_next", "wake_next_if_free")
	QueueAcquireScript   = Load("publish", "queue_common", "queue_acquire")
	QueueReleaseScript   = Load("publish", "queue_common", "queue_release")
	QueueHeartbeatScript = Load("publish", "queue_common", "queue_heartbeat")
	ForceScript          = Load("publish", "queue_common", "force")
	renewScript          = Load("renew")
	raiseScript          = Load("raise")
	redlockCommitScript  = Load("mutex_common", "redlock_commit")
	barScript            = Load("bar")
	serverRunIDScript    = Load("server_run_id")
	deploymentIDScript   = Load("deployment_id")
	inspectScript        = Load("inspect")
)

// Load puts a script together from what it shares with others and its own file, which comes last.
func Load(names ...string) *transport.Script {
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
