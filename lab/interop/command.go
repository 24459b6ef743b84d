package interop

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Command is one line of input: "id thread verb key=value...". No part of it contains a blank. Commands of one thread
// are carried out one after the other, others at the same time.
type Command struct {
	ID, Thread, Verb string
	Arguments        map[string]string
}

// String is the line without its end.
func (c Command) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", c.ID, c.Thread, c.Verb)
	for key, value := range c.Arguments {
		fmt.Fprintf(&b, " %s=%s", key, value)
	}
	return b.String()
}

// ParseCommand reads a line.
func ParseCommand(line string) (Command, error) {
	words := strings.Fields(line)
	if len(words) < 3 {
		return Command{}, fmt.Errorf("command %q: want id, thread and verb", line)
	}
	c := Command{ID: words[0], Thread: words[1], Verb: words[2], Arguments: make(map[string]string)}
	for _, word := range words[3:] {
		key, value, _ := strings.Cut(word, "=")
		c.Arguments[key] = value
	}
	return c, nil
}

// names are the names of the locks that the command is about: several, with commas between, if it joins them.
func (c Command) names() []string { return strings.Split(c.Arguments["name"], ",") }

func (c Command) has(key string) bool {
	_, ok := c.Arguments[key]
	return ok
}

// number reads a number; it is 0 if there is none.
func (c Command) number(key string) int {
	n, _ := strconv.Atoi(c.Arguments[key])
	return n
}

// duration reads a number of such units; it is 0 if there is none.
func (c Command) duration(key string, unit time.Duration) time.Duration {
	n, _ := strconv.ParseInt(c.Arguments[key], 10, 64)
	return time.Duration(n) * unit
}

// Answer is one line of output: "id ok|error began ended value", with the machine's clock in microseconds before and
// after. The value of an error begins with its class.
type Answer struct {
	ID           string
	Failed       bool
	Began, Ended int64
	Value        string
}

// String is the line without its end.
func (a Answer) String() string {
	status := "ok"
	if a.Failed {
		status = "error"
	}
	return fmt.Sprintf("%s %s %d %d %s", a.ID, status, a.Began, a.Ended, strings.ReplaceAll(a.Value, "\n", " "))
}

// ParseAnswer reads a line.
func ParseAnswer(line string) (Answer, error) {
	parts := strings.SplitN(line, " ", 5)
	if len(parts) < 5 {
		return Answer{}, fmt.Errorf("answer %q: want five parts", line)
	}
	began, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return Answer{}, fmt.Errorf("answer %q: %w", line, err)
	}
	ended, err := strconv.ParseInt(parts[3], 10, 64)
	if err != nil {
		return Answer{}, fmt.Errorf("answer %q: %w", line, err)
	}
	return Answer{parts[0], parts[1] != "ok", began, ended, parts[4]}, nil
}
