package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/supervise"
	"github.com/holdfast-go/holdfast/core"
)

// program are the arguments of the commands that run another program.
type program struct {
	TTL        duration  `default:"30s" placeholder:"TIME" help:"How long a host that is gone blocks the others. The lock is renewed every third of it. Defaults to ${default}."`
	KillBefore *duration `placeholder:"TIME" help:"Time from TERM to KILL, before the lock can expire. Defaults to a third of the TTL, 10s at most."`
	MaxHold    duration  `placeholder:"TIME" help:"End the command after this time. Defaults to no limit."`
	AwaitAll   bool      `help:"Wait for all processes that the command leaves behind. Otherwise they are ended when the command has ended."`
	Shell      string    `short:"c" placeholder:"SCRIPT" help:"Run this script with /bin/sh, in place of a command."`
	Cmd        []string  `arg:"" optional:"" help:"The command, behind --. All its arguments are passed on."`
}

// slotVariable has the slot of a command under a semaphore.
const slotVariable = "HOLDFAST_SLOT"

// mostMargin bounds the time between KILL and the end of the lease, a tenth of the TTL.
const mostMargin = time.Second

// mostKillBefore bounds the default of --kill-before.
const mostKillBefore = 10 * time.Second

// grace returns the time from TERM to KILL.
func (p *program) grace() time.Duration {
	if p.KillBefore != nil {
		return p.KillBefore.value()
	}
	return min(p.TTL.value()/3, mostKillBefore)
}

// limits returns when the command is ended.
func (p *program) limits() supervise.Limits {
	return supervise.Limits{
		KillBefore: p.grace(), Margin: min(p.TTL.value()/10, mostMargin),
		MaxHold: p.MaxHold.value(), AwaitAll: p.AwaitAll,
		Least: p.TTL.value() * 2 / 3, // what a lease that is renewed in time has
	}
}

// check returns what is wrong with the arguments.
func (p *program) check(env *environment) error {
	switch {
	case len(p.Cmd) < len(env.behind): // the parser took the first of them
		return usageError("the name is missing, as from a variable that is not set: put it in front of --, as in: NAME -- %s",
			strings.Join(env.behind, " "))
	case len(p.Cmd) > len(env.behind):
		return usageError("put -- before the command, so that its arguments are not taken for holdfast's own: -- %s",
			strings.Join(p.Cmd[:len(p.Cmd)-len(env.behind)], " "))
	case p.Shell != "" && len(p.Cmd) > 0:
		return usageError("-c and a command exclude each other")
	case p.Shell != "":
		p.Cmd = []string{"/bin/sh", "-c", p.Shell}
	case len(p.Cmd) == 0:
		return usageError("nothing to run: put the command behind --, or use -c")
	default:
		p.Cmd = env.behind // byte for byte: the parser replaces what is not in UTF-8
	}
	if most := p.TTL.value() / 2; p.grace() > most {
		return usageError("--kill-before %v: half of the TTL is the most, %v: a renewal may take the rest", p.grace(), most)
	}
	return nil
}

// path returns the path of the program, or an error with the status that shells have for it.
func (p *program) path() (string, error) {
	path, err := lookPath(p.Cmd[0])
	switch {
	case err == nil || errors.Is(err, exec.ErrDot):
		return path, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return "", &statusError{StatusNotFound, fmt.Sprintf("%s: command not found", p.Cmd[0])}
	}
	return "", &statusError{StatusCannotRun, fmt.Sprintf("%s: cannot be executed: %v", p.Cmd[0], errors.Unwrap(err))}
}

// defaultPath are the directories for an environment without PATH, as execvp has them.
var defaultPath = []string{"/bin", "/usr/bin"}

// lookPath returns the path of a program as [exec.LookPath] does, by defaultPath if PATH is not set.
func lookPath(name string) (path string, err error) {
	if _, set := os.LookupEnv("PATH"); set || strings.ContainsRune(name, '/') {
		return exec.LookPath(name)
	}
	err = exec.ErrNotFound
	for _, directory := range defaultPath {
		if path, err = exec.LookPath(directory + "/" + name); err == nil {
			break
		}
	}
	return path, err
}

// supervised checks the arguments, and runs the rest in the supervisor. The supervisor has to call it too.
func (p *program) supervised(env *environment, run func() error) error {
	if err := supervise.Supported(); err != nil {
		return &statusError{StatusCannotRun, err.Error()}
	}
	if err := p.check(env); err != nil {
		return err
	}
	if _, err := p.path(); err != nil {
		return err
	}
	if env.supervisor != nil {
		return run()
	}
	if _, err := env.flags.Connection.settings(); err != nil {
		return err
	}
	status, err := supervise.RunParent()
	if err != nil {
		return err
	}
	return exitWith(status)
}

// clients returns clients that notify the supervisor of renewals.
func (p *program) clients(env *environment) (*clients, error) {
	return env.open(core.WithTTL(p.TTL.value()), core.WithHooks(core.Hooks{
		Renewed: func(context.Context, core.Renewed) { env.supervisor.Renewed() },
	}))
}

// command returns the command, with the environment variables that describe the lock.
func (p *program) command(name string, hold supervise.Hold, more ...string) (supervise.Command, error) {
	path, err := p.path()
	if err != nil {
		return supervise.Command{}, err
	}
	token, _ := core.TokenFrom(hold.Context())
	env := func() []string {
		return append(append(outerEnvironment(),
			"HOLDFAST_NAME="+name, "HOLDFAST_TOKEN="+strconv.FormatInt(token, 10),
			"HOLDFAST_VALID_UNTIL="+hold.ValidUntil().UTC().Format("2006-01-02T15:04:05.000Z")), more...)
	}
	return supervise.Command{Path: path, Args: p.Cmd, Env: env}, nil
}

// outerEnvironment returns the environment of this process, without the slot of a command that holdfast itself runs in.
func outerEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, slotVariable+"=") })
}

// cannotRun returns the error of a command that has not started: of an interrupted wait, of a lost lock, or 126.
func cannotRun(err error) error {
	var path *os.PathError
	if !errors.As(err, &path) {
		return err
	}
	if errors.Is(err, os.ErrNotExist) {
		return &statusError{StatusNotFound, err.Error()}
	}
	return &statusError{StatusCannotRun, err.Error()}
}

// identity is how operators recognise this process: its host and its process id.
func identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + ":" + strconv.Itoa(os.Getpid())
}

// unlockContext returns the context of releases, which happen although a signal has ended the context of the process.
func unlockContext(env *environment) context.Context { return context.WithoutCancel(env.ctx) }
