package main

import (
	"fmt"
	"strings"
	"time"
)

// columns is how long a line of the report may be.
const columns = 80

// duration explains how long the sale took.
func (r *report) duration() string {
	took := brief(r.tally.took)
	if r.config.unguarded {
		return wrap(fmt.Sprintf("Why it took %s: no request waited for another one, and none asked Redis for a lock. Many "+
			"requests read the same stock before one of them wrote, and all of them sold from it.", took))
	}
	p := r.watch.pace()
	if p.grants < 2 {
		return fmt.Sprintf("It took %s.", took)
	}
	text := fmt.Sprintf("Why it took %s: the stock lock was in demand for %s of it. All orders change one stock, so one lock "+
		"guards it, and the orders run one after the other: %d grants, one every %s on average. The median holder kept the lock "+
		"for %s: it read the stock, asked another service, which takes 1 to 3 ms, and wrote. The rest is the way of "+
		"the lock from one holder to the next. Beside that, each guard asks Redis before and after its handler, and requests "+
		"for one cart or payment wait for each other.",
		took, brief(p.selling), p.grants, brief(p.selling/time.Duration(p.grants-1)), brief(p.held))
	if r.embedded {
		text += " The embedded Redis is slower than a real one, which REDIS_URL can name."
	}
	return wrap(text + " To sell faster, split the stock: docs/recipes.md#one-order-per-user. With -unguarded nothing waits, and " +
		"the result is wrong.")
}

// pace is how the lock on the stock went from one order to the next.
type pace struct {
	grants  int
	selling time.Duration // from the first grant to the last
	held    time.Duration // the median
}

func (w *watch) pace() pace {
	w.mu.Lock()
	defer w.mu.Unlock()
	return pace{grants: w.granted, selling: w.lastGrant.Sub(w.firstGrant), held: quantile(w.held, 0.5)}
}

// wrap breaks a text into lines between words.
func wrap(text string) string {
	var b strings.Builder
	length := 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case length == 0:
		case length+1+n > columns:
			b.WriteByte('\n')
			length = 0
		default:
			b.WriteByte(' ')
			length++
		}
		b.WriteString(word)
		length += n
	}
	return b.String()
}
