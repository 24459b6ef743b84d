package main

import "github.com/holdfast-go/holdfast/internal/svg"

// redlock draws the two rounds of an acquisition on five servers, one of which is down.
func redlock() *svg.Picture {
	p := svg.New(440, "An acquisition by Redlock",
		"Round 1 asks five servers at once. Four grant the lock with tokens 33, 34, 31 and 33, one is down. Three are a "+
			"majority. Round 2 writes the greatest token, 34, to a majority. Then the lease is returned. It is valid for the "+
			"TTL from before round 1, less a hundredth and 2 ms.")
	p.Heading(20, 30, "Round 1: ask all five servers at once")
	servers(p, 44, []string{"token 33", "token 34", "", "token 31", "token 33"})
	p.Text(20, 132, svg.Start, "4 grants. 3 of 5 are a majority. Greatest token: 34.")

	p.Heading(20, 174, "Round 2: write the greatest token")
	servers(p, 188, []string{"token 34", "token 34", "", "token 34", "token 34"})
	p.Text(20, 276, svg.Start, "A majority confirms: the lease is returned, token 34.")

	p.Heading(20, 318, "Validity")
	p.Rect(20, 332, 480, 28, svg.Plain)
	p.Text(492, 351, svg.End, "TTL")
	p.Rect(20, 332, 420, 28, svg.Held)
	p.Dashed(130, 326, 130, 378)
	p.Text(75, 351, svg.Middle, "two rounds")
	p.Text(285, 351, svg.Middle, "the caller has the lease")
	p.Dashed(440, 326, 440, 378)
	p.Note(20, 392, svg.Start, "before the first request")
	p.Note(440, 392, svg.End, "ValidUntil: TTL less 1 % and 2 ms")
	p.Note(20, 422, svg.Start, "Without a majority, the servers are asked to release the lock.")
	return p
}

// servers draws the five servers with what each of them says; one that says nothing is down.
func servers(p *svg.Picture, y float64, said []string) {
	for i, text := range said {
		tone := svg.Good
		if text == "" {
			text, tone = "down", svg.Bad
		}
		p.Box(20+98*float64(i), y, 88, 58, tone, "server "+string(rune('1'+i)), text)
	}
}
