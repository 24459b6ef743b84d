package core

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Mode tells how a lock is held.
type Mode string

// The modes of locks. The zero value is a lock that nobody holds.
const (
	ModeMutex Mode = "mutex" // by one owner, of holdfast or of Redisson's RLock
	ModeRead  Mode = "read"  // by readers
	ModeWrite Mode = "write" // by a writer
)

// Info is the state of a lock at one instant.
type Info struct {
	// Name of the lock.
	Name string
	// Mode is empty if the lock is free.
	Mode Mode
	// Holders are sorted by owner. There are none while a lock stays taken only for its [WithMinHold].
	Holders []Holder
	// TTL is when the lock becomes free if nobody renews it. Zero if it is free, negative if never, which only
	// a foreign client can cause.
	TTL time.Duration
	// Waiters counts the clients that have listened for a release within the last seconds, each of which may
	// wait for several of its goroutines. It is -1 if Redis refuses the question. In a Cluster it counts those
	// that listen at the node that was asked.
	Waiters int
}

// Holder is one owner in a lock.
type Holder struct {
	// Owner as Redis knows it: "<UUID of the client>:<number>", or what [WithOwner] said.
	Owner string
	// Holds counts the owner's entries.
	Holds int
	// TTL is when the owner's lease ends if it is not renewed.
	TTL time.Duration
	// Token is the fencing token of the grant; 0 if a Redisson client holds the lock.
	Token int64
	// Granted is when the lock was granted, by the server's clock; zero if a Redisson client holds it.
	Granted time.Time
}

// Inspect reads who holds the lock of that name, for operators and tests: the answer may be outdated when it
// arrives. It takes no part in waiting or renewing.
func (c *Client) Inspect(ctx context.Context, name string) (Info, error) {
	if err := checkName(c.prefix, name); err != nil {
		return Info{}, err
	}
	if !c.tasks.begin() {
		return Info{}, ErrClosed
	}
	defer c.tasks.end()
	k := newKeys(c.prefix + name)
	var reply any
	err := persist(ctx, 0, transient, func() (err error) {
		reply, err = c.exec.do(ctx, inspectScript, []string{k.lock}, k.channel)
		return err
	})
	if err != nil {
		return Info{}, fmt.Errorf("holdfast: inspect lock %q: %w", name, failure(ctx, k.lock, err))
	}
	info, err := readInfo(reply)
	info.Name = name
	return info, err
}

func readInfo(reply any) (Info, error) {
	list, _ := reply.([]any)
	if len(list) != 3 {
		return Info{}, fmt.Errorf("holdfast: unexpected reply from Redis: %v", reply)
	}
	ttl, _ := list[0].(int64)
	fields, _ := list[1].([]any)
	state := make(map[string]string, len(fields)/2)
	for i := 0; i+1 < len(fields); i += 2 {
		field, _ := fields[i].(string)
		state[field], _ = fields[i+1].(string)
	}
	waiters, _ := list[2].(int64)
	info := Info{Waiters: int(waiters)}
	if len(state) == 0 {
		return info, nil
	}
	info.Mode, info.TTL = ModeMutex, time.Duration(ttl)*time.Millisecond
	if mode := Mode(state["mode"]); mode == ModeRead || mode == ModeWrite {
		info.Mode = mode
	}
	token, _ := strconv.ParseInt(state["token"], 10, 64)
	granted, _ := strconv.ParseInt(state["granted"], 10, 64)
	for field, value := range state {
		if lockField(field) {
			continue
		}
		h := Holder{Owner: field, TTL: info.TTL, Token: token}
		h.Holds, _ = strconv.Atoi(value)
		if granted > 0 {
			h.Granted = time.UnixMicro(granted)
		}
		info.Holders = append(info.Holders, h)
	}
	slices.SortFunc(info.Holders, func(a, b Holder) int { return strings.Compare(a.Owner, b.Owner) })
	return info, nil
}
