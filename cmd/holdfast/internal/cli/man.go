package cli

import (
	"fmt"
	"strings"
)

// manCommand prints the manual page in the language of man(7), made of the grammar.
type manCommand struct{}

// statuses are the exit statuses, as the manual page has them.
var statuses = []struct{ status, meaning string }{
	{"the command's", "the command has ended by itself"},
	{"128 and n", "the command, or the wait for the lock, was ended by signal n"},
	{"64", "wrong arguments"},
	{"69", "Redis does not answer, or refuses"},
	{"71", "too many open files, in this process or on the host"},
	{"74", "the output cannot be written, as on a full disk; all else has succeeded"},
	{"75", "the lock was not acquired; -E changes it. Or a record or a lock has changed while its operator decided"},
	{"79", "the command was ended because the lock was lost or --max-hold was over, or the outcome of a once is unknown"},
	{"126, 127", "the command cannot be executed, or was not found"},
}

// Run is called by the parser.
func (c *manCommand) Run(env *environment) error {
	var page strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&page, format+"\n", args...) }
	p(`.TH HOLDFAST 1 "" "holdfast %s" "User Commands"`, roff(version()))
	p(".SH NAME\nholdfast \\- %s", roff(env.parser.Model.Help))
	p(".SH SYNOPSIS\n.B holdfast\n.I command\n[flags] [\\-\\- program arguments]")
	p(".SH COMMANDS")
	for _, l := range leaves(env.parser.Model.Node, "") {
		p(".SS %s", roff(l.node.Summary()))
		p("%s", roff(l.help))
		for _, argument := range l.node.Positional {
			p(".TP\n.I %s\n%s", roff(argument.Name), roff(argument.Help))
		}
		for _, f := range l.node.Flags {
			p(".TP\n.B %s\n%s", roff(f.String()), roff(f.Help))
		}
	}
	p(".SH FLAGS OF ALL COMMANDS")
	for _, f := range env.parser.Model.Flags {
		p(".TP\n.B %s\n%s", roff(f.String()), roff(f.Help))
	}
	p(".SH EXIT STATUS")
	for _, s := range statuses {
		p(".TP\n.B %s\n%s", roff(s.status), roff(s.meaning))
	}
	p(".SH SEE ALSO\n.BR flock (1)")
	_, err := fmt.Fprint(env.stdout, page.String())
	return err
}

// roff escapes what man(7) takes for commands.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
