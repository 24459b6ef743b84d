package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/foreign"
)

// topCommand shows all locks again and again.
type topCommand struct {
	Prefix   string   `arg:"" optional:"" name:"begin" names:"locks" help:"Show only names that begin so."`
	Interval duration `short:"i" default:"2s" placeholder:"TIME" help:"How often to look. A look costs Redis a scan of its keys."`
	Sort     string   `enum:"name,age,waiters" default:"waiters" help:"Order: name, age or waiters."`
}

// top is the state of the view.
type top struct {
	env      *environment
	locks    *core.Client
	where    string
	prefix   string
	order    string
	filter   string
	entries  []core.Entry
	seen     time.Time // when Redis has replied with these entries
	asked    time.Time // when it was asked for newer ones; zero if no question is open
	failure  error     // of the last question; nil if it was answered
	answers  chan looked
	chosen   int
	message  string
	prompt   func(answer string) // what to do with the line that is typed; nil if none is
	question string              // of the prompt
	typed    string
	width    int
	height   int
}

// Run is called by the parser.
func (c *topCommand) Run(env *environment) error {
	file, ok := env.stdin.(*os.File)
	out, isFile := env.stdout.to.(*os.File)
	if !ok || !isFile || !term.IsTerminal(int(file.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return usageError("top needs a terminal: use ls or watch, also with --json")
	}
	if c.Interval.value() < 100*time.Millisecond {
		return usageError("--interval %v: at least 100ms are needed", c.Interval.value())
	}
	all, err := env.open()
	if err != nil {
		return err
	}
	defer all.close()
	t := &top{env: env, locks: all.locks, where: all.where(), prefix: c.Prefix, order: c.Sort, answers: make(chan looked, 1)}
	if t.take(t.look()); t.failure != nil {
		return t.failure
	}
	before, err := term.MakeRaw(int(file.Fd()))
	if err != nil {
		return err
	}
	fmt.Fprint(out, "\x1b[?1049h\x1b[?25l")
	defer func() {
		fmt.Fprint(out, "\x1b[?25h\x1b[?1049l")
		_ = term.Restore(int(file.Fd()), before)
	}()
	t.loop(file, out, c.Interval.value())
	return nil
}

// loop draws the view until the user ends it.
func (t *top) loop(in io.Reader, out *os.File, interval time.Duration) {
	keys := make(chan string)
	go readKeys(in, keys)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		t.width, t.height, _ = term.GetSize(int(out.Fd()))
		_, _ = io.WriteString(out, t.draw())
		select {
		case key, ok := <-keys:
			if !ok || !t.press(key) {
				return
			}
		case answer := <-t.answers:
			t.take(answer)
		case <-ticker.C: // also draws how long there has been no answer
			t.refresh()
		case <-t.env.ctx.Done():
			return
		}
	}
}

// readKeys sends each key that is pressed; an arrow is one key.
func readKeys(in io.Reader, keys chan<- string) {
	defer close(keys)
	for r := bufio.NewReader(in); ; {
		key, _, err := r.ReadRune()
		if err != nil {
			return
		}
		text := string(key)
		if key == '\x1b' && r.Buffered() >= 2 {
			rest := make([]byte, 2)
			_, _ = io.ReadFull(r, rest)
			text += string(rest)
		}
		keys <- text
	}
}

// looked is the answer to a look at all locks.
type looked struct {
	entries []core.Entry
	err     error
}

// refresh requests the locks, unless a request is in flight. The view continues meanwhile, because Redis may not reply.
func (t *top) refresh() {
	if !t.asked.IsZero() {
		return
	}
	t.asked = time.Now()
	go func() { t.answers <- t.look() }()
}

// look lists the locks.
func (t *top) look() looked {
	ctx, cancel := context.WithTimeout(t.env.ctx, 10*time.Second)
	defer cancel()
	env := *t.env
	env.ctx = ctx
	entries, err := list(&env, t.locks, t.prefix)
	return looked{entries, err}
}

// take keeps an answer. Without one, the view shows what there was before.
func (t *top) take(answer looked) {
	t.asked, t.failure = time.Time{}, answer.err
	if answer.err == nil {
		t.entries, t.seen = answer.entries, time.Now()
	}
}

// slowAnswer is after how long without a reply the view says so.
const slowAnswer = 3 * time.Second

// outage returns what is wrong if the entries are out of date, "" otherwise.
func (t *top) outage() string {
	since := "since " + t.seen.Format("15:04:05")
	switch {
	case t.failure != nil:
		return "OUTAGE, nothing new " + since + ": " + printable(strings.TrimPrefix(t.failure.Error(), "holdfast: "))
	case !t.asked.IsZero() && time.Since(t.asked) > slowAnswer:
		return "OUTAGE, nothing new " + since + ": Redis does not answer"
	}
	return ""
}

// shown returns the entries that pass the filter, in order.
func (t *top) shown() []core.Entry {
	shown := slices.DeleteFunc(slices.Clone(t.entries), func(e core.Entry) bool {
		return !strings.Contains(e.Name, t.filter)
	})
	sortEntries(shown, t.order)
	return shown
}

// press handles a key. It returns false if the view should end.
func (t *top) press(key string) bool {
	if t.prompt != nil {
		t.answer(key)
		return true
	}
	t.message = ""
	switch key {
	case "q", "\x03", "\x04":
		return false
	case "n":
		t.order = "name"
	case "a":
		t.order = "age"
	case "w":
		t.order = "waiters"
	case "j", "\x1b[B":
		t.chosen++
	case "k", "\x1b[A":
		t.chosen--
	case "/":
		t.ask("Only names that contain: ", func(answer string) { t.filter = answer })
	case "u":
		t.askToUnlock()
	}
	t.chosen = max(min(t.chosen, len(t.shown())-1), 0)
	return true
}

// ask begins a prompt.
func (t *top) ask(question string, then func(string)) {
	t.question, t.typed, t.prompt = question, "", then
}

// answer handles a key of a prompt.
func (t *top) answer(key string) {
	switch key {
	case "\r", "\n":
		then := t.prompt
		t.prompt = nil
		then(t.typed)
	case "\x1b", "\x03":
		t.prompt = nil
	case "\x7f", "\b":
		if runes := []rune(t.typed); len(runes) > 0 {
			t.typed = string(runes[:len(runes)-1])
		}
	default:
		if key >= " " && !strings.HasPrefix(key, "\x1b") {
			t.typed += key
		}
	}
}

// askToUnlock asks whether to take the chosen lock away, and takes it from the holders of the entry that is shown. If
// there are others, it does nothing: of a lock with many holders the list has some only.
func (t *top) askToUnlock() {
	shown := t.shown()
	if len(shown) == 0 {
		return
	}
	e := shown[t.chosen]
	// The name comes last: it is seen on a narrow terminal too.
	t.ask(fmt.Sprintf("The holder continues until its next renewal. Force-release %s? Type yes: ", foreign.Quote(e.Name, maxShown)), func(answer string) {
		if answer != "yes" {
			t.message = "nothing was changed"
			return
		}
		forced, err := t.locks.ForceUnlockSeen(t.env.ctx, core.Info{Name: e.Name, Holders: e.Holders})
		switch {
		case errors.Is(err, core.ErrChanged) && e.Holds > len(e.Holders):
			t.message = "not released: it has more holders than top lists, use holdfast unlock"
		case err != nil:
			t.message = err.Error()
		case !forced:
			t.message = "nothing released: its holders have changed"
		default:
			t.message = "force-released: " + named(e.Name)
		}
		t.refresh()
	})
}

// draw returns the whole view, for a terminal in raw mode.
func (t *top) draw() string {
	shown := t.shown()
	t.chosen = max(min(t.chosen, len(shown)-1), 0)
	rows := max(t.height-4, 1)
	first := max(t.chosen-rows+1, 0)
	page := shown[first:min(first+rows, len(shown))]
	var text bytes.Buffer
	_, colours := screen(t.env.stdout.to)
	now := time.Now()
	outage := t.outage()
	if outage != "" {
		now = t.seen // what is shown is not counted on
	}
	lockTable(page, now).write(&text, t.width, colours)
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	if at := t.chosen - first + 1; at < len(lines) && len(page) > 0 {
		lines[at] = "\x1b[7m" + lines[at] + "\x1b[0m"
	}
	waits := 0
	for _, e := range shown {
		waits += waiting(e)
	}
	head := fmt.Sprintf("holdfast top  %s  %d locks, %d waiters, by %s", now.Format("15:04:05"), len(shown), waits, t.order)
	if t.filter != "" {
		head += ", with " + printable(t.filter)
	}
	second := cut(t.where, t.width)
	if outage != "" {
		second = "\x1b[7m" + cut(outage, t.width) + "\x1b[0m"
	}
	all := append([]string{cut(head, t.width), second}, lines...)
	for len(all) < t.height-1 {
		all = append(all, "")
	}
	return "\x1b[H" + strings.Join(append(all, t.foot()), "\x1b[K\r\n") + "\x1b[K\x1b[J"
}

// foot returns the last line: what is typed, the last message, or the keys.
func (t *top) foot() string {
	switch {
	case t.prompt != nil:
		return cutLeft(t.question+printable(t.typed), t.width)
	case t.message != "":
		return cut(printable(t.message), t.width)
	}
	return cut("q quit  n name  a age  w waiters  / filter  j k choose  u unlock", t.width)
}
