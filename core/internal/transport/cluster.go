package transport

import (
	"context"
	"errors"
	"maps"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// minRefreshInterval is the shortest interval between two queries for the slots of a Cluster.
	minRefreshInterval = 250 * time.Millisecond
	// maxRefreshes bounds the queries in flight. Each goes to a random node, and waits for several seconds if that node does
	// not answer. There may be several because the next one may meet a node that answers.
	maxRefreshes = 8
)

// refresh is what [Nodes] knows of the queries for the slots of a Cluster that [Nodes.RequestRefresh] sends.
type refresh struct {
	done func() // called after each query; nil for nothing; must not be changed after the first command

	mu sync.Mutex

	// Guarded by mu.
	at       time.Time // of the last query
	inFlight int
	timer    *time.Timer // set while a query is due
}

// RequestRefresh has go-redis read the slots of the Cluster again, as soon as minRefreshInterval has passed since the last query. It
// does not wait. Without a Cluster it does nothing. It must be called when the outcome of commands suggests that slots have moved,
// because by itself go-redis reads them once a minute, and after a redirection. A master that has crashed does not redirect.
func (n *Nodes) RequestRefresh() {
	if n.cluster == nil {
		return
	}
	n.refresh.mu.Lock()
	defer n.refresh.mu.Unlock()
	if n.refresh.timer == nil {
		n.refresh.timer = time.AfterFunc(time.Until(n.refresh.at.Add(minRefreshInterval)), n.refreshSlots)
	}
}

// refreshSlots has go-redis read the slots, and drops the nodes of masters that have left the Cluster. The timer calls it. It does
// nothing if maxRefreshes queries are in flight, or if Nodes was closed.
func (n *Nodes) refreshSlots() {
	r := &n.refresh
	r.mu.Lock()
	r.timer, r.at = nil, time.Now()
	if r.inFlight >= maxRefreshes || !n.queries.Start() {
		r.mu.Unlock()
		return
	}
	defer n.queries.Finish()
	r.inFlight++
	r.mu.Unlock()
	// ForEachMaster begins with a query of its own. Not ReloadState, because it would wait for the query that is in flight,
	// however long that one waits for a frozen node.
	n.background.Recovered(func() {
		var mu sync.Mutex
		former := maps.Collect(n.byAddr.Range) // before the query, so that a master that becomes known meanwhile stays
		err := n.cluster.ForEachMaster(context.Background(), func(_ context.Context, master *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			delete(former, master.Options().Addr)
			return nil
		})
		if err != nil {
			return
		}
		for addr, left := range former {
			n.byAddr.CompareAndDelete(addr, left) // commands that are queued there are sent all the same
		}
	})
	r.mu.Lock()
	r.inFlight--
	r.mu.Unlock()
	if r.done != nil {
		r.done()
	}
}

// suggestsMove returns true if err may mean that another master owns the slot now.
func suggestsMove(err error) bool {
	if err == nil {
		return false
	}
	var dial *net.OpError
	switch Classify(err) {
	case Unknown:
		return !errors.Is(err, context.Canceled)
	case NotExecuted:
		return hasCode(err, "READONLY") || hasCode(err, "MASTERDOWN") || hasCode(err, "CLUSTERDOWN") || hasCode(err, "MOVED") ||
			errors.As(err, &dial)
	}
	return false
}

// Slot returns the hash slot of a key: CRC16 (XMODEM) of its hash tag, modulo 16384. The hash tag is the part between the
// first "{" and the next "}". If there is no such part, or it is empty, the whole key is the hash tag. Source: Redis Cluster
// specification, key distribution model.
func Slot(key string) uint16 {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return crc % 16384
}

// Answer is the reply of a server to one command, or its error.
type Answer struct {
	Reply any
	Err   error
}

// AskServer sends commands that read to one master, or to the only server if master is nil, in one pipeline: so one process answers
// them all. Each answer has an error of its own. AskServer returns soon after ctx ends, and after AnswerTimeout, whatever the
// connection does. If the slots of a Cluster may have moved, it has them read again.
//
// The pipeline runs on a goroutine of its own, which may be abandoned, because go-redis does not end a read when its context
// ends.
func (e *Executor) AskServer(ctx context.Context, master *redis.Client, commands ...[]any) ([]Answer, error) {
	rdb := piper(e.Client)
	if only, ok := e.Client.(*redis.Client); ok {
		rdb = e.watched(only)
	} else if master != nil {
		rdb = e.watched(master)
	}
	done := make(chan []Answer, 1) // has room, so that an abandoned goroutine ends too
	go func() {
		answers := make([]Answer, len(commands))
		for i := range answers {
			answers[i].Err = ErrPanic // unless the pipeline returns
		}
		defer func() { done <- answers }()
		e.background.Recovered(func() { askPipelined(ctx, rdb, commands, answers) })
	}()
	timer := time.NewTimer(AnswerTimeout)
	defer timer.Stop()
	select {
	case answers := <-done:
		for i, a := range answers {
			if suggestsMove(a.Err) {
				e.Nodes.RequestRefresh()
			}
			answers[i].Err = e.lasting(a.Err, nil)
		}
		return answers, nil
	case <-ctx.Done():
	case <-timer.C:
	case <-e.stop:
	}
	e.Nodes.RequestRefresh()
	return nil, ErrNotAnswered
}

// askPipelined sends commands in one pipeline, and sets their answers.
func askPipelined(ctx context.Context, rdb piper, commands [][]any, answers []Answer) {
	pipe := rdb.Pipeline()
	sent := make([]*singleTryCmd, len(commands))
	for i, args := range commands {
		sent[i] = newSingleTryCmd(args...)
		_ = pipe.Process(ctx, sent[i])
	}
	execPipeline(ctx, pipe)
	for i, c := range sent {
		answers[i].Reply, answers[i].Err = c.Result()
		answers[i].Err = readable(answers[i].Err)
	}
}

// MasterOf returns the master that owns a key's slot, as far as the client knows. It returns nil without a Cluster. Unlike
// Nodes.Master it waits until the slots have been read.
func (e *Executor) MasterOf(ctx context.Context, key string) (master *redis.Client, err error) {
	if e.Nodes.cluster == nil {
		return nil, nil
	}
	err = ErrPanic // unless the call returns
	e.background.Recovered(func() { master, err = e.Nodes.cluster.MasterForKey(ctx, key) })
	return master, err
}
