package cli

import "runtime/debug"

// release is the version that the linker sets in released binaries.
var release string

// version returns the version of the release, or else of the module.
func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
