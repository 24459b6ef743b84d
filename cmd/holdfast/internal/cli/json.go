package cli

import (
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/internal/foreign"
)

// printJSON writes an object on one line. Characters that a terminal would obey, or that reverse what is read, are escaped.
func (env *environment) printJSON(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = env.stdout.Write(append(foreign.JSON(text), '\n'))
	return err
}

// jsonLock is a lock in JSON.
type jsonLock struct {
	Name    string       `json:"name"`
	Mode    string       `json:"mode"`
	Foreign bool         `json:"foreign,omitempty"` // of ls: a client of Redisson holds it
	Held    int          `json:"holds"`
	TTL     int64        `json:"ttl_ms"`
	Waiters int          `json:"waiters"`
	Queued  int          `json:"queued"`
	Value   string       `json:"value,omitempty"`
	Holders []jsonHolder `json:"holders"`
	Queue   []jsonWaiter `json:"queue,omitempty"`
	Record  *jsonRecord  `json:"record,omitempty"`
}

type jsonHolder struct {
	Owner    string     `json:"owner"`
	Instance string     `json:"instance,omitempty"`
	Token    int64      `json:"token"`
	Granted  *time.Time `json:"granted,omitempty"`
	TTL      int64      `json:"ttl_ms"`
	Permits  int        `json:"permits,omitempty"`
	Limit    int        `json:"limit,omitempty"`
	Slot     int        `json:"slot,omitempty"`
}

type jsonWaiter struct {
	Owner    string `json:"owner"`
	Instance string `json:"instance,omitempty"`
	Mode     string `json:"mode"`
	Permits  int    `json:"permits,omitempty"`
}

// jsonRecord is a record of a Once in JSON.
type jsonRecord struct {
	Key       string     `json:"key"`
	State     string     `json:"state"`
	Attempt   int        `json:"attempt"`
	Token     int64      `json:"token"`
	Began     *time.Time `json:"began,omitempty"`
	Ended     *time.Time `json:"ended,omitempty"`
	Lease     int64      `json:"lease_ms,omitempty"`
	Retention int64      `json:"retention_ms"`
	Reason    string     `json:"reason,omitempty"`
	Note      string     `json:"note,omitempty"`
	Instance  string     `json:"instance,omitempty"`
	Label     string     `json:"label,omitempty"`
	Size      int        `json:"size"`
	Value     []byte     `json:"value,omitempty"`
}

// jsonJob is a job of cronlock in JSON.
type jsonJob struct {
	Name       string     `json:"name"`
	Service    string     `json:"service"`
	Spec       string     `json:"spec"`
	Zone       string     `json:"zone"`
	Paused     bool       `json:"paused"`
	PausedBy   string     `json:"paused_by,omitempty"`
	PausedAt   *time.Time `json:"paused_at,omitempty"`
	LastTick   *time.Time `json:"last_tick,omitempty"`
	NextTick   *time.Time `json:"next_tick,omitempty"`
	Missed     int        `json:"missed"`
	MissedTick *time.Time `json:"missed_tick,omitempty"`
	Registered *time.Time `json:"registered,omitempty"`
}

// jsonRun is a run of a job in JSON.
type jsonRun struct {
	Job     string     `json:"job"`
	Tick    *time.Time `json:"tick,omitempty"`
	Outcome string     `json:"outcome"`
	Attempt int        `json:"attempt"`
	Token   int64      `json:"token"`
	Started *time.Time `json:"started,omitempty"`
	Took    int64      `json:"took_ms"`
	Replica string     `json:"replica"`
	Service string     `json:"service"`
}

// timeOrNil returns nil for the zero time, which JSON leaves out.
func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func holdersInJSON(holders []core.Holder) []jsonHolder {
	all := make([]jsonHolder, 0, len(holders))
	for _, h := range holders {
		all = append(all, jsonHolder{
			Owner: h.Owner, Instance: h.Instance, Token: h.Token, Granted: timeOrNil(h.Granted), TTL: h.TTL.Milliseconds(),
			Permits: h.Permits, Limit: h.Limit, Slot: h.Slot,
		})
	}
	return all
}

func entryInJSON(e core.Entry) jsonLock {
	return jsonLock{
		Name: e.Name, Mode: string(e.Mode), Foreign: e.Foreign, Held: e.Holds, TTL: e.TTL.Milliseconds(),
		Waiters: e.Waiters, Queued: e.Places, Value: e.Value, Holders: holdersInJSON(e.Holders),
	}
}

func jobInJSON(j cronlock.JobInfo) jsonJob {
	return jsonJob{
		Name: j.Name, Service: j.Service, Spec: j.Spec, Zone: j.Zone,
		Paused: j.Paused, PausedBy: j.PausedBy, PausedAt: timeOrNil(j.PausedAt), LastTick: timeOrNil(j.LastTick),
		NextTick: timeOrNil(j.NextTick), Missed: j.Missed, MissedTick: timeOrNil(j.MissedTick), Registered: timeOrNil(j.Registered),
	}
}

func runInJSON(r cronlock.Run) jsonRun {
	return jsonRun{
		Job: r.Job, Tick: timeOrNil(r.Tick), Outcome: string(r.Outcome), Attempt: r.Attempt, Token: r.Token,
		Started: timeOrNil(r.Started), Took: r.Took.Milliseconds(), Replica: r.Replica, Service: r.Service,
	}
}

func recordInJSON(r core.Record, size int) *jsonRecord {
	return &jsonRecord{
		Key: r.Key, State: stateOf(r), Attempt: r.Attempt, Token: r.Token, Began: timeOrNil(r.Began), Ended: timeOrNil(r.Ended),
		Lease: r.Lease.Milliseconds(), Retention: r.Retention.Milliseconds(), Reason: r.Reason, Note: r.Note,
		Instance: r.Instance, Label: r.Label,
		Size: size, Value: r.Value,
	}
}

// stateOf returns the state of a record, "none" without one.
func stateOf(r core.Record) string {
	if r.State == core.StateNone {
		return "none"
	}
	return string(r.State)
}
