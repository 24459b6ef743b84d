package testkit

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Stat tells how often a server has run a command, as INFO commandstats does.
type Stat struct {
	Calls    int64 // executions
	Usec     int64 // time spent in them, in microseconds
	Rejected int64 // calls refused before execution, e.g. for lack of memory
	Failed   int64 // executions which ended in an error
}

// CommandStats returns the statistics of all commands run since the server
// started, by their names in lower case ("evalsha", "client|setinfo"). Commands
// run by a script are counted too.
func (s *Server) CommandStats() map[string]Stat {
	s.t.Helper()
	return parseStats(s.info("commandstats"))
}

func parseStats(info string) map[string]Stat {
	stats := make(map[string]Stat)
	for line := range strings.Lines(info) {
		name, values, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		stats[strings.TrimPrefix(name, "cmdstat_")] = parseStat(values)
	}
	return stats
}

func parseStat(values string) Stat {
	var st Stat
	for pair := range strings.SplitSeq(values, ",") {
		name, value, _ := strings.Cut(pair, "=")
		n, _ := strconv.ParseInt(value, 10, 64) // usec_per_call is no integer
		switch name {
		case "calls":
			st.Calls = n
		case "usec":
			st.Usec = n
		case "rejected_calls":
			st.Rejected = n
		case "failed_calls":
			st.Failed = n
		}
	}
	return st
}

// CountCommands returns how many commands a server has run since the last call, commands of scripts included, and resets its
// statistics. Unlike [Server.CommandStats] it fails the test that calls it, as a fuzz target needs.
func CountCommands(t testing.TB, rdb *redis.Client) (commands int64) {
	t.Helper()
	info, err := rdb.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, stat := range parseStats(info) {
		commands += stat.Calls
	}
	if err := rdb.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return commands
}

// Denied returns what the server has refused to users who lack the rights, as ACL LOG tells it, since it was started. It
// leaves out CLIENT, with which go-redis introduces itself, and does not mind if that is denied. A server that does not
// run has nothing to tell. Each edit may change the options of the client that asks.
func (s *Server) Denied(edit ...func(*redis.Options)) (denied []string) {
	s.t.Helper()
	rdb := s.Client(append(edit, func(o *redis.Options) { o.MaxRetries, o.ReadTimeout = -1, time.Second })...)
	entries, _ := rdb.Do(context.Background(), "ACL", "LOG").Slice()
	for _, entry := range entries {
		if text := fmt.Sprint(entry); !strings.Contains(text, "object:client") {
			denied = append(denied, text)
		}
	}
	return denied
}

// Info returns one field of a section of INFO, for example
// Info("clients", "blocked_clients"). The test fails if there is none.
func (s *Server) Info(section, field string) string {
	s.t.Helper()
	text := s.info(section)
	value, ok := infoField(text, field)
	if !ok {
		s.t.Fatalf("testkit: INFO %s has no field %s:\n%s", section, field, text)
	}
	return value
}

func (s *Server) info(section string) string {
	s.t.Helper()
	text, err := s.roundTrip("INFO " + section)
	if err != nil {
		s.t.Fatalf("testkit: INFO %s: %v", section, err)
	}
	return text
}

func infoField(text, field string) (string, bool) {
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if ok && name == field {
			return value, true
		}
	}
	return "", false
}
