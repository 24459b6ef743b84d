package inventory

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// errNoMaster is the error of a walk that a replica of a Cluster has answered, whose data may be incomplete, or a master that has
// lost the slots for which it was asked. The client does not know the new master yet.
var errNoMaster = transport.WithOutcome(errors.New("the server does not own the slots any more"), transport.NotExecuted)

// scanned is the answer of a server to one SCAN.
type scanned struct {
	keys   []string // a key may be there twice
	cursor string   // of the next SCAN; "0" at the end
	// server stands for the process that has answered, in its present role; "" if the user may not ask. It changes with a restart
	// and with a failover.
	server string
	own    slots // of the server, after the SCAN; empty without a Cluster
}

// scanServer sends one SCAN for hashes to a master, or to the only server if master is nil. count bounds its work.
func (w *walk) scanServer(ctx context.Context, master *redis.Client, cursor string, count int) (s scanned, err error) {
	commands := [][]any{
		{"info", "replication"},
		{"scan", cursor, "match", w.Pattern, "count", count, "type", "hash"},
	}
	if master != nil {
		commands = append(commands, nodesCommand)
	}
	answers, err := w.Exec.AskServer(ctx, master, commands...)
	if err != nil {
		return scanned{}, err
	}
	if err := answers[1].Err; err != nil {
		return scanned{}, err
	}
	if master != nil {
		if s.own, err = readOwn(answers[2]); err != nil {
			return scanned{}, err
		}
	}
	info, _ := answers[0].Reply.(string) // without the right to INFO there is none
	s.server = field(info, "role") + field(info, "master_replid")
	s.cursor, s.keys, err = script.ReadScan(answers[1].Reply)
	return s, err
}

// field returns a field of a reply to INFO, "" if there is none.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// nodesCommand asks a server for the nodes of its Cluster.
var nodesCommand = []any{"cluster", "nodes"}

// ownSlots asks a server of a Cluster for the slots that it owns.
func (w *walk) ownSlots(ctx context.Context, master *redis.Client) (slots, error) {
	answers, err := w.Exec.AskServer(ctx, master, nodesCommand)
	if err != nil {
		return slots{}, err
	}
	return readOwn(answers[0])
}

// readOwn reads from the answer to CLUSTER NODES which slots the server owns: none if it is a replica. Each line has the node's ID,
// address, flags, master, ping, pong, epoch and state of the link, and then its slots. Slots that are on their way are in brackets.
//
// Why not the slots that the client knows: it learns late that a slot has moved.
func readOwn(answer transport.Answer) (own slots, err error) {
	if answer.Err != nil {
		return slots{}, answer.Err
	}
	text, _ := answer.Reply.(string)
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 8 || !strings.Contains(words[2], "myself") {
			continue
		}
		for _, word := range words[8:] {
			if some, ok := parseSlots(word); ok {
				own.addAll(&some)
			}
		}
	}
	return own, nil
}
