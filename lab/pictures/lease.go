package main

import (
	"fmt"

	"github.com/holdfast-go/holdfast/internal/svg"
)

// Where the seconds of the lease's life are drawn.
const (
	leaseLeft   = 50
	leaseSecond = 7.4
)

func leaseX(second float64) float64 { return leaseLeft + leaseSecond*second }

// lease draws a lease of 30 s that is renewed twice and then lost, because Redis does not reply any more.
func lease() *svg.Picture {
	p := svg.New(392, "The life of a lease",
		"A holder gets a lease of 30 seconds and renews it after 10 and after 20 seconds. From second 30 on Redis does not "+
			"answer. The lease's context ends at ValidUntil, shortly before second 50, when the key expires in Redis. "+
			"Then the next holder gets the lock with a greater token.")
	p.Heading(20, 28, "A lease with a TTL of 30 s, renewed every 10 s")
	for second := 0.0; second <= 60; second += 10 {
		p.Grid(leaseX(second), 62, leaseX(second), 384)
		p.Note(leaseX(second), 54, svg.Middle, fmt.Sprintf("%.0f s", second))
	}
	p.Text(20, 84, svg.Start, "holder A")
	p.Rect(leaseX(0), 94, leaseX(49)-leaseX(0), 34, svg.Held)
	p.Text(leaseX(24.5), 116, svg.Middle, "lease valid, token 33, ctx alive")

	p.Text(20, 160, svg.Start, "key in Redis: each answer is good for 30 s")
	expiries(p)

	p.Arrow(leaseX(49), 300, leaseX(49), 131)
	p.Signal(leaseX(49.5), 314, svg.End, svg.Bad, "ValidUntil: ctx ends with ErrLeaseLost,")
	p.Signal(leaseX(49.5), 331, svg.End, svg.Bad, "a little before the key expires")

	p.Text(20, 372, svg.Start, "holder B")
	p.Rect(leaseX(9), 350, leaseX(50)-leaseX(9), 34, svg.Wait)
	p.Text(leaseX(29.5), 372, svg.Middle, "waits")
	p.Rect(leaseX(50), 350, leaseX(61)-leaseX(50), 34, svg.Held)
	p.Text(leaseX(55.5), 372, svg.Middle, "token 34")
	return p
}

// expiries draws what the grant and each renewal are worth, and the renewals without a reply.
func expiries(p *svg.Picture) {
	for i, name := range []string{"grant", "renewal", "last renewal"} {
		y := 172 + 26*float64(i)
		p.Rect(leaseX(10*float64(i)), y, leaseX(30)-leaseX(0), 20, svg.Good)
		p.Note(leaseX(10*float64(i))+8, y+15, svg.Start, name)
	}
	p.Rect(leaseX(30), 254, leaseX(48.5)-leaseX(30), 20, svg.Bad)
	p.Signal(leaseX(39.2), 269, svg.Middle, svg.Bad, "Redis: no answer")
}
