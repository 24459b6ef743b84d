package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how far the crowd is.
type progress interface {
	add() // one more user; may be called by many at once
	end() // leaves the last state on the screen
}

// newProgress returns a bar on a terminal, and lines everywhere else.
func newProgress(out *os.File, total int) progress {
	if !term.IsTerminal(int(out.Fd())) {
		return &lines{out: out, total: int64(total)}
	}
	return bar{out, progressbar.NewOptions(total,
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetDescription("users"),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionFullWidth(),
	)}
}

type bar struct {
	out io.Writer
	bar *progressbar.ProgressBar
}

func (b bar) add() { b.bar.Add(1) }

func (b bar) end() {
	b.bar.Exit()
	fmt.Fprintln(b.out)
}

// lines says something at every tenth of the way.
type lines struct {
	out   io.Writer
	total int64
	done  atomic.Int64
}

func (l *lines) add() {
	done := l.done.Add(1)
	if tenth := done * 10 / l.total; tenth != (done-1)*10/l.total {
		fmt.Fprintf(l.out, "%3d%%  %d of %d users served\n", tenth*10, done, l.total)
	}
}

func (l *lines) end() {}
