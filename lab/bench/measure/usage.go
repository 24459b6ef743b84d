package measure

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Usage is what a server has done since it was started, and what it has now, all from one reply to INFO.
type Usage struct {
	At       time.Time
	CPU      time.Duration // as of [CPUTime]
	Commands float64       // of those that were named
	Scripts  float64       // microseconds in the named commands, without reading and writing
	Reads    float64       // of sockets: a pipeline takes one, or several if it is long
	In, Out  float64       // bytes
	Memory   float64       // bytes in use
	Keys     float64
	Clients  float64
}

// UsageOf counts the named commands only, for the reason that [Loads] gives.
func UsageOf(ctx context.Context, rdb redis.Cmdable, names []string) (u Usage, err error) {
	text, err := rdb.Info(ctx, "all").Result()
	if err != nil {
		return u, fmt.Errorf("usage of the server: %w", err)
	}
	u.At = time.Now()
	if u.CPU, err = parseCPUTime(text); err != nil {
		return u, err
	}
	fields := infoFields(text)
	for name, to := range map[string]*float64{
		"total_reads_processed": &u.Reads, "total_net_input_bytes": &u.In, "total_net_output_bytes": &u.Out,
		"used_memory": &u.Memory, "connected_clients": &u.Clients,
	} {
		if *to, err = strconv.ParseFloat(fields[name], 64); err != nil {
			return u, fmt.Errorf("usage of the server: %s: %w", name, err)
		}
	}
	for _, name := range names {
		stat := statFields(fields["cmdstat_"+name])
		u.Commands += stat["calls"]
		u.Scripts += stat["usec"]
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if strings.HasPrefix(name, "db") {
			u.Keys += statFields(fields[name])["keys"]
		}
	}
	return u, nil
}

// Since returns what was done between before and u. Memory, keys and clients are what was added.
func (u Usage) Since(before Usage) Usage {
	u.CPU -= before.CPU
	u.Commands -= before.Commands
	u.Scripts -= before.Scripts
	u.Reads -= before.Reads
	u.In -= before.In
	u.Out -= before.Out
	u.Memory -= before.Memory
	u.Keys -= before.Keys
	u.Clients -= before.Clients
	return u
}

// infoFields returns the lines of INFO by their names.
func infoFields(text string) map[string]string {
	fields := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			fields[name] = value
		}
	}
	return fields
}

// statFields returns the numbers of one line, such as "calls=3,usec=7".
func statFields(line string) map[string]float64 {
	fields := make(map[string]float64)
	for pair := range strings.SplitSeq(line, ",") {
		name, value, _ := strings.Cut(pair, "=")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			fields[name] = n
		}
	}
	return fields
}
