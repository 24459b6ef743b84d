package inventory

import (
	"embed"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// The scripts, one per operation. Each file opens with its contract.
var (
	announceScript = load("announce")
	leaveScript    = load("leave")
	findScript     = load("find")
)

func load(name string) *transport.Script {
	return transport.NewScript(transport.ReadScripts(luaFiles, name))
}
