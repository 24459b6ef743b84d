package script

import (
	"context"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// ErrUpgrade is upgradeRefused.
var ErrUpgrade = upgradeRefused

// QueueScripts are the scripts of queue_common.lua, which a test may replace.
var QueueScripts = []**transport.Script{&queueAcquireScript, &queueReleaseScript, &queueHeartbeatScript, &forceScript}

// Enlist extends the membership of a running record, as RenewAll does, and waits for the answer.
func (s *Once) Enlist(ctx context.Context, h *Hold) error {
	c := enlistCommand(h)
	c.Done = nil
	return s.Exec.Run(ctx, c)
}

// SetID sets the ID of a hold, and what depends on it.
func (h *Hold) SetID(id string) {
	h.ID, h.Released = id, h.Keys.Released(id)
	h.setArgs()
}
