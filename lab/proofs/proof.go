package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// proof is one line of the table.
type proof struct {
	name    string
	shows   string
	minutes int      // how long a part takes, about, on two cores
	alone   bool     // it measures times, so nothing runs beside it
	parts   []string // each runs by itself; none if the proof is run at once
	command string   // for bash, at the root of the repository, with $PART and its number $N, from 1
	needs   string   // a command that fails where the proof cannot be made
	figures []figure
}

// figure is a number in the output of a proof.
type figure struct {
	name    string
	pattern *regexp.Regexp // its first group is the number; without a group, each line that matches counts as one
	least   int64          // of all parts together
	none    bool           // any other number than 0 is a failure
	times   int64          // what the number is multiplied by, if it is not 0
}

func compile(pattern string) *regexp.Regexp { return regexp.MustCompile("(?m)" + pattern) }

// none is a figure that must be 0.
func none(name, pattern string) figure {
	return figure{name: name, pattern: compile(pattern), none: true}
}

// atLeast is a figure that must have that size in all parts together.
func atLeast(n int64, name, pattern string) figure {
	return figure{name: name, pattern: compile(pattern), least: n}
}

// each returns the figure with its number multiplied.
func (f figure) each(times int64) figure {
	f.times = times
	return f
}

// read reads the figures of a part. It returns why they show that it has failed, or nothing.
func (p proof) read(output string) (found map[string]int64, failed string) {
	found = make(map[string]int64)
	for _, f := range p.figures {
		matches := f.pattern.FindAllStringSubmatch(output, -1)
		for _, m := range matches {
			n := int64(1)
			if len(m) > 1 {
				var err error
				if n, err = strconv.ParseInt(strings.ReplaceAll(m[1], ",", ""), 10, 64); err != nil {
					return found, fmt.Sprintf("%s: %v", f.name, err)
				}
			}
			found[f.name] += n * max(f.times, 1)
		}
		switch {
		case len(matches) == 0:
			return found, "the output has no " + f.name
		case f.none && found[f.name] > 0:
			failed = fmt.Sprintf("%d %s", found[f.name], f.name)
		}
	}
	return found, failed
}

// run is a part of a proof.
type run struct {
	*proof
	part string
	n    int
}

// runs returns the parts.
func (p *proof) runs() (all []run) {
	for i, part := range p.parts {
		all = append(all, run{p, part, i + 1})
	}
	if all == nil {
		all = []run{{p, "", 1}}
	}
	return all
}

func (r run) String() string { return strings.TrimSuffix(r.name+" "+r.part, " ") }

// row returns the row of a run that is valid for the code, if there is one.
func (r run) row(rows []row, code string) (row, bool) {
	i := slices.IndexFunc(rows, func(old row) bool { return old.Part == r.part && old.valid(code, r.command) })
	if i < 0 {
		return row{}, false
	}
	return rows[i], true
}

// numbers are the parts of a proof that only differ in their number.
func numbers(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%02d", i+1))
	}
	return all
}
