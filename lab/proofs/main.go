package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// The program runs in the folder lab.
const (
	rowsDir = "proofs/rows"
	logsDir = "proofs/logs"
	page    = "RESULTS.md"
)

func main() {
	log.SetFlags(0)
	only := flag.String("only", "", "regular expression of names of proofs, with their part behind a space; also of those that have failed")
	jobs := flag.Int("jobs", 1, "how many run at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch action := flag.Arg(0); action {
	case "run":
		err = runAll(ctx, *only, *jobs)
	case "check":
		err = check()
	case "list":
		list()
	case "read":
		err = readFrom(os.Stdin, flag.Arg(1))
	default:
		err = errors.New("usage: proofs [-only expression] [-jobs n] run, proofs check, proofs list, or proofs read NAME < output")
	}
	if err != nil {
		log.Fatal(err)
	}
}

// runner runs proofs and keeps their rows.
type runner struct {
	commit string
	files  tree
	rows   sync.Mutex   // of the files
	alone  sync.RWMutex // held for writing by a proof beside which nothing runs
	failed atomic.Int64
}

// runAll runs what is missing, and what is asked for by name and has not passed, some at a time. It ends early if a run leaves no row.
func runAll(ctx context.Context, only string, jobs int) error {
	var r runner
	var err error
	if r.commit, r.files, err = head(); err != nil {
		return err
	}
	todo, err := r.missing(only)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan run)
	var all sync.WaitGroup
	for range jobs {
		all.Go(func() {
			for one := range next {
				if err := r.run(ctx, one); err != nil {
					stop(fmt.Errorf("%v: no row: %w", one, err)) // interrupted, or nothing can be kept
				}
			}
		})
	}
	for i, one := range todo {
		if !one.possible() {
			log.Printf("== %v: cannot be made here, it needs: %s", one, one.needs)
			continue
		}
		select {
		case next <- one:
			log.Printf("== %v: %d of %d at %s, takes about %d minutes", one, i+1, len(todo), time.Now().Format(time.TimeOnly), one.minutes)
		case <-ctx.Done():
		}
	}
	close(next)
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if n := r.failed.Load(); n > 0 {
		return fmt.Errorf("%d runs have failed", n)
	}
	return writeTable(page, rowsDir, r.commit, r.files)
}

// missing returns what has to run, the shortest first.
func (r *runner) missing(only string) (todo []run, err error) {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	matched := false
	for i := range proofs {
		rows, err := rowsOf(rowsDir, proofs[i].name)
		if err != nil {
			return nil, err
		}
		code := r.files.code(proofs[i].name)
		few := proofs[i].stateOf(rows, code).few
		for _, one := range proofs[i].runs() {
			if !wanted.MatchString(one.String()) {
				continue
			}
			matched = true
			if old, ok := one.row(rows, code); !ok || only != "" && (few || old.Failed != "") {
				todo = append(todo, one)
			}
		}
	}
	if !matched {
		return nil, fmt.Errorf(`-only %q matches no proof: one with parts is named with its part, such as "faults 01"`, only)
	}
	slices.SortStableFunc(todo, func(a, b run) int { return cmp.Compare(a.minutes, b.minutes) })
	return todo, nil
}

// run runs one part, and keeps its row if the code is still the same.
func (r *runner) run(ctx context.Context, one run) error {
	if one.proof.alone {
		r.alone.Lock()
		defer r.alone.Unlock()
	} else {
		r.alone.RLock()
		defer r.alone.RUnlock()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	done, err := one.execute(ctx)
	if err != nil {
		return err
	}
	done.Commit, done.Code = r.commit, r.files.code(one.name)
	r.rows.Lock()
	defer r.rows.Unlock()
	if _, now, err := head(); err != nil {
		return err
	} else if now.code(one.name) != done.Code {
		return errors.New("the code has changed meanwhile")
	}
	if done.Failed != "" {
		r.failed.Add(1)
		log.Printf("== %v: FAILED: %s: see lab/%s", one, done.Failed, one.log())
	} else {
		log.Printf("== %v: passed in %ds: %v", one, done.Seconds, done.Figures)
	}
	if err := keep(rowsDir, one.name, done); err != nil {
		return err
	}
	return writeTable(page, rowsDir, r.commit, r.files)
}

// possible returns true if the machine has what a proof needs.
func (p proof) possible() bool {
	return p.needs == "" || exec.Command("bash", "-c", "cd .. && "+p.needs+" >/dev/null 2>&1").Run() == nil
}

func (r run) log() string {
	return filepath.Join(logsDir, strings.NewReplacer(" ", "-", "/", "-").Replace(r.String())+".log")
}

// execute runs the command. Its output goes to the log. If the context ends, or a signal ends the command, all that it has
// started is ended, and there is no row.
func (r run) execute(ctx context.Context) (row, error) {
	if err := os.MkdirAll(logsDir, 0o755); err != nil {
		return row{}, err
	}
	out, err := os.Create(r.log())
	if err != nil {
		return row{}, err
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, "bash", "-eo", "pipefail", "-c", r.command)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "PART="+r.part, fmt.Sprintf("N=%d", r.n), "MAKEFLAGS=")
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	began := time.Now()
	ended := cmd.Run()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ctx.Err() != nil || ok && status.Signaled() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what is left of it
		return row{}, cmp.Or(ctx.Err(), ended)
	}
	text, err := os.ReadFile(r.log())
	if err != nil {
		return row{}, err
	}
	made := row{Part: r.part, Command: r.command, Date: began.UTC().Truncate(time.Second), Seconds: int(time.Since(began).Seconds())}
	made.Figures, made.Failed = r.read(string(text))
	if ended != nil {
		made.Failed = ended.Error()
	}
	return made, nil
}

// check lists what has no valid row, or one that says that it failed.
func check() error {
	commit, files, err := head()
	if err != nil {
		return err
	}
	missing := 0
	for _, p := range proofs {
		rows, err := rowsOf(rowsDir, p.name)
		if err != nil {
			return err
		}
		s := p.stateOf(rows, files.code(p.name))
		if s.passed {
			continue
		}
		missing++
		if !p.possible() {
			s.outcome += "; here it cannot be made, it needs: " + p.needs
		}
		fmt.Printf("%s: %s\n", p.name, s.outcome)
	}
	if missing > 0 {
		return fmt.Errorf("%d of %d proofs have not passed on the code of %s", missing, len(proofs), commit)
	}
	fmt.Printf("all %d proofs have passed on the code of %s\n", len(proofs), commit)
	return nil
}

// list prints the proofs and how long they take.
func list() {
	all := 0
	for i := range proofs {
		p := &proofs[i]
		n := len(p.runs())
		all += n * p.minutes
		fmt.Printf("%s: %s; %d x %d min: %s\n", p.name, p.shows, n, p.minutes, p.command)
	}
	fmt.Printf("about %d hours\n", all/60)
}

// readFrom reads the figures of a proof out of an output, to try its patterns.
func readFrom(in io.Reader, name string) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	for _, p := range proofs {
		if p.name == name {
			figures, failed := p.read(string(text))
			fmt.Println(figures, failed)
			return nil
		}
	}
	return fmt.Errorf("no proof %q", name)
}
