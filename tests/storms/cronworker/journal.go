package cronworker

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Kind tells what an [Entry] is about.
type Kind string

// The kinds. Up, Begin, End and Skip are of replicas; the others are of the test, which does that to them next.
const (
	Up      Kind = "up"
	Begin   Kind = "begin" // of a run
	End     Kind = "end"
	Skip    Kind = "skip" // a tick that does not run on this replica
	Stopped Kind = "stop"
	Resumed Kind = "continue"
	Killed  Kind = "kill"
)

// Entry is something that happened.
type Entry struct {
	At      time.Time `json:"-"` // by the clock of the journal's Redis
	Kind    Kind
	Replica string
	PID     int
	Job     string        `json:",omitempty"`
	Tick    int64         `json:",omitempty"` // Unix time
	Attempt int           `json:",omitempty"`
	Token   int64         `json:",omitempty"`
	Reason  string        `json:",omitempty"` // of a skip
	Over    bool          `json:",omitempty"` // the context, at the end of a run
	Ahead   time.Duration `json:",omitempty"` // the clock, when up
	Refused bool          `json:"-"`          // a write of a run, because of a greater token
}

// Journal is a list of all that happened, in the order in which one Redis heard of it.
type Journal struct {
	rdb  *redis.Client
	last string // entry that was read
}

// OpenJournal returns the journal that lies in rdb.
func OpenJournal(rdb *redis.Client) *Journal { return &Journal{rdb: rdb, last: "0"} }

// recordScript also is the resource behind the locks: of each job it keeps the greatest token that has written, and
// refuses smaller ones.
var recordScript = redis.NewScript(`
local now = redis.call("TIME")
local refused = 0
local token, job = tonumber(ARGV[2]), ARGV[3]
if token > 0 then
	if token < tonumber(redis.call("HGET", KEYS[2], job) or "0") then
		refused = 1
	else
		redis.call("HSET", KEYS[2], job, ARGV[2])
	end
end
return redis.call("XADD", KEYS[1], "*", "at", string.format("%d%06d", now[1], now[2]), "entry", ARGV[1],
	"refused", refused)
`)

// Record adds an entry, and notes whether a write with its token is refused.
func (j *Journal) Record(ctx context.Context, entry Entry) error {
	text, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	return recordScript.Run(ctx, j.rdb, []string{"journal", "register"}, text, entry.Token, entry.Job).Err()
}

// Now returns the time by the clock of the journal.
func (j *Journal) Now(ctx context.Context) (time.Time, error) { return j.rdb.Time(ctx).Result() }

// Next returns what was recorded since the last call. If that is nothing, it waits a moment for it.
func (j *Journal) Next(ctx context.Context) ([]Entry, error) {
	streams, err := j.rdb.XRead(ctx, &redis.XReadArgs{
		Streams: []string{"journal", j.last}, Block: 20 * time.Millisecond,
	}).Result()
	if err == redis.Nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, message := range streams[0].Messages {
		entry, err := read(message.Values)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
		j.last = message.ID
	}
	return entries, nil
}

func read(values map[string]any) (entry Entry, err error) {
	text, _ := values["entry"].(string)
	if err := json.Unmarshal([]byte(text), &entry); err != nil {
		return entry, fmt.Errorf("entry %q: %w", text, err)
	}
	at, _ := values["at"].(string)
	micros, err := strconv.ParseInt(at, 10, 64)
	entry.At, entry.Refused = time.UnixMicro(micros), values["refused"] == "1"
	return entry, err
}
