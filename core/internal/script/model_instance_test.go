package script_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// inspected is how many holders and waiters of an episode are compared. No episode has more.
const inspected = 1000

// startInstance starts a server and returns the way to its scripts. It has no subscriptions: the model listens by itself.
func startInstance(t *testing.T) *script.Instance {
	t.Helper()
	exec := transport.NewExecutor(testkit.Start(t).Client(), transport.Background{Now: keepalive.SystemClock}, nil)
	exec.UseDirectPath()
	t.Cleanup(func() { exec.Nodes.Close(time.Second) })
	return &script.Instance{
		Exec: exec, IDs: &script.IDs{Client: "model"}, Now: keepalive.SystemClock, PublishVerbArg: "PUBLISH",
		PublishRefused: func() { t.Error("PUBLISH was refused") },
	}
}
