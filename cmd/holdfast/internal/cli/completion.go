package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
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

// writeBash writes a function that looks for the longest command in the line so far.
func writeBash(w io.Writer, commands []leaf) {
	fmt.Fprint(w, `_holdfast() {
	local cur=${COMP_WORDS[COMP_CWORD]} line="${COMP_WORDS[*]:1:COMP_CWORD-1}" i
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then
			COMPREPLY=($(compgen -c -f -- "$cur"))
			return
		fi
	done
	case "$line" in
`)
	next := make(map[string][]string)
	for _, c := range commands {
		fmt.Fprintf(w, "\t%q*) COMPREPLY=($(compgen -W %q -- \"$cur\")) ;;\n", c.name+" ", strings.Join(c.words(), " "))
		fmt.Fprintf(w, "\t%q) COMPREPLY=($(compgen -W %q -- \"$cur\")) ;;\n", c.name, strings.Join(c.words(), " "))
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
	fmt.Fprintf(w, "\t*) COMPREPLY=($(compgen -W %q -- \"$cur\")) ;;\n\tesac\n}\ncomplete -o default -F _holdfast holdfast\n",
		strings.Join(next[""], " "))
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
