package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A command is one simple command of a shell.
type command struct {
	dir  string   // where "cd" before it leads, relative to the root of the repository
	env  []string // its assignments, such as SEED=7
	args []string // its words, without quotes
	note string   // the comment at the end of its line
}

func (c command) String() string { return strings.Join(append(slices.Clone(c.env), c.args...), " ") }

// shellToken matches a comment, an operator, or a word of quoted and unquoted parts.
var shellToken = regexp.MustCompile(`#.*|&&|\|\||[;|!]|(?:'[^']*'|"[^"]*"|[^\s'"&;|])+`)

// parseShell returns the commands of a block. It knows quotes, comments, "&&", "||", "|", ";", and "cd".
func parseShell(code string) (all []command) {
	for line := range strings.SplitSeq(code, "\n") {
		dir, first := ".", len(all)
		next := command{dir: dir}
		end := func() {
			if len(next.args) == 2 && next.args[0] == "cd" {
				dir = next.args[1]
			} else if len(next.args) > 0 || len(next.env) > 0 {
				all = append(all, next)
			}
			next = command{dir: dir}
		}
		for _, word := range shellToken.FindAllString(line, -1) {
			switch {
			case word[0] == '#':
				end()
				for i := first; i < len(all); i++ {
					all[i].note = strings.TrimSpace(word[1:])
				}
			case slices.Contains([]string{"&&", "||", ";", "|", "!"}, word):
				end()
			case len(next.args) == 0 && assignment.MatchString(word):
				next.env = append(next.env, unquote(word))
			default:
				next.args = append(next.args, unquote(word))
			}
		}
		end()
	}
	return all
}

var (
	assignment = regexp.MustCompile(`^[A-Z][A-Z_]*=`)
	quotes     = regexp.MustCompile(`'([^']*)'|"([^"]*)"`)
)

func unquote(word string) string { return quotes.ReplaceAllString(word, "$1$2") }

// TestParseShell: words, quotes, assignments, comments and directories are told apart.
func TestParseShell(t *testing.T) {
	t.Parallel()
	all := parseShell("cd bench && GOWORK=off go run . -who 'Mutex|bare'  # two of them\n\nmake fault SEED=7\nprintf %s 'a#b' | cut -c1-8\n")
	want := []command{
		{dir: "bench", env: []string{"GOWORK=off"}, args: []string{"go", "run", ".", "-who", "Mutex|bare"}, note: "two of them"},
		{dir: ".", args: []string{"make", "fault", "SEED=7"}},
		{dir: ".", args: []string{"printf", "%s", "a#b"}},
		{dir: ".", args: []string{"cut", "-c1-8"}},
	}
	if !slices.EqualFunc(all, want, func(a, b command) bool {
		return a.dir == b.dir && a.note == b.note && slices.Equal(a.env, b.env) && slices.Equal(a.args, b.args)
	}) {
		t.Errorf("parsed %q", all)
	}
}
