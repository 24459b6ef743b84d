package preflight

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

const (
	// inspections is how often the setup is looked at if Redis does not answer. Once it has, that was all.
	inspections = 3
	// inspectionTimeout is how long one look may take.
	inspectionTimeout = 5 * time.Second
	// inspectionInterval is the time between two looks.
	inspectionInterval = time.Minute
)

// Check looks at one Redis client. Its fields must not change after Start.
type Check struct {
	Client     redis.UniversalClient
	Background *transport.Background
	Logger     *slog.Logger

	findings sync.Map // that were warned of
}

// Start looks, in the background, for settings with which Redis loses locks or refuses them, and warns of them. It
// must be called once Redis has answered for the first time: before, there is nothing to look at, and connecting stays with
// the first lock. If the logger drops warnings, it does nothing.
func (c *Check) Start() {
	if !c.Logger.Enabled(context.Background(), slog.LevelWarn) {
		return
	}
	c.Background.Go(func(ctx context.Context) {
		for range inspections {
			if c.inspectOnce(ctx) {
				return
			}
			lifecycle.Pause(ctx, inspectionInterval, nil, c.Background.Operations.Closing)
			if c.Background.Operations.IsClosed() {
				return
			}
		}
	})
}

// inspectOnce reports whether that was enough. It leaves a look that takes too long to end by itself: go-redis does not
// interrupt it. Close waits for it like for other work in the background, because a go-redis client that is closed with
// a command in flight may wait for ever.
func (c *Check) inspectOnce(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, inspectionTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := transport.ErrPanic
		defer func() { done <- err }()
		c.Background.Recovered(func() { err = c.inspectSetup(ctx) })
	}()
	select {
	case err := <-done:
		c.Logger.Debug("holdfast: setup of Redis inspected", "error", err)
		return err == nil || !transport.Transient(err)
	case <-ctx.Done():
		return false
	}
}

// inspectSetup looks at the server, or at each master of a Cluster: scripts go nowhere else.
func (c *Check) inspectSetup(ctx context.Context) error {
	switch rdb := c.Client.(type) {
	case *redis.ClusterClient:
		return rdb.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) (err error) {
			err = transport.ErrPanic
			c.Background.Recovered(func() { err = c.inspectServer(ctx, master, master.Options().Addr) })
			return err
		})
	case *redis.Client:
		return c.inspectServer(ctx, rdb, rdb.Options().Addr)
	default:
		return c.inspectServer(ctx, rdb, "")
	}
}

// inspectServer asks with INFO, which more users may call than CONFIG.
func (c *Check) inspectServer(ctx context.Context, rdb redis.Cmdable, addr string) error {
	text, err := rdb.Info(ctx).Result()
	if err != nil {
		return err
	}
	info := readInfo(text)
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		c.found("Redis may evict locks when its memory is full: set maxmemory-policy to noeviction",
			"server", addr, "maxmemory-policy", policy, "maxmemory", info["maxmemory"])
	}
	if info["role"] == "slave" && addr != sentinelAddr {
		c.found("Redis is a replica and refuses locks: connect to its master",
			"server", addr, "master", info["master_host"]+":"+info["master_port"])
	}
	if version := info["redis_version"]; tooOld(version) {
		c.found("Redis is too old for locks: 6.2 or newer is needed", "server", addr, "version", version)
	}
	return nil
}

// sentinelAddr is what go-redis calls the address that Sentinel tells. During a failover it may be that of a replica.
const sentinelAddr = "FailoverClient"

// found warns of something, once.
func (c *Check) found(message string, args ...any) {
	if _, known := c.findings.LoadOrStore(message+fmt.Sprint(args...), true); !known {
		c.Logger.Warn("holdfast: "+message, args...)
	}
}

// readInfo reads the fields of a reply to INFO.
func readInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

func tooOld(version string) bool {
	var major, minor int
	_, err := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return err == nil && (major < 6 || major == 6 && minor < 2)
}
