package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/connect"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/supervise"
	"github.com/holdfast-go/holdfast/internal/foreign"
)

// grammar is the command line. The comments of the fields are their help.
type grammar struct {
	Connection connection       `embed:""`
	JSON       bool             `group:"all" help:"Print JSON: one object, or one on each line."`
	Verbose    bool             `group:"all" short:"v" help:"Show the warnings of the library, and why once skips a run, on standard error."`
	Version    kong.VersionFlag `group:"all" help:"Print the version."`

	Exec  execCommand  `cmd:"" help:"Run a command while a lock is held."`
	Once  onceCommand  `cmd:"" help:"Run a command at most once for a key, on all hosts."`
	Elect electCommand `cmd:"" help:"Run a command while this host leads."`

	Ls      lsCommand      `cmd:"" help:"List the locks that are held."`
	Show    showCommand    `cmd:"" help:"Show the holders, the waiters and the record of a name."`
	Watch   watchCommand   `cmd:"" help:"Show a name whenever it changes."`
	Top     topCommand     `cmd:"" help:"Show all locks, again and again."`
	Unlock  unlockCommand  `cmd:"" help:"Take a lock from its holders."`
	Records recordsCommand `cmd:"" help:"List what once has recorded."`
	Forget  forgetCommand  `cmd:"" help:"Delete a record, so that another run may begin."`
	Resolve resolveCommand `cmd:"" help:"Record that a run of unknown outcome has been done."`
	HTTPKey httpKeyCommand `cmd:"" name:"http-key" help:"Print the name of the lock or record of a guarded HTTP request."`
	MsgKey  msgKeyCommand  `cmd:"" name:"msg-key" help:"Print the name of the record of a message."`
	Digest  digestCommand  `cmd:"" help:"Find the name behind a digest of the log."`
	Cron    cronCommand    `cmd:"" help:"Pause, resume and look at jobs of cronlock."`

	Completion completionCommand `cmd:"" help:"Print the completion of a shell: bash, zsh or fish."`
	Names      namesCommand      `cmd:"" hidden:"" help:"Print names for the completion of a shell."`
	Man        manCommand        `cmd:"" help:"Print the manual page."`
}

// environment is what a command gets.
type environment struct {
	supervisor *supervise.Supervisor // nil in the parent, and for commands that run no program
	ctx        context.Context
	stdout     *stream
	stderr     io.Writer // for messages
	copied     *stream   // standard error too, for what a command prints there
	stdin      io.Reader
	parser     *kong.Kong
	flags      *grammar
	behind     []string // the arguments behind the first "--"
}

// Run executes the command line of this process, as the parent or as the supervisor, and ends the process.
func Run() {
	if !supervise.IsSupervisor() {
		os.Exit(Main(os.Args[1:], nil))
	}
	supervisor, err := supervise.Attach()
	if err != nil {
		fmt.Fprintln(os.Stderr, "holdfast:", err)
		os.Exit(StatusUsage)
	}
	supervisor.Exit(Main(os.Args[1:], supervisor))
}

// Main executes the command line and returns the exit status. The supervisor is nil in the parent.
func Main(args []string, supervisor *supervise.Supervisor) int {
	env := &environment{
		supervisor: supervisor, ctx: context.Background(), flags: new(grammar),
		stdin: os.Stdin, stdout: &stream{to: os.Stdout}, copied: &stream{to: os.Stderr}, stderr: os.Stderr,
	}
	if supervisor != nil {
		env.ctx, env.stderr = supervisor.Context(), supervisor.Stderr()
	}
	return env.main(args)
}

// helpShown ends the parser after a flag that prints something, such as --help.
type helpShown struct{ status int }

// main executes the command line. A stream that could not be written makes a success a failure, and changes no other status.
// In the supervisor, one that no process reads any more makes no failure.
func (env *environment) main(args []string) int {
	err := env.execute(args)
	env.tell(err)
	for _, s := range []*stream{env.stdout, env.copied} {
		if s.failed == nil || errors.Is(err, s.failed) || env.supervisor != nil && errors.Is(s.failed, errNoReader) {
			continue
		}
		env.tell(s.failed)
		if statusOf(err) == 0 {
			err = s.failed
		}
	}
	return statusOf(err)
}

// maxErrorLine bounds a line of an error, in bytes.
const maxErrorLine = 16 << 10

// tell prints an error unless its text is empty.
func (env *environment) tell(err error) {
	if err != nil && err.Error() != "" {
		text := strings.TrimPrefix(err.Error(), "holdfast: ") + env.flags.Connection.hint(err)
		for line := range strings.Lines("holdfast: " + text) { // a hint has lines of its own
			fmt.Fprintln(env.stderr, foreign.Line(strings.TrimSuffix(line, "\n"), maxErrorLine))
		}
	}
}

// execute parses the arguments and executes the command.
func (env *environment) execute(args []string) (err error) {
	defer func() {
		switch end := recover().(type) {
		case nil:
		case helpShown:
			err = exitWith(end.status)
		default:
			panic(end)
		}
	}()
	args = shieldHash(args)
	own := args
	if at := slices.Index(args, "--"); at >= 0 {
		own, env.behind = args[:at], args[at+1:]
	}
	if err := checkText(own); err != nil {
		return err
	}
	if err := env.newParser(); err != nil {
		return err
	}
	parsed, err := env.parser.Parse(args)
	switch {
	case err == nil:
	case env.stdout.failed != nil: // writing the help
		return env.stdout.failed
	case slices.ContainsFunc(own, isSecretURL): // the error may quote it
		return errPasswordSeen
	default:
		return usageError("%s\n%s", err, env.advice(err))
	}
	if err := checkGiven(parsed); err != nil {
		return err
	}
	if env.supervisor == nil && !runsProgram(parsed) {
		defer env.catchSignals(syscall.SIGINT, syscall.SIGTERM)()
	}
	err = parsed.Run(env)
	var interrupted *supervise.Interrupted
	if errors.As(err, &interrupted) || env.supervisor == nil && errors.As(context.Cause(env.ctx), &interrupted) {
		return exitWith(supervise.SignalStatus(interrupted.Signal))
	}
	return err
}

// advice returns what may help after a wrong argument.
func (env *environment) advice(err error) string {
	var wrong *kong.ParseError
	if !errors.As(err, &wrong) || wrong.Context == nil || wrong.Context.Selected() == nil {
		return "Try: holdfast --help"
	}
	advice := "Try: " + wrong.Context.Selected().FullPath() + " --help"
	if runsProgram(wrong.Context) && env.behind == nil {
		advice = "If that belongs to the command that is to run, put -- before it, as in: " + wrong.Context.Selected().FullPath() +
			" NAME -- ls -l\n" + advice
	}
	return advice
}

// isSecretURL reports whether an argument has a URL with a password, whether or not that is where it belongs.
func isSecretURL(arg string) bool { return strings.Contains(arg, "://") && connect.HasPassword(arg) }

// checkText refuses arguments that are not valid UTF-8: the parser replaces such bytes, so two names would become one. It
// quotes no URL, because that may contain a password.
func checkText(args []string) error {
	for _, arg := range args {
		if !utf8.ValidString(arg) {
			if isSecretURL(arg) {
				return errPasswordSeen
			}
			return usageError("the argument %q is not in UTF-8", arg)
		}
	}
	return nil
}

// checkGiven refuses flags and names that are given as an empty text, which is mostly an unset variable of a script. Without the
// check --tick "$TICK" would run once a day, and --owner "$OWNER" would take a lock from any owner.
// It also refuses --prefix beside --no-prefix, which may be beside the variable of the environment, so the parser cannot do it.
func checkGiven(parsed *kong.Context) error {
	given := func(flag string) bool {
		return slices.ContainsFunc(parsed.Path, func(p *kong.Path) bool { return p.Flag != nil && p.Flag.Name == flag })
	}
	if given("prefix") && given("no-prefix") {
		return usageError("--prefix and --no-prefix exclude each other")
	}
	for _, element := range parsed.Path {
		f, p := element.Flag, element.Positional
		switch {
		case f != nil && hasEmptyText(f.Target):
			return usageError("--%s: a text is needed, but it is empty", f.Name)
		case p != nil && p.Required && isEmptyText(p.Target):
			return usageError("<%s>: a text is needed, but it is empty", p.Name)
		}
	}
	return nil
}

func isEmptyText(v reflect.Value) bool { return v.Kind() == reflect.String && v.String() == "" }

// hasEmptyText is isEmptyText, also for one text of a list.
func hasEmptyText(v reflect.Value) bool {
	if v.Kind() != reflect.Slice {
		return isEmptyText(v)
	}
	for i := range v.Len() {
		if isEmptyText(v.Index(i)) {
			return true
		}
	}
	return false
}

// catchSignals ends the context of the command at the first of the signals. A second one ends the process. The caller must
// call stop.
func (env *environment) catchSignals(signals ...os.Signal) (stop func()) {
	ctx, cancel := context.WithCancelCause(env.ctx)
	incoming := make(chan os.Signal, 1)
	signal.Notify(incoming, signals...)
	go func() {
		defer signal.Stop(incoming)
		select {
		case sig := <-incoming:
			cancel(&supervise.Interrupted{Signal: sig.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	env.ctx = ctx
	return func() { cancel(nil) }
}

func (env *environment) newParser() (err error) {
	env.parser, err = kong.New(
		env.flags,
		kong.Name("holdfast"),
		kong.Description("Distributed locks on Redis for everything that has a shell."),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true}),
		kong.ExplicitGroups([]kong.Group{{Key: "all", Title: "Flags of all commands:"}}), // after the command's own flags
		kong.Help(env.printHelp),
		kong.Writers(env.stdout, env.stderr),
		kong.Exit(func(status int) { panic(helpShown{status}) }),
		kong.Vars{"version": version()},
	)
	return err
}

// printHelp prints the help as wide as the terminal, unless COLUMNS has a number. The parser knows the width only of an
// *os.File. The variable reaches no command, because the process ends after its help.
func (env *environment) printHelp(options kong.HelpOptions, parsed *kong.Context) error {
	width, _ := screen(env.stdout.to)
	if _, err := strconv.Atoi(os.Getenv("COLUMNS")); err != nil && width > 0 {
		if err := os.Setenv("COLUMNS", strconv.Itoa(width)); err != nil {
			return err
		}
	}
	return kong.DefaultHelpPrinter(options, parsed)
}

// runsProgram reports whether the command runs another program.
func runsProgram(parsed *kong.Context) bool {
	switch name, _, _ := strings.Cut(parsed.Command(), " "); name {
	case "exec", "once", "elect":
		return true
	}
	return false
}
