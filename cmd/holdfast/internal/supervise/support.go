package supervise

import (
	"fmt"
	"runtime"
)

// Supported returns nil where this package can run a command. Elsewhere the error says that it cannot. A command has to be
// ended with all its descendants before its lock expires, which takes what only some systems offer.
func Supported() error { return supportedOn(runtime.GOOS) }

func supportedOn(system string) error {
	switch system {
	case "linux", "darwin":
		return nil
	}
	return fmt.Errorf("exec, once and elect run commands on Linux and macOS only, because they cannot end a command with all "+
		"its processes on %s; all other commands of holdfast work here", system)
}
