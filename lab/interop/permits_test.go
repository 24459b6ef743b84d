//go:build unix

package interop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/interop"
	"github.com/holdfast-go/holdfast/lab/permits"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// permitWork is a load of permits.
type permitWork struct {
	what    string
	threads int
	hold    time.Duration
}

var permitWorks = []permitWork{{"1 thread", 1, 0}, {"64 threads, held for 2 ms", 64, 2 * time.Millisecond}}

// permitRound is what one side did in one round.
type permitRound struct {
	rate, commands float64
	waits          []float64 // in microseconds
}

// TestSpeedOfPermits measures a Semaphore of holdfast beside an RPermitExpirableSemaphore, both with n = 5, as TestSpeed
// does with locks.
func TestSpeedOfPermits(t *testing.T) {
	if *speed == 0 {
		t.Skip("it takes minutes: make -C lab interop-bench")
	}
	all := versions(t)
	server := testkit.Start(t, testkit.TCP())
	p := &place{"single", server.Addr(), server.Client(), testkit.Start(t, testkit.TCP())}
	sides := []*party{p.golang(t, long)}
	columns := []string{"holdfast"}
	for i, version := range all {
		side := p.java(t, version, long)
		side.must("main", "setpermits", semaphore(side.permitName(i+1))...)
		sides, columns = append(sides, side), append(columns, "Redisson "+version)
	}
	for _, w := range permitWorks {
		for i, side := range sides[1:] {
			w.run(t, server, side, i+1, 3**speed)
		}
	}
	var table strings.Builder
	fmt.Fprintf(&table, "| permits | %s |\n| --- |%s\n", strings.Join(columns, " | "), strings.Repeat(" ---: |", len(columns)))
	for _, w := range permitWorks {
		rounds := make([][]permitRound, len(sides))
		for range speedRounds {
			for i, side := range sides {
				rounds[i] = append(rounds[i], w.run(t, server, side, i, *speed))
			}
		}
		fmt.Fprintf(&table, "| %s |", w.what)
		for _, of := range rounds {
			fmt.Fprint(&table, cell(of, rounds[0]))
		}
		fmt.Fprintln(&table)
	}
	t.Logf("%d rounds of %v each: permits/s (of holdfast's), p99 of the waits, commands of a grant\n%s", speedRounds, *speed, &table)
}

// cell has medians over the rounds of a side.
func cell(of, holdfast []permitRound) string {
	var rates, ratios, commands, longest []float64
	for i, r := range of {
		rates, commands = append(rates, r.rate), append(commands, r.commands)
		ratios = append(ratios, r.rate/holdfast[i].rate)
		slices.Sort(r.waits)
		longest = append(longest, r.waits[len(r.waits)*99/100])
	}
	return fmt.Sprintf(" %.0f/s (%.2f), %.1f ms, %.2f |", middle(rates), middle(ratios), middle(longest)/1000, middle(commands))
}

// permitName is the name of the semaphore of a side, which no other side uses.
func (q *party) permitName(side int) string { return fmt.Sprintf("permits-%s-%d", q.name, side) }

func semaphore(name string) []any {
	return append(as("semaphore", name), "n", permits.N, "lease", long.Milliseconds())
}

// run lets all threads of a side take permits at the same time.
func (w permitWork) run(t *testing.T, server *testkit.Server, side *party, number int, length time.Duration) (r permitRound) {
	t.Helper()
	before := sent(server)
	var calls []<-chan interop.Answer
	for i := range w.threads {
		arguments := append(semaphore(side.permitName(number)), "for", length.Milliseconds(), "hold", w.hold.Microseconds())
		calls = append(calls, side.begin(fmt.Sprint(i), "permits", arguments...))
	}
	grants := 0.0
	for _, answered := range calls {
		a := side.answer(answered, length+within)
		if a.Failed {
			t.Fatalf("%s: %s", side.name, a.Value)
		}
		var numbers []float64
		for word := range strings.FieldsSeq(a.Value) {
			var n float64
			if _, err := fmt.Sscan(word, &n); err != nil {
				t.Fatalf("%s: %s", side.name, a.Value)
			}
			numbers = append(numbers, n)
		}
		grants += numbers[0]
		r.rate += numbers[0] / numbers[1] * 1e6
		r.waits = append(r.waits, numbers[2:]...)
	}
	r.commands = float64(sent(server)-before) / grants
	return r
}

// sent counts the commands that clients of both sides send.
func sent(server *testkit.Server) (n int64) {
	stats := server.CommandStats()
	for _, name := range []string{"evalsha", "eval", "subscribe", "unsubscribe"} {
		n += stats[name].Calls
	}
	return n
}

// TestPermitsUnderFaults lets both sides play the faults of [permits.Plays], and fails if a permit of holdfast is lost.
func TestPermitsUnderFaults(t *testing.T) {
	if *speed == 0 {
		t.Skip("it takes minutes: make -C lab interop-bench")
	}
	version := versions(t)[0]
	referee := testkit.Start(t, testkit.TCP())
	var mu sync.Mutex // guards cells
	cells := make(map[string]string)
	t.Run("plays", func(t *testing.T) {
		for _, p := range permits.Plays() {
			t.Run(p.Name, func(t *testing.T) {
				t.Parallel()
				own, err := p.Run(t.Context(), t, permits.Holdfast())
				if err != nil || own.Lost > 0 {
					t.Errorf("holdfast: %+v, %v", own, err)
				}
				other, err := p.Run(t.Context(), t, redissonPermits(t, version, referee))
				if err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				defer mu.Unlock()
				cells[p.Name] = fmt.Sprintf("| %s | %v | %v |\n", p.Name, own, other)
			})
		}
	})
	var table strings.Builder
	fmt.Fprintf(&table, "| fault | holdfast | Redisson %s |\n| --- | --- | --- |\n", version)
	for _, p := range permits.Plays() {
		table.WriteString(cells[p.Name])
	}
	t.Logf("\n%s", &table)
}

// redissonPermits is an RPermitExpirableSemaphore, each process in a JVM of its own. All set the number of permits at first,
// as its documentation says.
func redissonPermits(t *testing.T, version string, referee *testkit.Server) permits.Contestant {
	return permits.Contestant{Name: "Redisson " + version, Open: func(c permits.Config) (permits.Process, error) {
		p := &place{"single", c.Addr, nil, referee}
		q := p.java(t, version, long)
		arguments := append(as("semaphore", c.Name), "n", c.N, "lease", c.TTL.Milliseconds())
		q.must("main", "setpermits", arguments...)
		return &remotePermits{q, arguments, c.TTL}, nil
	}}
}

// remotePermits are the permits of a process in Java.
type remotePermits struct {
	party     *party
	arguments []any
	lease     time.Duration
}

func (r *remotePermits) Try(_ context.Context, caller int) (permits.Permit, error) {
	return r.ask(caller, "trylock")
}

func (r *remotePermits) Acquire(_ context.Context, caller int) (permits.Permit, error) {
	return r.ask(caller, "lock")
}

func (r *remotePermits) ask(caller int, verb string) (permits.Permit, error) {
	asked := time.Now()
	a := r.party.do(fmt.Sprint(caller), verb, r.arguments...)
	switch {
	case a.Failed:
		return nil, errors.New(a.Value)
	case a.Value == "null":
		return nil, nil
	}
	return &remotePermit{r, caller, a.Value, asked.Add(r.lease)}, nil
}

func (r *remotePermits) Close() error {
	r.party.kill()
	return nil
}

// remotePermit is valid for its lease, since Redisson tells no loss.
type remotePermit struct {
	of     *remotePermits
	caller int
	id     string
	until  time.Time
}

func (p *remotePermit) Valid() bool { return time.Now().Before(p.until) }

func (p *remotePermit) Release(context.Context) error {
	arguments := append(slices.Clone(p.of.arguments), "id", p.id)
	if a := p.of.party.do(fmt.Sprint(p.caller), "unlock", arguments...); a.Failed {
		return errors.New(a.Value)
	}
	return nil
}
