// Package preflight looks for settings with which Redis loses locks or refuses them, and warns of them in the log.
//
// It reads INFO, which more users may call than CONFIG: the eviction policy, the role, the version.
package preflight
