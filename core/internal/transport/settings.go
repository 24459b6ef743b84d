package transport

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
	"github.com/holdfast-go/holdfast/internal/throttle"
)

const (
	// inspections is how often the setup is inspected at most. The first inspection that Redis answers is the last. Not for as
	// long as it takes, because the check is a help for new setups, not a monitor.
	inspections = 3
	// inspectionTimeout bounds one inspection of all servers.
	inspectionTimeout = 5 * time.Second
	// inspectionInterval is the pause between two inspections. It is long enough for most failovers and restarts.
	inspectionInterval = time.Minute
)

// SettingsCheck inspects the setup behind one Redis client. Its fields must not change after Start.
type SettingsCheck struct {
	Exec   *Executor
	Logger *slog.Logger
	// Alone is true if no other server has the same locks, unlike in a Redlock. Then a server without a copy of its data is a
	// finding.
	Alone bool

	findings throttle.Seen // that were logged

	mu sync.Mutex

	// Guarded by mu.
	replica  error // the first refusal of a write, until it was warned of
	warned   bool  // of a replica
	finished bool  // no inspection will follow
}

// Start inspects the setup in the background, and warns of settings with which Redis loses locks or refuses them. The caller
// must call it once, after the first reply of Redis. Not before, because a client whose locks are not used makes no connection.
// If the logger drops warnings, Start does nothing. The inspection ends with the client.
func (c *SettingsCheck) Start() {
	if !c.Logger.Enabled(context.Background(), slog.LevelWarn) {
		return
	}
	c.Exec.background.Go(func(ctx context.Context) {
		defer c.finish()
		for range inspections {
			if c.inspectOnce(ctx) {
				return
			}
			keepalive.Pause(ctx, inspectionInterval, nil, c.Exec.background.Operations.Closing)
			if c.Exec.background.Operations.IsClosed() {
				return
			}
		}
	})
}

// inspectOnce inspects the setup once. It returns true if no further inspection is needed: Redis has answered, or has
// refused INFO, or a hook of the user's client has panicked. It returns false if an answer is missing that may come later.
//
// The inspection runs on a goroutine of its own, which inspectOnce abandons after inspectionTimeout, because go-redis does not
// end a read when its context ends. The channel has room for the result, so an abandoned goroutine ends too. Close of the
// client waits until inspectOnce has returned, because a go-redis client that is closed with a command in flight may wait for
// ever.
func (c *SettingsCheck) inspectOnce(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, inspectionTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := ErrPanic // unless the call returns; Recovered has logged the panic
		defer func() { done <- err }()
		c.Exec.background.Recovered(func() { err = c.inspectSetup(ctx) })
	}()
	select {
	case err := <-done:
		c.Logger.Debug("holdfast: setup of Redis inspected", "error", err)
		return err == nil || !Transient(err)
	case <-ctx.Done():
		return false
	}
}

// inspectSetup inspects the server, or each master of a Cluster. It leaves replicas alone, because scripts are not sent
// there. It returns the first error. In a Cluster the other masters are inspected nevertheless.
func (c *SettingsCheck) inspectSetup(ctx context.Context) error {
	switch rdb := c.Exec.Client.(type) {
	case *redis.ClusterClient:
		return rdb.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) (err error) {
			err = ErrPanic // go-redis calls this on goroutines of its own, where a panic would end the process
			c.Exec.background.Recovered(func() { err = c.inspectServer(ctx, c.Exec.watched(master), master.Options()) })
			return err
		})
	case *redis.Client:
		return c.inspectServer(ctx, c.Exec.watched(rdb), rdb.Options())
	default:
		return c.inspectServer(ctx, rdb, nil)
	}
}

// inspectServer inspects one server, by its INFO, and warns of what it finds. o are the options of its client; nil if they are not
// known. A field that the server leaves out is no finding, because servers that are compatible with Redis leave fields out.
func (c *SettingsCheck) inspectServer(ctx context.Context, rdb redis.Cmdable, o *redis.Options) error {
	addr := ""
	if o != nil {
		addr = o.Addr
	}
	text, err := rdb.Info(ctx).Result()
	if err != nil {
		return err
	}
	info := readInfo(text)
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		c.found("Redis may evict locks when its memory is full: set maxmemory-policy to noeviction",
			"server", addr, "maxmemory-policy", policy, "maxmemory", info["maxmemory"])
	}
	if info["role"] == "master" {
		c.Exec.SeenMaster()
	}
	if info["role"] == "slave" && addr != SentinelAddr {
		c.mu.Lock()
		c.warned = true
		c.mu.Unlock()
		c.found("Redis is a replica and refuses locks: connect to its master",
			"server", addr, "master", info["master_host"]+":"+info["master_port"])
	}
	if c.Alone && info["role"] == "master" && info["connected_slaves"] == "0" && info["aof_enabled"] == "0" &&
		isDefaultUser(o) && savesNothing(ctx, rdb) {
		c.found("Redis has neither persistence nor replicas: a restart loses all locks and records", "server", addr)
	}
	if version := info["redis_version"]; tooOld(version) {
		c.found("Redis is too old for locks: 6.2 or newer is needed", "server", addr, "version", version)
	}
	return nil
}

// FoundReplica warns, once, that the server refuses writes with err because it is a replica. If an inspection is to come, that
// one warns, because INFO also has the address of the master.
func (c *SettingsCheck) FoundReplica(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replica = err
	c.warnOfReplicaLocked()
}

// finish records that no inspection will follow.
func (c *SettingsCheck) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished = true
	c.warnOfReplicaLocked()
}

// warnOfReplicaLocked warns of a replica that no inspection has found or will find.
func (c *SettingsCheck) warnOfReplicaLocked() {
	if c.finished && !c.warned && c.replica != nil {
		c.warned = true
		c.Logger.Warn("holdfast: Redis is a replica and refuses locks: connect to its master", "error", c.replica)
	}
}

// savesNothing returns true if the server says that it makes no snapshots. INFO does not show that: a server without a snapshot
// may not have reached its first one yet. It must be asked as the default user only, because the server would log the refusal of a
// user with few rights. It returns false if it cannot ask, or if there is no such command.
func savesNothing(ctx context.Context, rdb redis.Cmdable) bool {
	config, err := rdb.ConfigGet(ctx, "save").Result()
	save, known := config["save"]
	return err == nil && known && strings.TrimSpace(save) == ""
}

// isDefaultUser returns true if it is known that the client logs in as the default user, or not at all.
func isDefaultUser(o *redis.Options) bool {
	return o != nil && (o.Username == "" || o.Username == "default") && o.CredentialsProvider == nil && o.CredentialsProviderContext == nil &&
		o.StreamingCredentialsProvider == nil
}

// found logs a warning, unless it was logged before with the same arguments. So each server has one line for each setting,
// however often the setup is inspected.
func (c *SettingsCheck) found(message string, args ...any) {
	if c.findings.First(message + fmt.Sprint(args...)) {
		c.Logger.Warn("holdfast: "+message, args...)
	}
}

// readInfo returns the fields of a reply to INFO. Lines without a colon are left out.
func readInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

// tooOld returns true for versions before 6.2. The scripts call SET with GET, which 6.2 has added. It returns false for a
// text that is no version.
func tooOld(version string) bool {
	var major, minor int
	_, err := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return err == nil && (major < 6 || major == 6 && minor < 2)
}
