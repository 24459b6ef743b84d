package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
)

// completionCommand prints the completion of a shell.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run is called by the parser. The scripts are made of the grammar, and behind -- the shell completes the command.
func (c *completionCommand) Run(env *environment) error {
	commands := leaves(env.parser.Model.Node, "")
	switch c.Shell {
	case "fish":
		writeFish(env.stdout, commands)
	case "zsh":
		fmt.Fprint(env.stdout, "#compdef holdfast\nautoload -U +X bashcompinit && bashcompinit\n")
		fallthrough
	default:
		writeBash(env.stdout, commands)
	}
	return nil
}

// leaf is a command without commands below it.
type leaf struct {
	name  string // all words, as "cron pause"
	help  string
	flags []*kong.Flag
	node  *kong.Node
}

// leaves returns the commands of the grammar.
func leaves(node *kong.Node, name string) (all []leaf) {
	for _, child := range node.Children {
		if child.Hidden {
			continue
		}
		childName := strings.TrimSpace(name + " " + child.Name)
		if len(child.Children) > 0 {
			all = append(all, leaves(child, childName)...)
			continue
		}
		var flags []*kong.Flag
		for _, group := range child.AllFlags(true) {
			flags = append(flags, group...)
		}
		all = append(all, leaf{childName, child.Help, flags, child})
	}
	return all
}

// words returns the flags as they are typed.
func (l leaf) words() (words []string) {
	for _, f := range l.flags {
		words = append(words, "--"+f.Name)
		if f.Short != 0 {
			words = append(words, "-"+string(f.Short))
		}
	}
	return words
}

// names returns which names the first argument may be: locks, records, names (of either) or jobs; "" for none.
func (l leaf) names() string {
	if len(l.node.Positional) == 0 {
		return ""
	}
	return l.node.Positional[0].Tag.Get("names")
}

// writeBash writes a function that looks for the longest command in the line so far. It reads the line itself, because bash cuts
// words at colons, and answers with what is behind the last one.
func writeBash(w io.Writer, commands []leaf) {
	fmt.Fprint(w, `_holdfast() {
	local text=${COMP_LINE:0:COMP_POINT} name
	local cur=${text##*[[:space:]]} names=
	local line=${text%"$cur"}
	while [[ $line == *"  "* ]]; do line=${line//  / }; done
	line=${line#* } line=${line% }
	COMPREPLY=()
	if [[ " $line " == *" -- "* ]]; then
		COMPREPLY=($(compgen -c -f -- "$cur"))
		return
	fi
	case "$line" in
`)
	next := make(map[string][]string)
	for _, c := range commands {
		fmt.Fprintf(w, "\t%q*) COMPREPLY=($(compgen -W %q -- \"$cur\")) ;;\n", c.name+" ", strings.Join(c.words(), " "))
		fmt.Fprintf(w, "\t%q) names=%s COMPREPLY=($(compgen -W %q -- \"$cur\")) ;;\n", c.name, c.names(), strings.Join(c.words(), " "))
		words := strings.Fields(c.name)
		for i, word := range words {
			prefix := strings.Join(words[:i], " ")
			next[prefix] = append(next[prefix], word)
		}
	}
	for prefix, words := range next {
		if prefix != "" {
			fmt.Fprintf(w, "\t%q) COMPREPLY=($(compgen -W %q -- \"$cur\")) ;;\n", prefix, strings.Join(words, " "))
		}
	}
	fmt.Fprintf(w, "\t*) COMPREPLY=($(compgen -W %q -- \"$cur\")) ;;\n\tesac\n", strings.Join(next[""], " "))
	_, _ = io.WriteString(w, `	[[ -z $names || $cur == -* ]] && return
	while IFS= read -r name; do
		name=$(printf %q "$name")
		[[ $COMP_WORDBREAKS == *:* ]] && name=${name#"${cur%"${cur##*:}"}"}
		COMPREPLY+=("$name")
	done < <(holdfast names "$names" "$cur" 2>/dev/null)
}
complete -o default -F _holdfast holdfast
`)
}

// namesCommand prints names for the completion of a shell.
type namesCommand struct {
	Kind  string `arg:"" enum:"locks,records,names,jobs" help:"locks, records, names of either, or jobs."`
	Begin string `arg:"" optional:"" help:"Print only names that begin so."`
}

// These bound what a key in a shell may cost.
const (
	mostNames    = 200
	namesTimeout = 2 * time.Second
)

// errEnough ends the walk over the names.
var errEnough = errors.New("enough names")

// Run is called by the parser. It has no errors: a shell has no place for them.
func (c *namesCommand) Run(env *environment) error {
	var cancel context.CancelFunc
	env.ctx, cancel = context.WithTimeout(env.ctx, namesTimeout)
	defer cancel()
	all, err := env.open()
	if err != nil {
		return nil
	}
	defer all.close()
	printed := make(map[string]bool)
	add := func(name string) error {
		switch {
		case len(printed) >= mostNames:
			return errEnough
		case !printed[name] && strings.HasPrefix(name, c.Begin) && printable(name) == name:
			printed[name] = true
			fmt.Fprintln(env.stdout, name)
		}
		return nil
	}
	_ = c.walk(env.ctx, all.locks, add)
	return nil
}

// walk calls a function with each name, until it fails.
func (c *namesCommand) walk(ctx context.Context, locks *core.Client, add func(name string) error) error {
	if c.Kind == "jobs" {
		jobs, err := cronlock.Jobs(ctx, locks)
		for _, job := range jobs {
			err = errors.Join(err, add(job.Name))
		}
		return err
	}
	if c.Kind != "records" {
		for lock, err := range locks.Locks(ctx, c.Begin) {
			if err != nil {
				return err
			}
			if err := add(lock.Name); err != nil {
				return err
			}
		}
	}
	if c.Kind != "locks" {
		for record, err := range locks.Records(ctx, c.Begin) {
			if err != nil {
				return err
			}
			if err := add(record.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeFish writes a line for each command and each flag.
func writeFish(w io.Writer, commands []leaf) {
	quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", `\'`) + "'" }
	for _, c := range commands {
		words := strings.Fields(c.name)
		seen := "__fish_use_subcommand"
		if len(words) > 1 {
			seen = "__fish_seen_subcommand_from " + words[0]
		}
		fmt.Fprintf(w, "complete -c holdfast -f -n %s -a %s -d %s\n", quote(seen), words[len(words)-1], quote(c.help))
		if kind := c.names(); kind != "" {
			fmt.Fprintf(w, "complete -c holdfast -f -n %s -a %s\n", quote("__fish_seen_subcommand_from "+words[len(words)-1]),
				quote("(holdfast names "+kind+" (commandline -ct) 2>/dev/null)"))
		}
		for _, f := range c.flags {
			short := ""
			if f.Short != 0 {
				short = " -s " + string(f.Short)
			}
			fmt.Fprintf(w, "complete -c holdfast -n %s -l %s%s -d %s\n",
				quote("__fish_seen_subcommand_from "+words[len(words)-1]), f.Name, short, quote(f.Help))
		}
	}
}
