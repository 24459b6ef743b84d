package main

import "github.com/holdfast-go/holdfast/internal/svg"

// fair draws the line of a Fair lock across three processes.
func fair() *svg.Picture {
	p := svg.New(420, "The queue of a Fair lock",
		"Waiters of three processes stand in one queue in Redis, in the order in which their requests arrived. An unlock is "+
			"one script: it grants the lock to the first waiter and notifies its process by a message. Lock returns there "+
			"without another request.")
	p.Heading(20, 28, "Before: requests are numbered as they arrive in Redis")
	processes(p, 44, nil)
	p.Rect(20, 118, 480, 74, svg.Plain)
	p.Note(30, 136, svg.Start, "queue in Redis")
	queue(p, []string{"#1 of A", "#2 of C", "#3 of A", "#4 of B"})

	p.Heading(20, 236, "A unlocks: one script hands the lock over")
	p.Rect(20, 252, 480, 74, svg.Plain)
	p.Note(30, 270, svg.Start, "queue in Redis")
	handedOver(p)
	p.Arrow(140, 316, 140, 344, 415, 344, 415, 362)
	p.Signal(148, 339, svg.Start, svg.Good, "message to C only, with its token")
	processes(p, 362, []string{"", "", "Lock returns"})
	return p
}

// processes draws the three processes in a row, with what happens in each.
func processes(p *svg.Picture, y float64, news []string) {
	for i, name := range []string{"process A", "process B", "process C"} {
		x := 20 + 165*float64(i)
		lines := []string{name}
		tone := svg.Plain
		if news != nil && news[i] != "" {
			lines, tone = append(lines, news[i]), svg.Good
		}
		p.Box(x, y, 150, 46, tone, lines...)
		if news == nil {
			p.Arrow(x+75, y+46, x+75, y+74)
		}
	}
}

// queue draws the holder and those that wait behind it.
func queue(p *svg.Picture, names []string) {
	for i, name := range names {
		tone, role := svg.Wait, "waits"
		if i == 0 {
			tone, role = svg.Held, "holds"
		}
		p.Box(30+116*float64(i), 144, 106, 42, tone, name, role)
	}
}

// handedOver draws the queue after the unlock of its first.
func handedOver(p *svg.Picture) {
	for i, name := range []string{"#2 of C", "#3 of A", "#4 of B"} {
		tone, role := svg.Wait, "waits"
		if i == 0 {
			tone, role = svg.Held, "holds"
		}
		p.Box(88+132*float64(i), 276, 106, 42, tone, name, role)
	}
}
