package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"

	"github.com/holdfast-go/holdfast/internal/foreign"
)

// table prints rows in columns that fit the terminal.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// narrowest is the width to which a column shrinks at least.
const narrowest = 8

// write prints the table. On a terminal of that width the widest columns are cut, with an ellipsis, and then the lines;
// 0 is any width. Colours are for terminals only.
func (t *table) write(w io.Writer, width int, colours bool) {
	lines := [][]string{t.head}
	for _, row := range t.rows {
		clean := make([]string, len(row))
		for i, cell := range row {
			clean[i] = printable(cell)
		}
		lines = append(lines, clean)
	}
	widths := fit(widthsOf(lines), width)
	for i, line := range lines {
		var text strings.Builder
		for column, cell := range line {
			cell = runewidth.Truncate(cell, widths[column], "…")
			text.WriteString(cell)
			if column < len(line)-1 {
				text.WriteString(strings.Repeat(" ", widths[column]-runewidth.StringWidth(cell)+2))
			}
		}
		whole := cut(text.String(), width)
		if i == 0 && colours {
			fmt.Fprintf(w, "\x1b[1m%s\x1b[0m\n", whole)
		} else {
			fmt.Fprintln(w, strings.TrimRight(whole, " "))
		}
	}
}

// cut returns the beginning of a text that fits a width; 0 is any width.
func cut(text string, width int) string {
	if width == 0 {
		return text
	}
	return runewidth.Truncate(text, width, "…")
}

// cutLeft returns the end of a text that fits a width; 0 is any width.
func cutLeft(text string, width int) string {
	if over := runewidth.StringWidth(text) - width; width > 0 && over > 0 {
		return runewidth.TruncateLeft(text, over+1, "…")
	}
	return text
}

// widthsOf returns how wide each column is.
func widthsOf(lines [][]string) []int {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], runewidth.StringWidth(cell))
		}
	}
	return widths
}

// fit shrinks the widest column, one cell at a time, until all fit with two blanks in between.
func fit(widths []int, most int) []int {
	for most > 0 {
		sum, widest := 2*(len(widths)-1), 0
		for i, width := range widths {
			sum += width
			if width > widths[widest] {
				widest = i
			}
		}
		if sum <= most || widths[widest] <= narrowest {
			break
		}
		widths[widest]--
	}
	return widths
}

// maxShown bounds a text of others, in bytes. A name has 512 at most.
const maxShown = 2000

// printable returns a text of others on one line, without what a terminal would take for commands: a name may have any bytes, and a
// reason any length.
func printable(text string) string { return foreign.Line(text, maxShown) }

// named returns a name so that it does not look like another one: an operator acts on what is shown.
func named(name string) string { return foreign.Name(name, maxShown) }

// screen returns the width of the terminal that w is, 0 if it is none, and whether to use colours on it.
func screen(w io.Writer) (width int, colours bool) {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		width = 0
	}
	return width, os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// print writes the table to standard output.
func (t *table) print(env *environment) {
	width, colours := screen(env.stdout.to)
	t.write(env.stdout, width, colours)
}

// age returns how long ago a time of the server was, by the clock of this host; "-" if it is zero.
func age(t time.Time) string { return ageAt(t, time.Now()) }

// ageAt is [age] at another time than now.
func ageAt(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return short(max(now.Sub(t), 0))
}

// since returns when a time of the server was and how long ago that is, "-" if it is zero.
func since(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return clockTime(t) + ", " + age(t) + " ago"
}

// short returns a duration with one or two units.
func short(d time.Duration) string {
	switch {
	case d < 0:
		return "never"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}
