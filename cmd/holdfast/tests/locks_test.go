package holdfast_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
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
	run(t, url, "unlock", "order:42", "--yes", "--token", "7").want(t, 1, "", "its holders have changed")
	run(t, url, "unlock", "order:42", "--yes", "--token", "0").want(t, 64, "", "no holder has such a token")
	run(t, url, "unlock", "order:42", "--yes", "--token=-1").want(t, 64, "", "no holder has such a token")
	run(t, url, "unlock", "order:42", "--yes").want(t, 0, "", "")
	run(t, url, "unlock", "order:42", "--yes").want(t, 1, "", "is free")
	run(t, url, "show", "order:42").want(t, 0, "free", "")
}

// TestListOfRedisson: ls marks the lock of a Redisson client, in its table and in JSON, and no other one.
func TestListOfRedisson(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	rdb := srv.Client()
	if err := rdb.HSet(t.Context(), "java", "5a8ba431-bd23-4fd7-8d0b-3f4c8ae4b1c5:54", 1).Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.PExpire(t.Context(), "java", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	run(t, urlOf(srv), "ls", "--no-prefix").want(t, 0, "redisson", "")
	run(t, urlOf(srv), "ls", "--no-prefix", "--json").want(t, 0, `"mode":"mutex","foreign":true,`, "")
	if _, err := newLocks(t, srv).Mutex("go").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := run(t, urlOf(srv), "ls", "--json"); !strings.Contains(got.stdout, `"mode":"mutex"`) || strings.Contains(got.stdout, "foreign") {
		t.Errorf("%+v", got)
	}
}

// TestUnlockOfRedisson: --owner takes the lock of a Redisson client from the owner that show prints, and from no other one. Of several
// readers, none is taken alone.
func TestUnlockOfRedisson(t *testing.T) {
	t.Parallel()
	const ada, bob = "5a8ba431-bd23-4fd7-8d0b-3f4c8ae4b1c5:54", "f1e3a2d4-bd23-4fd7-8d0b-3f4c8ae4b1c5:57"
	for name, fields := range map[string][]string{
		"mutex":   {ada, "1"},
		"writer":  {"mode", "write", ada + ":write", "1"},
		"reader":  {"mode", "read", ada, "1"},
		"readers": {"mode", "read", ada, "1", bob, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := testkit.Start(t)
			rdb, url := srv.Client(), urlOf(srv)
			if err := rdb.HSet(t.Context(), "lock:java", fields).Err(); err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"lock:java", "{lock:java}:" + ada + ":rwlock_timeout:1"} {
				if strings.Contains(key, "timeout") && name != "reader" && name != "readers" {
					continue
				}
				if strings.Contains(key, "timeout") {
					if err := rdb.Set(t.Context(), key, 1, time.Hour).Err(); err != nil {
						t.Fatal(err)
					}
				}
				if err := rdb.PExpire(t.Context(), key, time.Hour).Err(); err != nil {
					t.Fatal(err)
				}
			}
			owner := ada
			if name == "writer" {
				owner += ":write"
			}
			run(t, url, "show", "java").want(t, 0, owner, "")
			run(t, url, "unlock", "java", "--yes", "--token", "0").want(t, 64, "", "use --owner")
			run(t, url, "unlock", "java", "--yes", "--owner", "other:1").want(t, 1, "", "nothing released")
			if name == "readers" {
				run(t, url, "unlock", "java", "--yes", "--owner", owner).want(t, 64, "", "has 2 readers of Redisson")
				run(t, url, "show", "java").want(t, 0, bob, "")
				run(t, url, "unlock", "java", "--yes").want(t, 0, "", "")
			} else {
				run(t, url, "unlock", "java", "--yes", "--owner", owner).want(t, 0, "", "")
			}
			run(t, url, "show", "java").want(t, 0, "free", "")
		})
	}
}

// TestListOfALeader: ls marks the lock of a leader, in its table and in JSON.
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
	const nothing = ", no lock is held and no record exists: set the prefix of your services with --prefix or HOLDFAST_PREFIX, or Redis has lost its data\n"
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
	run(t, url, "once", "charge:8 ", "--", "true")
	run(t, url, "records").want(t, 0, `"charge:8 "`, "") // not as charge:8
	run(t, url, "records", "--state", "unkown").want(t, 64, "", "--state must be one of")
}

// TestListOfWaiters: WAITERS has the callers in a queue, and says that callers of another lock may be more than the processes.
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

// TestCron: commands for jobs refuse a job that no host has.
func TestCron(t *testing.T) {
	t.Parallel()
	url := urlOf(testkit.Start(t))
	run(t, url, "cron", "ls").want(t, 0, "JOB", "set the prefix of your services with --prefix or HOLDFAST_PREFIX, or Redis has lost its data")
	run(t, url, "cron", "ls", "--json").want(t, 0, "", "set the prefix of your services with --prefix or HOLDFAST_PREFIX")
	for _, verb := range []string{"pause", "resume", "history"} {
		run(t, url, "cron", verb, "report").want(t, 1, "", `unknown job "report": holdfast cron ls`)
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
		_, err := cronlock.Job(locks, "nightly").Info(t.Context())
		return err == nil
	})
	wantMatch(t, run(t, url, "cron", "ls").stdout, `nightly +0 3 29 2 \* +UTC +- +20\d\d-\d\d-\d\d \d\d:\d\d:00 +0 +- `)
	run(t, url, "cron", "ls").want(t, 0, "", `prefix "lock:" on `)
	run(t, url, "cron", "ls", "--prefix", "other:").want(t, 0, "JOB", "set the prefix of your services")
	wantMatch(t, run(t, url, "cron", "ls", "--json").stdout,
		`^\{"name":"nightly","service":"[^"]*","spec":"0 3 29 2 \*","zone":"UTC","paused":false,"next_tick":"[^"]*","missed":0,"registered":"[^"]*"\}\n$`)
	run(t, url, "cron", "pause", "nightly").want(t, 64, "", "confirm with --yes")
	wantMatch(t, run(t, url, "cron", "ls", "--json").stdout, `"paused":false`)
	finish(t, with(command(t, url, "cron", "pause", "nightly", "--yes"), "SUDO_USER=ada")).want(t, 0, "", "")
	wantMatch(t, run(t, url, "cron", "ls", "--json").stdout, `"paused":true,"paused_by":"ada@[^"]*","paused_at":"20`)
	wantMatch(t, run(t, url, "cron", "ls").stdout, `nightly .* by ada@\S+ 20\d\d-`)
	run(t, url, "cron", "resume", "nightly").want(t, 64, "", "confirm with --yes")
	run(t, url, "cron", "resume", "nightly", "--yes").want(t, 0, "", "")
	wantMatch(t, run(t, url, "cron", "ls").stdout, `nightly .* 0 +- `)
}

// TestCronHistory: the JSON of the runs of a job has the same form as the JSON of other commands.
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
	if _, err := cronlock.AddFunc(scheduler, locks, "0 3 29 2 *", "hangs", func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	hanging := make(chan error, 1)
	go func() { hanging <- cronlock.Job(locks, "hangs").Run(ctx, scheduler) }()
	testkit.Eventually(t, within, "a run in progress", func() bool {
		return strings.Contains(run(t, url, "cron", "history", "hangs").stdout, "running")
	})
	wantMatch(t, run(t, url, "cron", "history", "hangs").stdout, `running +- +1 `)
	end()
	<-hanging
	wantMatch(t, run(t, url, "cron", "history", "hangs").stdout, `interrupted +\d+\.\ds +1 `)
	got := run(t, url, "cron", "history", "often", "--json").stdout
	wantMatch(t, got, `(?m)^\{"job":"often","tick":"[^"]*","outcome":"success","attempt":1,"token":\d+,"started":"[^"]*","took_ms":\d+,"replica":"[^"]*","service":"[^"]*"\}$`)
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
	run(t, "redis://"+group.Servers[1].Addr(), "exec", "n", "--", "true").want(t, 69, "", "redis+sentinel://HOST:26379/MASTER")
	run(t, "redis+sentinel://"+group.Sentinels[0].Addr()+"/other", "ls").want(t, 69, "", "does a master have this name?")
	url = "redis+sentinel://" + group.Sentinels[0].Addr() + "/" + testkit.MasterName
	run(t, url, "exec", "n", "--", "echo", "ran").want(t, 0, "ran", "")
}

// TestUnlockWithAnotherToken: the holder of a Mutex may have a token that Redis has not, so unlock says which token and owner Redis has.
func TestUnlockWithAnotherToken(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	lease, err := newLocks(t, srv).Mutex("n").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held := fmt.Sprintf("held with token %d by %s. A Mutex that is handed over", lease.Token(), lease.Owner())
	run(t, urlOf(srv), "unlock", "n", "--yes", "--token", "7").want(t, 1, "", held)
	run(t, urlOf(srv), "unlock", "n", "--yes", "--owner", lease.Owner()).want(t, 0, "", "")
}

// TestUnlockOfAnEarlierHolder: unlock that names an earlier holder unlocks nothing and exits with 1, also as JSON.
func TestUnlockOfAnEarlierHolder(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	lease, err := newLocks(t, srv).Fair("n").Lock(t.Context(), core.WithOwner("o"))
	if err != nil {
		t.Fatal(err)
	}
	for _, holder := range [][]string{{"--token", "7"}, {"--owner", "other"}} {
		run(t, urlOf(srv), append([]string{"unlock", "n", "--yes"}, holder...)...).want(t, 1, "", "its holders have changed")
		asJSON := run(t, urlOf(srv), append([]string{"unlock", "n", "--yes", "--json"}, holder...)...)
		asJSON.want(t, 1, asJSON.stdout, "its holders have changed")
		if !strings.Contains(asJSON.stdout, `"unlocked":false`) {
			t.Errorf("%v: %s", holder, asJSON.stdout)
		}
	}
	if err := lease.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}
