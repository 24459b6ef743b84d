package holdfast_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/middleware"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestListAndUnlock: an operator finds a lock, and takes it away, but not from a later holder.
func TestListAndUnlock(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	run(t, url, "ls").want(t, 0, "NAME", "")
	lease, err := locks.Fair("order:42").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(t, url, "ls", "order:").want(t, 0, "order:42", "")
	if got := run(t, url, "ls", "user:"); strings.Contains(got.stdout, "order") {
		t.Errorf("ls of other names: %+v", got)
	}
	run(t, url, "show", "order:42").want(t, 0, lease.Owner(), "")
	var shown struct {
		Name    string
		Mode    string
		Holders []struct {
			Owner string
			Token int64
		}
	}
	for _, args := range [][]string{{"show", "--json", "order:42"}, {"ls", "--json"}} {
		err := json.Unmarshal([]byte(run(t, url, args...).stdout), &shown)
		if err != nil || shown.Name != "order:42" || shown.Mode != "fair" || len(shown.Holders) != 1 || shown.Holders[0].Token != lease.Token() {
			t.Errorf("%v: %+v, %v", args, shown, err)
		}
	}
	run(t, url, "unlock", "order:42").want(t, 64, "", "--yes")
	run(t, url, "unlock", "order:42", "--yes", "--token", "7").want(t, 1, "", "not held so")
	run(t, url, "unlock", "order:42", "--yes").want(t, 0, "", "")
	run(t, url, "unlock", "order:42", "--yes").want(t, 1, "", "is free")
	run(t, url, "show", "order:42").want(t, 0, "free", "")
}

// TestListOfALeader: ls tells that a lock is that of a leader, in its table and in JSON.
func TestListOfALeader(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	if _, err := locks.Election("scheduler", core.WithValue("host-1:8080")).Campaign(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, url, "ls").want(t, 0, "election", "")
	run(t, url, "ls", "--json").want(t, 0, `"mode":"election"`, "")
	run(t, url, "show", "scheduler").want(t, 0, "election scheduler, led\n", "")
	run(t, url, "show", "scheduler").want(t, 0, "leader   host-1:8080\n", "")
	run(t, url, "show", "--json", "scheduler").want(t, 0, `"mode":"election"`, "")
	if _, err := locks.Election("silent").Campaign(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, url, "show", "silent").want(t, 0, "election silent, led\n", "")
	if _, err := locks.Fair("queue").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, url, "show", "queue").want(t, 0, "lock     queue, fair\n", "")
}

// TestWhereItLooked: ls, show and records say under which prefix of which server they have looked, and whether that has nothing at
// all. Programs that read standard output, or JSON, get none of it.
func TestWhereItLooked(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	where := fmt.Sprintf(`holdfast: prefix "lock:" on unix://%s`, srv.Addr())
	const nothing = ", no lock is held and no record exists: set the prefix of your services with --prefix or HOLDFAST_PREFIX\n"
	for _, args := range []string{"ls", "ls --json", "records", "records --state unknown", "show n", "ls order:"} {
		if got := run(t, url, strings.Fields(args)...); got.status != 0 || got.stderr != where+nothing {
			t.Errorf("%s of nothing: %+v", args, got)
		}
	}
	if _, err := locks.Mutex("order:42").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	for args, says := range map[string]string{
		"ls":                      "\n",
		"ls order:":               "\n",
		"ls user:":                ", no lock is held whose name begins with \"user:\"\n",
		"ls --json":               "",
		"show order:42":           "\n",
		"show order:42 --json":    "",
		"show user:7":             ", no lock of this name is held, and it has no record\n",
		"records":                 ", no record exists\n",
		"records charge:":         ", no record exists whose key begins with \"charge:\"\n",
		"records --state unknown": ", no unknown record exists\n",
	} {
		got := run(t, url, strings.Fields(args)...)
		if want := where + says; got.status != 0 || says == "" && got.stderr != "" || says != "" && got.stderr != want {
			t.Errorf("%s: %+v, want %q", args, got, want)
		}
		if strings.Contains(got.stdout, "prefix") {
			t.Errorf("%s prints %q", args, got.stdout)
		}
	}
	run(t, url, "--prefix", "other:", "ls").want(t, 0, "NAME", `prefix "other:" on unix://`+srv.Addr()+nothing)
	run(t, url, "once", "charge:7", "--", "true")
	run(t, url, "records").want(t, 0, "charge:7", where+"\n")
	run(t, url, "records", "--state", "unkown").want(t, 64, "", "--state must be one of")
}

// TestShowRunning: show has the state, the process, the beginning and the rest of the lease of a run in progress.
func TestShowRunning(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	attempt, err := locks.Once("charge:7", core.WithTTL(time.Hour), core.WithNote("by hand"), core.WithLabel("POST /charges")).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	process := regexp.QuoteMeta(fmt.Sprintf("%s:%d", host, os.Getpid()))
	shown := run(t, urlOf(srv), "show", "charge:7").stdout
	wantMatch(t, shown, `RECORD +ATTEMPT +TOKEN +BEGAN +LEASE +KEPT FOR +PROCESS +LABEL +NOTE`)
	wantMatch(t, shown, fmt.Sprintf(`running +1 +%d +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d, \S+ ago +(59m\d\ds|1h00m) .* %s +POST /charges +by hand`, attempt.Token(), process))
	listed := run(t, urlOf(srv), "records", "--state", "running").stdout
	wantMatch(t, listed, fmt.Sprintf(`charge:7 +running .* %s +POST /charges +by hand`, process))
	run(t, urlOf(srv), "records", "--json").want(t, 0, `"label":"POST /charges"`, "")
	run(t, urlOf(srv), "show", "--json", "charge:7").want(t, 0, `"instance":"`, "")
	if got := run(t, urlOf(srv), "records", "--state", "unknown"); strings.Contains(got.stdout, "charge") {
		t.Errorf("%+v", got)
	}
}

// TestListOfWaiters: WAITERS has the callers in a queue, and says that those of another lock may be more than the processes.
func TestListOfWaiters(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		callers.Wait()
	})
	for name, strategy := range map[string]core.Strategy{"queued": locks.Fair, "listening": locks.Mutex, "free of waiters": locks.Mutex} {
		lease, err := strategy(name).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lease.Unlock(context.Background()) })
		if name == "free of waiters" {
			continue
		}
		waiting := newLocks(t, srv)
		for range 3 {
			callers.Go(func() {
				_, _ = map[string]core.Strategy{"queued": waiting.Fair, "listening": waiting.Mutex}[name](name).Lock(ctx)
			})
		}
	}
	for _, row := range []string{`queued +fair +\S+ +\S+ +3 `, `listening +mutex +\S+ +\S+ +1\+ `, `free of waiters +mutex +\S+ +\S+ +0 `} {
		testkit.Eventually(t, within, row, func() bool { return regexp.MustCompile(row).MatchString(run(t, urlOf(srv), "ls").stdout) })
	}
}

// TestRecords: an operator lists, resolves and forgets what once has recorded.
func TestRecords(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	attempt, err := locks.Once("charge:7").Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := attempt.Hold(t.Context(), "lost connection"); err != nil {
		t.Fatal(err)
	}
	run(t, url, "records", "charge:").want(t, 0, "lost connection", "")
	run(t, url, "records", "--json", "--state", "unknown").want(t, 0, `"state":"unknown"`, "")
	if got := run(t, url, "records", "--json", "--state", "completed"); got.stdout != "" {
		t.Errorf("%+v", got)
	}
	run(t, url, "resolve", "charge:7").want(t, 64, "", "--yes")
	run(t, url, "resolve", "charge:7", "--yes").want(t, 0, "", "")
	run(t, url, "once", "charge:7", "--replay", "--", "echo", "ran").want(t, 0, "", "")
	run(t, url, "show", "charge:7").want(t, 0, "completed", "")
	run(t, url, "forget", "charge:7", "--yes").want(t, 0, "", "")
	run(t, url, "once", "charge:7", "--", "echo", "ran").want(t, 0, "ran", "")
}

// TestNothingToDecide: resolve makes no record and changes none that is completed, and forget of no record says so.
func TestNothingToDecide(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	run(t, url, "resolve", "none", "--yes").want(t, 1, "", "no record")
	run(t, url, "forget", "none", "--yes").want(t, 1, "", "no record")
	if record, err := locks.Once("none").Peek(t.Context()); err != nil || record.State != core.StateNone {
		t.Errorf("%+v, %v", record, err)
	}
	run(t, url, "once", "done", "--replay", "--", "echo", "first").want(t, 0, "first", "")
	run(t, url, "resolve", "done", "--yes").want(t, 1, "", "completed before")
	run(t, url, "once", "done", "--replay", "--", "echo", "second").want(t, 0, "first", "")
}

// TestResolveKeeps: resolve keeps a record as long as before, or longer.
func TestResolveKeeps(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	const year = 365 * 24 * time.Hour
	for flags, least := range map[string]time.Duration{"": year / 2, "--retention 1h": year / 2, "--retention 17520h": year + 1} {
		once := locks.Once("k", core.WithRetention(year))
		attempt, err := once.Begin(t.Context())
		if err == nil {
			err = attempt.Hold(t.Context(), "lost")
		}
		if err != nil {
			t.Fatal(err)
		}
		run(t, url, append([]string{"resolve", "k", "--yes"}, strings.Fields(flags)...)...).want(t, 0, "", "")
		record, err := once.Peek(t.Context())
		if err != nil || record.State != core.StateCompleted || record.Retention < least {
			t.Errorf("%q: %+v, %v", flags, record, err)
		}
		run(t, url, "forget", "k", "--yes").want(t, 0, "", "")
	}
}

// TestForgetInProgress: the record of a run in progress is deleted by force only, because another run could begin beside it.
func TestForgetInProgress(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, once := urlOf(srv), newLocks(t, srv).Once("k")
	if _, err := once.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, url, "forget", "k", "--yes").want(t, 75, "", "--force")
	run(t, url, "resolve", "k", "--yes").want(t, 75, "", "in progress")
	if record, err := once.Peek(t.Context()); err != nil || record.State != core.StateRunning {
		t.Errorf("%+v, %v", record, err)
	}
	run(t, url, "forget", "k", "--yes", "--force").want(t, 0, "", "")
	run(t, url, "once", "k", "--", "echo", "ran").want(t, 0, "ran", "")
}

// TestNames: digests of the log and keys of requests lead to names.
func TestNames(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	if _, err := locks.Mutex("order:42").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	digest := locks.Digest("order:42")
	run(t, url, "digest", digest).want(t, 0, "lock order:42\n", "")
	run(t, url, "digest", "--of", "order:42").want(t, 0, digest, "")
	run(t, url, "digest", "--of", "--json", "order:42").want(t, 0, `"kind":"lock"`, "")
	run(t, url, "once", "charge:7", "--", "true").want(t, 0, "", "")
	run(t, url, "digest", locks.Once("charge:7").Digest()).want(t, 0, "once charge:7\n", "")
	for _, text := range []string{"lock=" + digest, `"lock":"` + digest + `",`, "digest: " + strings.ToUpper(digest), " " + digest + " "} {
		run(t, url, "digest", text).want(t, 0, "lock order:42\n", "") // as in a line of the log
	}
	run(t, url, "digest", "--json", "lock="+digest).want(t, 0, `"digest":"`+digest+`"`, "")
	run(t, url, "digest", "lock=order:42").want(t, 64, "", "digest")
	run(t, url, "digest", "00000000").want(t, 1, "", "no lock")
	for _, hash := range []string{strings.Repeat("k", 43), "-v" + strings.Repeat("k", 41), "--" + strings.Repeat("k", 41)} { // key_hash of a guard
		for _, name := range []string{"http:" + hash, "http:{scope}:" + hash} {
			if _, err := locks.Once(name).Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := locks.Mutex("http:" + hash).Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		run(t, url, "digest", "key_hash="+hash).want(t, 0, "lock http:"+hash+"\n", "")
		got := run(t, url, "digest", hash)
		for _, line := range []string{"lock http:" + hash + "\n", "once http:" + hash + "\n", "once http:{scope}:" + hash + "\n"} {
			got.want(t, 0, line, "")
		}
	}
	run(t, url, "digest", strings.Repeat("z", 43)).want(t, 1, "", "no lock")
	route, err := middleware.RouteKey("POST", "/orders")
	if err != nil {
		t.Fatal(err)
	}
	user, err := middleware.PrincipalKey("ada")
	if err != nil {
		t.Fatal(err)
	}
	key, err := middleware.Join(route, user)
	if err != nil {
		t.Fatal(err)
	}
	run(t, url, "http-key", "POST", "/orders", "--user", "ada").want(t, 0, key.Name(nil)+"\n", "")
	cmd := command(t, url, "http-key", "POST", "/orders", "--user", "ada")
	cmd.Env = append(cmd.Env, "HOLDFAST_KEY_SECRET=0123456789abcdef")
	finish(t, cmd).want(t, 0, key.Name([]byte("0123456789abcdef"))+"\n", "")
	run(t, url, "http-key").want(t, 64, "", "no parts")
}

// TestHTTPKeyRefuses: what no guard makes has no name. The test of the guards' own names is beside those of gin.
func TestHTTPKeyRefuses(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	for _, test := range []struct{ args, says string }{
		{"POST /orders --part tenant=7", "no key function makes this"},
		{"POST /orders --part path=7", "written in another way"},
		{"POST /orders --part user:ada=7", "written in another way"},
		{"POST /orders --part unscoped=7", "written in another way"},
		{"POST /cart/{id} --part path:event=7", `has no wildcard of this name, but: ["id"]`},
		{"POST /cart/:id --part path:event=7", `has no wildcard of this name, but: ["id"]`},
		{"--part path:id=7", "the route is missing"},
		{"--part route", "the method and the route are missing"},
		{"POST", "the route of POST is missing"},
		{"post /orders", "upper case"},
		{"POST orders", "no slash"},
		{"/orders --user ada", "the method of the route /orders is missing"},
		{"/orders", "the method of the route /orders is missing"},
		{"/cart/{id} --user ada --part query:cart=7", "the method of the route /cart/{id} is missing"},
		{"/cart/:id --user ada --part path:id=7 --part route", "the method and the route are missing"},
		{"POST /orders?x=1", "has a query"},
		{"POST /orders#x", "has a query"},
		{"POST /orders?x=1 --router gin", "has a query"},
		{"POST /cart/../x", `has a segment ".."`},
		{"POST /cart/%2E%2e/x --router nethttp", `has a segment ".."`},
		{"POST /cart/{id} --part path:id=..", `has a segment ".."`},
		{"POST /files/{rest...} --part path:rest=a/../b", `has a segment ".."`},
		{"/files/*rest --part path:rest=a/../b", `has a segment ".."`},
		{"--user ada --router gin", "--router gin is for a route"},
		{"POST /v1/orders:batch", "add --router"},
		{"POST /files/{rest...}", "has many paths"},
		{"POST /files/*rest", "has many paths"},
		{"--user ada --idempotency-key a,b", "visible ASCII"},
		{"--idempotency-key k", "the scope of the guard is missing"},
		{"--part header:X-Cart=", "is empty"},
		{"--part json:/cart=null", "no key in the request"},
		{"--part json:cart=7", "does not begin with /"},
		{"--part ip=7", "unable to parse IP"},
		{"--part constant=" + strings.Repeat("x", 256), "at most 255"},
	} {
		got := run(t, url, append([]string{"http-key"}, strings.Fields(test.args)...)...)
		if got.want(t, 64, "", test.says); got.stdout != "" {
			t.Errorf("%s: printed %q", test.args, got.stdout)
		}
	}
	run(t, url, "http-key", "POST", "GET /orders").want(t, 64, "", "two methods")
	finish(t, with(command(t, url, "http-key", "--user", "ada"), "HOLDFAST_KEY_SECRET=short")).want(t, 64, "", "16 are needed")
}

// TestHTTPKeyReports: http-key says what is stored under the name, and prints the name although Redis does not answer.
func TestHTTPKeyReports(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	args := []string{"http-key", "POST /cart/{id}", "--user", "ada", "--part", "path:id=7"}
	none := run(t, url, args...)
	none.want(t, 0, "http:", `no record and no held lock has this name. It is that of Keys(ByRoute(), ByPrincipal(…), ByPathValue("id"))`)
	name := strings.TrimSpace(none.stdout)
	if gin := run(t, url, "http-key", "POST", "/cart/:id", "--part", "route", "--user", "ada", "--part", "path:id=7"); gin.stdout == none.stdout {
		t.Error("another order of the parts makes the same name")
	}
	run(t, url, "http-key", "POST", "/cart/:id", "--user", "ada", "--part", "path:id=7").want(t, 0, name, "ByParam")
	if _, err := locks.Mutex(name).Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, url, args...).want(t, 0, name, "a lock with this name is held (mutex)")
	run(t, url, append(args, "--json")...).want(t, 0, `"lock":"mutex","record":"none"`, "")
	if _, err := locks.Once(name).Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, url, args...).want(t, 0, name, "a record has this name: running, attempt 1, begun at ")
	run(t, "redis://127.0.0.1:1", args...).want(t, 69, name+"\n", "it is not known whether a record or a lock has this name (--offline does not ask)")
	if got := run(t, "redis://127.0.0.1:1", append(args, "--offline")...); got != (result{stdout: name + "\n"}) {
		t.Errorf("offline: %+v", got)
	}
}

// TestCron: commands for jobs refuse a job that no host has.
func TestCron(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	run(t, url, "cron", "ls").want(t, 0, "JOB", "set the prefix of your services with --prefix or HOLDFAST_PREFIX")
	run(t, url, "cron", "ls", "--json").want(t, 0, "", "set the prefix of your services with --prefix or HOLDFAST_PREFIX")
	for _, verb := range []string{"pause", "resume", "history"} {
		run(t, url, "cron", verb, "report").want(t, 1, "", "unknown job")
	}
}

// TestCronPause: cron ls has the next tick of a job, and who has paused it, which is the user of the command.
func TestCronPause(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	scheduler := cron.New(cron.WithLocation(time.UTC))
	if _, err := cronlock.AddFunc(scheduler, locks, "0 3 29 2 *", "nightly", func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	scheduler.Start()
	t.Cleanup(func() { <-scheduler.Stop().Done() })
	testkit.Eventually(t, within, "the job", func() bool {
		_, err := cronlock.Job(t.Context(), locks, "nightly")
		return err == nil
	})
	wantMatch(t, run(t, url, "cron", "ls").stdout, `nightly +0 3 29 2 \* +UTC +- +20\d\d-\d\d-\d\d \d\d:\d\d:00 +0 +- `)
	run(t, url, "cron", "ls").want(t, 0, "", `prefix "lock:" on `)
	run(t, url, "cron", "ls", "--prefix", "other:").want(t, 0, "JOB", "set the prefix of your services")
	wantMatch(t, run(t, url, "cron", "ls", "--json").stdout,
		`^\{"name":"nightly","service":"[^"]*","spec":"0 3 29 2 \*","zone":"UTC","paused":false,"next_tick":"[^"]*","missed":0,"registered":"[^"]*"\}\n$`)
	finish(t, with(command(t, url, "cron", "pause", "nightly"), "SUDO_USER=ada")).want(t, 0, "", "")
	wantMatch(t, run(t, url, "cron", "ls", "--json").stdout, `"paused":true,"paused_by":"ada@[^"]*","paused_at":"20`)
	wantMatch(t, run(t, url, "cron", "ls").stdout, `nightly .* by ada@\S+ 20\d\d-`)
	run(t, url, "cron", "resume", "nightly").want(t, 0, "", "")
	wantMatch(t, run(t, url, "cron", "ls").stdout, `nightly .* 0 +- `)
}

// TestCronHistory: the JSON of the runs of a job has the form of that of the other commands.
func TestCronHistory(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	scheduler := cron.New(cron.WithLocation(time.UTC))
	ran := make(chan struct{}, 100)
	if _, err := cronlock.AddFunc(scheduler, locks, "@every 1s", "often", func(context.Context) error {
		ran <- struct{}{}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	scheduler.Start()
	<-ran
	<-scheduler.Stop().Done()
	got := run(t, url, "cron", "history", "often", "--json").stdout
	wantMatch(t, got, `(?m)^\{"job":"often","tick":"[^"]*","outcome":"success","attempt":1,"token":\d+,"started":"[^"]*","took_ms":\d+,"replica":"[^"]*","service":"[^"]*"\}$`)
}

// TestPages: the completions are scripts that their shells can read, and the manual page has all commands.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := run(t, "", "completion", shell)
		script.want(t, 0, "unlock", "")
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		check := exec.Command(shell, "-n")
		check.Stdin = strings.NewReader(script.stdout)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v, %s", shell, err, out)
		}
	}
	page := run(t, "", "man").stdout
	for _, word := range []string{".TH HOLDFAST", "cron pause", "EXIT STATUS"} {
		if !strings.Contains(page, word) {
			t.Errorf("the manual page lacks %q", word)
		}
	}
	run(t, "", "--version").want(t, 0, "", "")
	run(t, "", "--help").want(t, 0, "exec", "")
}

// TestCompletes: bash completes commands, flags, behind -- files, and the names of locks, records and jobs, with colons and
// without.
func TestCompletes(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	for _, name := range []string{"order:42", "order:43", "backup", "a b"} {
		if _, err := locks.Mutex(name).Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := locks.Once("charge:7").Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	scheduler := cron.New()
	if _, err := cronlock.AddFunc(scheduler, locks, "0 3 * * *", "nightly", func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	scheduler.Start()
	t.Cleanup(func() { <-scheduler.Stop().Done() })
	testkit.Eventually(t, within, "the job", func() bool {
		jobs, err := cronlock.Jobs(t.Context(), locks)
		return err == nil && len(jobs) == 1
	})
	script := run(t, "", "completion", "bash").stdout
	bin := t.TempDir()
	program := command(t, urlOf(srv))
	if err := os.WriteFile(filepath.Join(bin, "holdfast"), []byte("#!/bin/sh\nexec "+program.Path+` "$@"`+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"holdfast un":                  "unlock",
		"holdfast cron p":              "pause",
		"holdfast exec n --tt":         "--ttl",
		"holdfast exec n -- /etc/host": "/etc/hosts",
		"holdfast show ord":            "order:42 order:43",
		"holdfast unlock order:4":      "42 43", // bash replaces only what is behind the colon
		"holdfast  watch  char":        "charge:7",
		"holdfast unlock char":         "", // a record, and no lock
		"holdfast forget charge:":      "7",
		"holdfast exec ba":             "backup",
		"holdfast unlock a":            `a\ b`,
		"holdfast cron pause ni":       "nightly",
		"holdfast show order:42 ":      "--help", // not a second name
	} {
		ask := `COMP_LINE="` + line + `"; COMP_POINT=${#COMP_LINE}; COMP_WORDS=(` + line + `); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _holdfast; echo "${COMPREPLY[*]}"`
		bash := exec.Command("bash", "-c", script+ask)
		bash.Env = append(program.Env, "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := bash.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) || want == "" && strings.TrimSpace(string(out)) != "" {
			t.Errorf("%s: %q, %v", line, out, err)
		}
	}
}

// TestConnection: the user, TLS, Sentinel and Cluster work, and a password is taken from where nobody sees it.
func TestConnection(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	if err := srv.Client().Do(t.Context(), "ACL", "SETUSER", "ada", "on", ">secret", "~*", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	if err := srv.Client().Do(t.Context(), "ACL", "SETUSER", "default", "off").Err(); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, urlOf(srv), "exec", "--redis-user", "ada", "n", "--", "true")
	cmd.Env = append(cmd.Env, "HOLDFAST_REDIS_PASSWORD=secret")
	finish(t, cmd).want(t, 0, "", "")
	run(t, urlOf(srv), "exec", "n", "--", "true").want(t, 69, "", "")

	cluster := testkit.StartCluster(t, 3)
	url := "redis+cluster://" + cluster.Masters[0].Addr() + "," + cluster.Masters[1].Addr()
	run(t, url, "exec", "n", "--", "echo", "ran").want(t, 0, "ran", "")
	group := testkit.StartSentinel(t)
	url = "redis+sentinel://" + group.Sentinels[0].Addr() + "/" + testkit.MasterName
	run(t, url, "exec", "n", "--", "echo", "ran").want(t, 0, "ran", "")
}
