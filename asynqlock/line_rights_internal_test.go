package asynqlock

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestEnterWithoutPEXPIRE: a line that could not expire is not begun.
func TestEnterWithoutPEXPIRE(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	if err := rdb.Do(ctx, "ACL", "SETUSER", "worker", "on", "nopass", "~*", "+@all", "-pexpire").Err(); err != nil {
		t.Fatal(err)
	}
	worker := server.Client(func(o *redis.Options) { o.Username, o.Password = "worker", "any" })
	if err := enterScript.Run(ctx, worker, []string{"line"}, "task", 1000).Err(); err == nil {
		t.Error("entered")
	}
	if rdb.Exists(ctx, "line").Val() != 0 {
		t.Error("the line stays for ever")
	}
}
