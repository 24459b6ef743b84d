package messages

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/sqllock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

const (
	// workers is how many consumer processes run at a time.
	workers = 4
	// within bounds what must happen, however slow the machine.
	within = 2 * time.Minute
)

// faults are the faults of the table, in its order.
var faults = []fault{killBefore, killIn, killAfter, killGap, killUnacked, slow, rebalance, poison, brokerBroken, redisEmpty}

// TestFaults: each message takes effect once, whatever happens to its consumer, its broker or the Redis of its guard. Without the
// guard the same faults lead to the effects that the log says.
func TestFaults(t *testing.T) {
	t.Parallel()
	open := startPostgreSQL(t)
	for _, name := range []string{"redisstreams", "kafka", "jetstream", "rabbitmq"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, f := range faults {
				t.Run(string(f), func(t *testing.T) {
					if reason := brokers[name].lacks[f]; reason != "" {
						t.Skip(reason)
					}
					times := testkit.Rounds(3, 200)
					guarded := play(t, open, name, f, times, true)
					t.Logf("RESULT | %s | %s | %d | guarded | %s |", name, f, times, guarded)
					if guarded.twice+guarded.lost+guarded.unparked > 0 || guarded.injected < guarded.faults {
						t.Errorf("%s, %s: %s", name, f, guarded)
					}
				})
			}
		})
	}
}

// TestBaseline plays the same without the guard. Where the broker delivers again after an effect, that happens twice.
func TestBaseline(t *testing.T) {
	t.Parallel()
	open := startPostgreSQL(t)
	for _, name := range []string{"redisstreams", "kafka", "jetstream", "rabbitmq"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, f := range []fault{killAfter, killGap, killUnacked, slow, rebalance} {
				t.Run(string(f), func(t *testing.T) {
					if reason := brokers[name].lacks[f]; reason != "" {
						t.Skip(reason)
					}
					times := testkit.Rounds(3, 200)
					without := play(t, open, name, f, times, false)
					t.Logf("RESULT | %s | %s | %d | baseline | %s |", name, f, times, without)
					if without.twice == 0 {
						t.Errorf("%s, %s: %s, so the test does not show what it should", name, f, without)
					}
				})
			}
		})
	}
}

// result is what the database says after all messages were acknowledged.
type result struct {
	messages, twice, lost int
	faults, injected      int // how many there should be, and were
	unparked              int
}

func (r result) String() string {
	return fmt.Sprintf("%d messages, %d faults, %d twice, %d lost, %d not parked", r.messages, r.injected, r.twice, r.lost, r.unparked)
}

// play sends messages of which so many have the fault, until all were acknowledged.
func play(t *testing.T, open func(*testing.T) (*sql.DB, string), name string, f fault, times int, guarded bool) result {
	t.Helper()
	db, dsn := open(t)
	for _, statement := range []string{
		"CREATE TABLE effects (id text NOT NULL)", "CREATE TABLE injected (id text PRIMARY KEY)",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	if store, err := sqllock.New(db, sqllock.Postgres); err != nil {
		t.Fatal(err)
	} else if err := store.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	locks := testkit.Start(t)
	b := brokers[name].start(t)
	crew := startCrew(t, config{
		Broker: name, Addr: b.addr(), LocksNet: locks.Network(), Locks: locks.Addr(), Database: dsn, Guarded: guarded, Fault: f,
	})
	r := result{faults: times}
	sent := 0
	send := func(f fault, n int) {
		for range n {
			id := fmt.Sprint(sent)
			sent++
			testkit.Eventually(t, within, "the broker", func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				return b.publish(ctx, message(id, f)) == nil
			})
		}
	}
	drained := func() {
		testkit.Eventually(t, within+time.Duration(times)*10*time.Second, "all messages so far to be acknowledged", func() bool {
			pending, _, err := b.left(t.Context())
			return err == nil && pending == 0
		})
	}
	injected := func() (n int) {
		_ = db.QueryRow("SELECT count(*) FROM injected").Scan(&n)
		return n
	}
	send(none, 1)
	testkit.Eventually(t, within, "the consumers", func() bool {
		var done int
		return db.QueryRow("SELECT count(*) FROM effects").Scan(&done) == nil && done > 0
	})
	switch f {
	case brokerBroken, redisEmpty:
		for range times {
			send(f, 5)
			if f == brokerBroken {
				b.restart(t)
			} else {
				locks.Kill()
				locks.Restart()
				drained() // of two restarts in a row the second could empty Redis while messages of the first come again
			}
		}
		r.injected = times
	case rebalance:
		for sent := 0; sent < times; {
			n := min(partitions, times-sent)
			send(rebalance, n)
			sent += n
			testkit.Eventually(t, within, "the slow handlers", func() bool { return injected() > sent-n })
			crew.joinAndLeave()
			drained()
		}
	default:
		// Some messages may not have their fault, because another one of their batch has killed the process after their effect.
		for missing := times; missing > 0; missing = times - injected() {
			for range missing {
				send(f, 1)
				send(none, 1)
			}
			if f == poison {
				break
			}
			drained()
		}
	}
	expected := sent
	if f == poison {
		expected, r.injected = sent-times, times
	}
	testkit.Eventually(t, within+time.Duration(times)*10*time.Second, "all messages to be acknowledged", func() bool {
		time.Sleep(50 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		pending, parked, err := b.left(ctx)
		if f == poison {
			r.unparked = times - parked
		}
		var done int
		return err == nil && pending == 0 && db.QueryRow("SELECT count(DISTINCT id) FROM effects").Scan(&done) == nil &&
			done >= expected && r.unparked <= 0
	})
	time.Sleep(expiry / 2) // what is still being handled
	crew.stop()
	r.messages = sent
	var done int
	err := db.QueryRow("SELECT count(DISTINCT id), count(*) - count(DISTINCT id) FROM effects").Scan(&done, &r.twice)
	if err == nil && r.injected == 0 {
		err = db.QueryRow("SELECT count(*) FROM injected").Scan(&r.injected)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.lost, r.unparked = expected-done, max(r.unparked, 0)
	return r
}

// crew are consumer processes. One that dies is replaced.
type crew struct {
	t      *testing.T
	config config
	ending chan struct{}
	all    sync.WaitGroup

	mu   sync.Mutex
	next int
}

func startCrew(t *testing.T, c config) *crew {
	w := &crew{t: t, config: c, ending: make(chan struct{})}
	for range workers {
		w.all.Go(func() {
			for w.one(w.ending) {
			}
		})
	}
	t.Cleanup(w.stop)
	return w
}

// one runs a process until it dies or end is closed. Then it returns false.
func (w *crew) one(end <-chan struct{}) bool {
	c := w.config
	w.mu.Lock()
	c.Name = fmt.Sprint("worker", w.next)
	w.next++
	w.mu.Unlock()
	text, _ := json.Marshal(c)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerVariable+"="+string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if testing.Verbose() {
		cmd.Stderr = os.Stderr
	}
	if err := cmd.Start(); err != nil {
		w.t.Error(err)
		return false
	}
	died := make(chan struct{})
	go func() {
		defer close(died)
		_ = cmd.Wait()
	}()
	select {
	case <-died:
		return true
	case <-end:
		_ = cmd.Process.Kill()
		<-died
		return false
	}
}

// joinAndLeave adds a process for a while, so that partitions move twice.
func (w *crew) joinAndLeave() {
	leave := make(chan struct{})
	time.AfterFunc(expiry, func() { close(leave) })
	w.one(leave)
}

func (w *crew) stop() {
	w.mu.Lock()
	select {
	case <-w.ending:
	default:
		close(w.ending)
	}
	w.mu.Unlock()
	w.all.Wait()
}

// startPostgreSQL starts a server until the test ends. It returns a function that makes a database of it.
func startPostgreSQL(t *testing.T) func(*testing.T) (*sql.DB, string) {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		t.Skip("PostgreSQL is not installed: make databases")
	}
	bin, dir := filepath.Dir(found[len(found)-1]), t.TempDir()
	socket, err := os.MkdirTemp("", "pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(socket) })
	process := notRoot(t, found[len(found)-1], dir, socket)
	command := func(program string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, program), args...)
		cmd.SysProcAttr = process()
		return cmd
	}
	data := filepath.Join(dir, "data")
	if out, err := command("initdb", "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	server := command("postgres", "-D", data, "-k", socket, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=200")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGQUIT)
		_ = server.Wait()
	})
	dsn := func(name string) string { return fmt.Sprintf("host=%s user=postgres dbname=%s", socket, name) }
	admin, err := sql.Open("pgx", dsn("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	testkit.Eventually(t, within, "PostgreSQL", func() bool { return admin.Ping() == nil })
	var n atomic.Int64
	return func(t *testing.T) (*sql.DB, string) {
		t.Helper()
		name := fmt.Sprint("test", n.Add(1))
		if _, err := admin.Exec("CREATE DATABASE " + name); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("pgx", dsn(name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db, dsn(name)
	}
}
