package report

import (
	"fmt"

	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/lab/bench/workload"
)

// scaleGoals are the goals for very many leases, waiters and readers of one client, and of the HTTP guard.
func scaleGoals(book *measure.Book) []goal {
	waits, crowd := many(book, workload.WorkWaiters, ourName), many(book, workload.WorkCrowd, "holdfast Fair")
	readers := many(book, workload.WorkCrowd, "holdfast Read")
	leases := many(book, workload.WorkLeases, ourName)
	lease := func(figure string) float64 {
		return book.Median(measure.Key{Work: workload.WorkLeases, Who: ourName, Size: leases, Figure: figure})
	}
	waiter := func(figure string) measure.Key {
		return measure.Key{Work: workload.WorkWaiters, Who: ourName, Size: waits, Figure: figure}
	}
	few := func(k measure.Key) measure.Key { k.Size = workload.Few; return k }
	cost := func(who string, n int) measure.Key {
		return measure.Key{Work: workload.WorkCrowd, Who: who, Size: n, Figure: "server us"}
	}
	once := func(who, figure string) measure.Key {
		return measure.Key{Work: workload.WorkOnce, Who: who, Size: 1, Figure: figure}
	}
	held := fmt.Sprintf("%s leases for %s s: ", Number(float64(leases)), Number(lease("seconds")))
	waiting := fmt.Sprintf("%s waiters on as many names: ", Number(float64(waits)))
	return []goal{
		{work: held + "lost", limit: 0, reached: lease("lost")},
		{work: held + "goroutines", limit: 10, reached: lease("goroutines")},
		{work: held + "heap of one", limit: 1024, unit: " bytes", reached: lease("heap per lease")},
		{work: held + "share of one core", limit: 0.2, reached: lease("cpu")},
		{work: held + "renewals per read of the server", limit: 50, atLeast: true, reached: lease("renewals per read")},
		{work: waiting + "subscribed connections", limit: 1, reached: book.Median(waiter("subscribed connections"))},
		{
			work: waiting + "heap of one", limit: 4096, unit: " bytes", reached: book.Median(waiter("heap per waiter")),
		},
		{
			work: waiting + "heap of one and the stack of its goroutine", limit: 4096, unit: " bytes",
			reached: book.Median(waiter("heap per waiter")) + book.Median(waiter("stack per waiter")),
		},
		{
			work: waiting + "commands of a wake-up, of those beside 10", limit: 1, unit: " ×",
			reached: ratio(book, waiter("wake-up commands"), few(waiter("wake-up commands"))),
		},
		{
			work: waiting + "time of a wake-up, of that beside 10", limit: 1.5, unit: " ×",
			reached: book.Median(waiter("wake-up us")) / book.Median(few(waiter("wake-up us"))),
		},
		{
			work:  fmt.Sprintf("Fair, %s waiters: server time of a grant, of that beside 10", Number(float64(crowd))),
			limit: 1.5, unit: " ×",
			reached: ratio(book, cost("holdfast Fair", crowd), cost("holdfast Fair", workload.Few)),
		},
		{
			work:  fmt.Sprintf("Read, %s readers: server time of a pair, of that beside 10", Number(float64(readers))),
			limit: 1.5, unit: " ×",
			reached: ratio(book, cost("holdfast Read", readers), cost("holdfast Read", workload.Few)),
		},
		{work: "httplock.Once: commands", limit: 2, reached: book.Median(once(workload.OnceName, "commands"))},
		{
			work: "httplock.Once: time, of its two scripts, bare", limit: 1.2, unit: " ×",
			reached: ratio(book, once(workload.OnceName, "p50 us"), once(workload.BareTrips, "p50 us")),
		},
	}
}

// many is the greatest size of a workload that was measured.
func many(book *measure.Book, work, who string) (most int) {
	for _, k := range book.Keys(work) {
		if k.Who == who {
			most = max(most, k.Size)
		}
	}
	return most
}

// scale lists the figures behind those goals, which no peer is compared in.
func scale(book *measure.Book) string {
	rows := [][]string{{"who", "how many", "figure", "median", "spread"}}
	for _, work := range []string{workload.WorkLeases, workload.WorkWaiters, workload.WorkCrowd, workload.WorkOnce} {
		for _, k := range book.Keys(work) {
			values, around := book.Values(k), "–"
			if len(values) > 1 {
				around = spread(values)
			}
			rows = append(rows, []string{
				k.Who, Number(float64(k.Size)), work + ": " + k.Figure, Number(measure.Median(values)), around,
			})
		}
	}
	return Table(rows)
}
