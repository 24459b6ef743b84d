package lockscript

import "github.com/holdfast-go/holdfast/core/internal/transport"

// ErrUpgrade is errUpgrade.
var ErrUpgrade = errUpgrade

// QueueScripts are the scripts of queue_common.lua, which a test may replace.
var QueueScripts = []**transport.Script{&queueAcquireScript, &queueReleaseScript, &queueHeartbeatScript, &forceScript}
