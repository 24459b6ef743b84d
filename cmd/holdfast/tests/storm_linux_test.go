package holdfast_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// rounds is how often TestStorm injects each fault; "make -C lab commands" measures with more.
var rounds = flag.Int("rounds", 1, "how often TestStorm injects each fault")

// stormTTL is the TTL of the locks in the chaos run. It is long by default, because KILL takes long on a machine that is busy with
// other tests.
var stormTTL = flag.Duration("storm-ttl", 4*time.Second, "TTL of the locks in TestStorm")

// outage returns how long a fault lasts: the lock has expired before it ends.
func outage() time.Duration { return *stormTTL * 3 / 2 }

// A fault breaks something while a host runs its command.
type fault struct {
	inject func(s *storm, h *host, p processes)
	forks  bool // the command leaves a process behind
	may    bool // overlaps are not excluded: docs/command.md says so
}

// pause stops processes for the outage. All of them get CONT, also those that have been killed meanwhile.
func pause(pids ...int) {
	send(syscall.SIGSTOP, pids...)
	time.Sleep(outage())
	send(syscall.SIGCONT, pids...)
}

var faults = map[string]fault{
	"`kill -9` of holdfast":                      {forks: true, inject: func(_ *storm, _ *host, p processes) { send(syscall.SIGKILL, p.parent) }},
	"`kill -9` of its supervisor":                {forks: true, inject: func(_ *storm, _ *host, p processes) { send(syscall.SIGKILL, p.supervisor) }},
	"`kill -9` of the command":                   {forks: true, inject: func(_ *storm, _ *host, p processes) { send(syscall.SIGKILL, p.command) }},
	"`kill -9` of both, holdfast and supervisor": {inject: func(_ *storm, _ *host, p processes) { send(syscall.SIGKILL, p.parent, p.supervisor) }},
	"holdfast stopped":                           {forks: true, inject: func(_ *storm, _ *host, p processes) { pause(p.parent) }},
	"its supervisor stopped":                     {forks: true, inject: func(_ *storm, _ *host, p processes) { pause(p.supervisor) }},
	"all stopped, as a laptop that is closed":    {may: true, inject: func(_ *storm, _ *host, p processes) { pause(p.parent, p.supervisor, p.command) }},
	"both stopped, but not the command":          {may: true, inject: func(_ *storm, _ *host, p processes) { pause(p.parent, p.supervisor) }},
	"Redis frozen": {forks: true, inject: func(s *storm, _ *host, _ processes) {
		s.server.Pause()
		time.Sleep(outage())
		s.server.Resume()
	}},
	"Redis cut off from this host": {forks: true, inject: func(_ *storm, h *host, _ processes) {
		h.relay.Drop(testkit.Both)
		time.Sleep(outage())
		h.relay.Heal()
	}},
	"Redis killed, restarted at once": {forks: true, inject: func(s *storm, _ *host, _ processes) { s.server.Restart() }},
	"Redis killed, restarted later": {forks: true, inject: func(s *storm, _ *host, _ processes) {
		s.server.Kill()
		time.Sleep(outage())
		s.server.Restart()
	}},
}

// storm are three hosts that contend for one lock.
type storm struct {
	server *testkit.Server
	file   string // which commands lock by flock(2): the referee
	hosts  []*host

	mu       sync.Mutex
	statuses map[int]int // how often a run has ended with each status; guarded by mu
}

// host runs the program again and again.
type host struct {
	relay *testkit.Relay

	mu     sync.Mutex
	parent int // process id, 0 before the first; guarded by mu
}

// script takes the lock of the referee and works. Its processes keep the lock of the referee until all have ended.
func (s *storm) script(forks bool) []string {
	work := []string{"0.05", "0.3", fmt.Sprint(2 * stormTTL.Seconds())}[rand.IntN(3)]
	if !forks {
		return []string{"flock", "-n", "-F", "-E", fmt.Sprint(overlapStatus), s.file, "sleep", work}
	}
	return []string{"sh", "-c", fmt.Sprintf(
		"exec 9>>%s; flock -n 9 || exit %d; setsid sleep 60 & exec sleep %s", s.file, overlapStatus, work)}
}

// work runs the program until ctx ends.
func (s *storm) work(ctx context.Context, t *testing.T, h *host, forks bool) {
	for ctx.Err() == nil {
		args := append([]string{"exec", "--ttl", stormTTL.String(), "n", "--"}, s.script(forks)...)
		cmd := command(t, "redis://"+h.relay.Addr(), args...)
		if err := cmd.Start(); err != nil {
			t.Error(err)
			return
		}
		h.mu.Lock()
		h.parent = cmd.Process.Pid
		h.mu.Unlock()
		stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
		_ = cmd.Wait()
		stop()
		s.count(cmd.ProcessState.ExitCode())
	}
}

// holder waits until a host runs its command.
func (s *storm) holder(t *testing.T) (h *host, p processes) {
	testkit.Eventually(t, within, "a host to run its command", func() (running bool) {
		for _, h = range s.hosts {
			h.mu.Lock()
			parent := h.parent
			h.mu.Unlock()
			if parent != 0 {
				if p, running = processesOf(parent); running {
					return true
				}
			}
		}
		return false
	})
	return h, p
}

// TestStorm lets three hosts contend for one lock while a fault breaks the program or Redis. The referee counts commands
// that begin while another one runs.
func TestStorm(t *testing.T) {
	t.Parallel()
	slots := make(chan struct{}, 3) // that many at a time: a host that is overloaded is a host that is paused
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			s := newStorm(t)
			s.rage(t, faults[name])
			t.Logf("| %s | %d | %d | %d | %s |", name, *rounds, s.total(), s.statuses[overlapStatus], s.ends())
			if s.statuses[overlapStatus] > 0 && !faults[name].may {
				t.Errorf("%d overlaps", s.statuses[overlapStatus])
			}
		})
	}
}

// TestStormControl shows that the referee finds overlaps: the same work under a key of SET NX, which nothing renews, without
// any fault.
func TestStormControl(t *testing.T) {
	t.Parallel()
	s := newStorm(t)
	const script = `[ "$(redis-cli -s "$0" SET n $$ NX PX "$1")" = OK ] || exit 75; shift; "$@"; s=$?; redis-cli -s "$0" DEL n; exit $s`
	ttl := fmt.Sprint(stormTTL.Milliseconds())
	runs := 0
	testkit.Eventually(t, within+time.Duration(*rounds)*4*(*stormTTL), "an overlap", func() bool {
		var all sync.WaitGroup
		ctx, stop := context.WithTimeout(t.Context(), 3*(*stormTTL))
		defer stop()
		for range s.hosts {
			all.Go(func() {
				for ctx.Err() == nil {
					cmd := exec.Command("sh", append([]string{"-c", script, s.server.Addr(), ttl}, s.script(false)...)...)
					_ = cmd.Run()
					s.count(cmd.ProcessState.ExitCode())
				}
			})
		}
		all.Wait()
		runs++
		return s.statuses[overlapStatus] > 0 && runs >= *rounds
	})
	t.Logf("| baseline: `SET NX` in a shell, no fault | %d | %d | %d | %s |", *rounds, s.total()-s.statuses[75], s.statuses[overlapStatus], s.ends())
}

// count counts an exit status.
func (s *storm) count(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statuses[status]++
}

func newStorm(t *testing.T) *storm {
	s := &storm{
		server: testkit.Start(t, testkit.AOF()), file: filepath.Join(t.TempDir(), "referee"),
		statuses: make(map[int]int),
	}
	for range 3 {
		s.hosts = append(s.hosts, &host{relay: s.server.Relay()})
	}
	return s
}

// rage injects a fault again and again.
func (s *storm) rage(t *testing.T, f fault) {
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for _, h := range s.hosts {
		all.Go(func() { s.work(ctx, t, h, f.forks) })
	}
	for range *rounds {
		h, p := s.holder(t)
		time.Sleep(rand.N(*stormTTL / 4)) // anywhere in the work
		f.inject(s, h, p)
		// The next round waits for a host that runs its command, so the lock can be had again.
		testkit.Eventually(t, within, "the command to end", func() bool { return !alive(p.command) })
	}
}

func (s *storm) total() (n int) {
	for _, count := range s.statuses {
		n += count
	}
	return n
}

// ends lists the exit statuses, without the overlaps.
func (s *storm) ends() string {
	var list []string
	for _, status := range slices.Sorted(maps.Keys(s.statuses)) {
		if status != overlapStatus {
			list = append(list, fmt.Sprintf("%d: %d", status, s.statuses[status]))
		}
	}
	return strings.Join(list, ", ")
}

// overhead is how often TestOverhead runs each command; 0 skips it.
var overhead = flag.Int("overhead", 0, "how often TestOverhead runs each command")

// TestOverhead measures what the program adds to a command, beside flock(1) and the least that a shell can do with Redis.
func TestOverhead(t *testing.T) {
	if *overhead == 0 {
		t.Skip("measures only with -overhead")
	}
	srv := testkit.Start(t)
	program := filepath.Join(t.TempDir(), "holdfast")
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "..").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	shell := fmt.Sprintf(`[ "$(redis-cli -s %[1]s SET n $$ NX PX 30000)" = OK ] && { true; redis-cli -s %[1]s DEL n >/dev/null; }`, srv.Addr())
	for _, c := range []struct {
		name string
		args []string
	}{
		{"`true` alone", []string{"true"}},
		{"`flock FILE true`, one host", []string{"flock", filepath.Join(t.TempDir(), "file"), "true"}},
		{"`SET NX`, `true`, `DEL` with redis-cli in sh, without renewal", []string{"sh", "-c", shell}},
		{"`holdfast exec n -- true`", []string{program, "exec", "n", "--", "true"}},
	} {
		t.Logf("| %s | %.1f |", c.name, float64(median(t, urlOf(srv), c.args))/float64(time.Millisecond))
	}
	cmd := exec.Command(program, "exec", "n", "--", "sleep", "60")
	cmd.Env = append(os.Environ(), "HOLDFAST_REDIS="+urlOf(srv))
	start(t, cmd)
	p := awaitCommand(t, cmd.Process.Pid)
	t.Logf("memory while the command runs: parent %s, supervisor %s; binary %.1f MB", resident(p.parent), resident(p.supervisor), float64(info.Size())/1e6)
}

// median returns the median time of a command.
func median(t *testing.T, url string, args []string) time.Duration {
	t.Helper()
	var times []time.Duration
	for range *overhead {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "HOLDFAST_REDIS="+url)
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v, %s", args, err, out)
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// resident returns the memory of a process that is its own, and all that is mapped.
func resident(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	fields := make(map[string]string)
	for line := range strings.SplitSeq(string(text), "\n") {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	return fields["RssAnon"] + " (" + fields["VmRSS"] + " with files)"
}
