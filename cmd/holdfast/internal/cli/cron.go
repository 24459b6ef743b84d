package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
)

// cronCommand has the commands for jobs of cronlock.
type cronCommand struct {
	Ls      cronLsCommand      `cmd:"" help:"List the jobs."`
	Pause   cronPauseCommand   `cmd:"" help:"Pause a job on all hosts."`
	Resume  cronResumeCommand  `cmd:"" help:"Let a paused job run again."`
	History cronHistoryCommand `cmd:"" help:"Show the last runs of a job."`
}

type (
	cronLsCommand    struct{}
	cronPauseCommand struct {
		Job string `arg:"" names:"jobs" help:"Name of the job."`
		Yes bool   `short:"y" help:"Do not ask."`
	}
	cronResumeCommand struct {
		Job string `arg:"" names:"jobs" help:"Name of the job."`
		Yes bool   `short:"y" help:"Do not ask."`
	}
	cronHistoryCommand struct {
		Job string `arg:"" names:"jobs" help:"Name of the job."`
	}
)

// withClients calls a function with the clients.
func withClients(env *environment, call func(*clients) error) error {
	all, err := env.open()
	if err != nil {
		return err
	}
	defer all.close()
	return call(all)
}

// withJob calls a function with a client, for a job. The error of cronlock for a job that is not registered names a function of Go.
func withJob(env *environment, name string, call func(*core.Client) error) error {
	err := withClients(env, func(all *clients) error { return call(all.locks) })
	if errors.Is(err, cronlock.ErrUnknownJob) {
		return &statusError{StatusAbsent, fmt.Sprintf("unknown job %q: holdfast cron ls lists those that replicas have registered", name)}
	}
	return err
}

// changeJob changes a job that exists, after a question unless the answer is given.
func changeJob(env *environment, name string, yes bool, question string, change func(*cronlock.JobHandle) error) error {
	return withJob(env, name, func(locks *core.Client) error {
		job := cronlock.Job(locks, name)
		if !yes {
			if _, err := job.Info(env.ctx); err != nil {
				return err
			}
			if err := env.confirm(fmt.Sprintf(question, name)); err != nil {
				return err
			}
		}
		return change(job)
	})
}

// Run is called by the parser.
func (c *cronPauseCommand) Run(env *environment) error {
	return changeJob(env, c.Job, c.Yes, "Pause %q on all hosts?", func(job *cronlock.JobHandle) error {
		return job.Pause(env.ctx, operator())
	})
}

// Run is called by the parser.
func (c *cronResumeCommand) Run(env *environment) error {
	return changeJob(env, c.Job, c.Yes, "Let %q run again on all hosts?", func(job *cronlock.JobHandle) error {
		return job.Resume(env.ctx)
	})
}

// Run is called by the parser.
func (c *cronLsCommand) Run(env *environment) error {
	return withClients(env, func(all *clients) error {
		jobs, err := cronlock.Jobs(env.ctx, all.locks)
		if err != nil {
			return err
		}
		if !env.flags.JSON {
			jobTable(jobs).print(env)
		} else {
			for _, j := range jobs {
				if err := env.printJSON(jobInJSON(j)); err != nil {
					return err
				}
			}
		}
		all.report(env, len(jobs) > 0, "no job is registered")
		return nil
	})
}

// jobTable is the table of cron ls.
func jobTable(jobs []cronlock.JobInfo) *table {
	t := &table{head: []string{"JOB", "SPEC", "ZONE", "LAST TICK", "NEXT TICK", "MISSED", "PAUSED", "SERVICE"}}
	for _, j := range jobs {
		t.add(named(j.Name), j.Spec, j.Zone, clockTime(j.LastTick), clockTime(j.NextTick), missed(j), paused(j), j.Service)
	}
	return t
}

// paused returns who has paused a job, and when; "-" if it is not paused.
func paused(j cronlock.JobInfo) string {
	if !j.Paused {
		return "-"
	}
	return strings.TrimSpace("by " + cmp.Or(j.PausedBy, "unknown") + " " + strings.TrimSuffix(clockTime(j.PausedAt), "-"))
}

// missed returns how many ticks no host has run, and the last of them.
func missed(j cronlock.JobInfo) string {
	if j.Missed == 0 {
		return "0"
	}
	return fmt.Sprintf("%d, last %s", j.Missed, clockTime(j.MissedTick))
}

// took returns the duration of a run, "-" if it has not ended or its end is unknown.
func took(r cronlock.Run) string {
	switch r.Outcome {
	case cronlock.Running, cronlock.Lost, cronlock.Unknown:
		return "-"
	}
	return short(r.Took)
}

// operator returns who runs the command: the user and the host.
func operator() string {
	name := os.Getenv("SUDO_USER")
	if current, err := user.Current(); name == "" && err == nil {
		name = current.Username
	}
	host, err := os.Hostname()
	if err != nil {
		return name
	}
	return name + "@" + host
}

// Run is called by the parser.
func (c *cronHistoryCommand) Run(env *environment) error {
	return withJob(env, c.Job, func(locks *core.Client) error {
		runs, err := cronlock.Job(locks, c.Job).History(env.ctx)
		if err != nil {
			return err
		}
		t := &table{head: []string{"TICK", "OUTCOME", "TOOK", "ATTEMPT", "REPLICA"}}
		for _, r := range runs {
			if env.flags.JSON {
				if err := env.printJSON(runInJSON(r)); err != nil {
					return err
				}
			}
			t.add(clockTime(r.Tick), string(r.Outcome), took(r), fmt.Sprint(r.Attempt), r.Replica)
		}
		if !env.flags.JSON {
			t.print(env)
		}
		if len(runs) == 0 {
			fmt.Fprintln(env.stderr, "holdfast: no run is remembered: the job has not run yet, or not for the 20 periods that its runs are kept")
		}
		return nil
	})
}

// clockTime returns a time to the second, "-" if it is zero.
func clockTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}
