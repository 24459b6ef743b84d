package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/lab/bench/shape"
	"github.com/holdfast-go/holdfast/lab/bench/workload"
)

// ServerText returns what the commands of locks cost the server, in Markdown.
func ServerText(book *measure.Book, all []shape.Shape, machine string) string {
	var b strings.Builder
	rounds := len(book.Values(measure.Key{Work: workload.WorkServer, Who: shape.RedissonName, Size: 1, Figure: "pair us"}))
	fmt.Fprintf(&b, "Measured by `make -C lab bench-server` on %s.\n", machine)
	fmt.Fprintf(&b, serverText+"\n\n%s\n", rounds, serverTimes(book, all))
	figure := func(name string) float64 {
		return book.Median(measure.Key{Work: workload.WorkLeft, Who: shape.RedissonName, Size: 1, Figure: name})
	}
	fmt.Fprintf(&b, leftText+"\n\n", Number(figure("pairs")), Number(figure("seconds")))
	b.WriteString(serverLeft(book, all))
	return b.String()
}

// serverTimes is the table of the server's time. The spread is a pair's over the rounds.
func serverTimes(book *measure.Book, all []shape.Shape) string {
	key := func(who, figure string) measure.Key {
		return measure.Key{Work: workload.WorkServer, Who: who, Size: 1, Figure: figure}
	}
	const of = "of " + shape.RedissonName
	rows := [][]string{{"server time of a pair", "lock µs", "unlock µs", "pair µs", of, "spread", "fastest tenth µs", of, "instructions", of}}
	redisson := book.Values(key(shape.RedissonName, "pair us"))
	for _, s := range all {
		times := book.Values(key(s.Name, "pair us"))
		if len(times) == 0 {
			continue
		}
		fastest := measure.FastestTime(times)
		rows = append(rows, []string{
			s.Name, Number(book.Median(key(s.Name, "lock us"))), Number(book.Median(key(s.Name, "unlock us"))),
			Number(measure.Median(times)), roundwise(times, redisson), spread(times),
			Number(fastest), Number(fastest / measure.FastestTime(redisson)),
			whole(book.Median(key(s.Name, "instructions"))),
			Number(book.Median(key(s.Name, "instructions")) / book.Median(key(shape.RedissonName, "instructions"))),
		})
	}
	return Table(rows)
}

// serverLeft is the table of what stays in the server.
func serverLeft(book *measure.Book, all []shape.Shape) string {
	rows := [][]string{{"left by a pair", "bytes", "keys", "bytes later", "keys later", "server µs meanwhile"}}
	idle := book.Median(measure.Key{Work: workload.WorkLeft, Who: shape.Nothing().Name, Size: 1, Figure: "expiry us"})
	for _, s := range all {
		median := func(figure string) float64 {
			return book.Median(measure.Key{Work: workload.WorkLeft, Who: s.Name, Size: 1, Figure: figure})
		}
		rows = append(rows, []string{
			s.Name, whole(median("bytes")), Number(median("keys")), whole(median("bytes later")), Number(median("keys later")),
			Number(median("expiry us") - idle),
		})
	}
	return Table(rows)
}

// whole leaves out the fraction, which buffers of the server make.
func whole(v float64) string { return Number(math.Round(v) + 0) } // + 0: no negative zero
