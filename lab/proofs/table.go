package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	tableBegins = "<!-- the table of make -C lab proofs -->\n"
	tableEnds   = "<!-- its end -->\n"
)

// writeTable puts the table into a page, between the two lines.
func writeTable(page, rows, commit string, files tree) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !ok || !ends {
		return fmt.Errorf("%s has no place for the table", page)
	}
	table, err := tableOf(rows, commit, files)
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(before+tableBegins+"\n"+table+"\n"+tableEnds+after), 0o644)
}

func tableOf(dir, commit string, files tree) (string, error) {
	var b strings.Builder
	complete := 0
	for _, p := range proofs {
		rows, err := rowsOf(dir, p.name)
		if err != nil {
			return "", err
		}
		s := p.stateOf(rows, files.code(p.name))
		if s.passed {
			complete++
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", p.name, p.shows, s.figures, s.took, s.commit, s.outcome)
	}
	return fmt.Sprintf("%d of %d proofs have passed on the code of the commit %s.\n\n"+
		"| proof | shows | figures | took | commit | outcome |\n| --- | --- | --- | --- | --- | --- |\n%s",
		complete, len(proofs), commit, &b), nil
}

// state is what the table says of a proof.
type state struct {
	figures, took, commit, outcome string
	passed                         bool
	few                            bool // each part has passed, but together they have shown too little
}

// stateOf adds up the rows of a proof. Rows of other code count only if there is none of this code, and are named so.
func (p proof) stateOf(rows []row, code string) (s state) {
	var valid, stale []row
	for _, r := range p.runs() {
		if found, ok := r.row(rows, code); ok {
			valid = append(valid, found)
		} else if i := slices.IndexFunc(rows, func(old row) bool { return old.Part == r.part }); i >= 0 {
			stale = append(stale, rows[i])
		}
	}
	use := valid
	if len(valid) == 0 {
		use = stale
	}
	if len(use) == 0 {
		return state{outcome: "not run", figures: "–", took: "–", commit: "–"}
	}
	sums, seconds, before := make(map[string]int64), 0, 0
	var commits, failed []string
	for _, r := range use {
		for name, n := range r.Figures {
			sums[name] += n
		}
		seconds += r.Seconds
		before += r.Before
		if !slices.Contains(commits, r.Commit) {
			commits = append(commits, r.Commit)
		}
		if r.Failed != "" {
			failed = append(failed, strings.TrimSpace(r.Part+" "+r.Failed))
		}
	}
	var figures []string
	all := len(use) == len(p.runs())
	good := all && len(failed) == 0
	for _, f := range p.figures {
		figures = append(figures, thousands(sums[f.name])+" "+f.name)
		if good && sums[f.name] < f.least {
			failed = append(failed, fmt.Sprintf("%s %s are fewer than %s", thousands(sums[f.name]), f.name, thousands(f.least)))
		}
	}
	s = state{
		figures: strings.Join(figures, ", "), took: (time.Duration(seconds) * time.Second).String(), commit: strings.Join(commits, " "),
		few: good && len(failed) > 0,
	}
	switch {
	case len(failed) > 0:
		s.outcome = "**failed:** " + strings.ReplaceAll(strings.Join(failed, "; "), "|", `\|`)
	case all:
		s.outcome = "passed"
	default:
		s.outcome = fmt.Sprintf("%d of %d parts", len(use), len(p.runs()))
	}
	if before > 0 {
		s.outcome += fmt.Sprintf(", after %d failed runs", before)
	}
	if len(valid) == 0 {
		s.outcome += ", **on other code**"
	}
	s.passed = len(valid) > 0 && all && len(failed) == 0
	return s
}

// thousands writes a number with commas.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
