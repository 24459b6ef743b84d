package main

import "github.com/holdfast-go/holdfast/internal/svg"

// Where the four participants of the fencing picture stand.
const (
	fencingA        = 70
	fencingRedis    = 200
	fencingB        = 320
	fencingDatabase = 445
)

// fencing draws a holder that is paused past its lease and whose late write is refused.
func fencing() *svg.Picture {
	p := svg.New(470, "A fencing token stops a late write",
		"Holder A gets token 33 and is paused. Its lease expires. Holder B gets token 34 and writes with it. Holder A "+
			"continues and writes with token 33. The database has seen 34 and refuses the write.")
	for _, column := range []struct {
		x    float64
		name string
	}{{fencingA, "holder A"}, {fencingRedis, "Redis"}, {fencingB, "holder B"}, {fencingDatabase, "database"}} {
		p.Box(column.x-52, 14, 104, 32, svg.Plain, column.name)
		p.Dashed(column.x, 46, column.x, 456)
	}
	message(p, 76, fencingA, fencingRedis, svg.Plain, "Lock")
	message(p, 108, fencingRedis, fencingA, svg.Held, "token 33")

	p.Box(fencingA-40, 128, 80, 230, svg.Wait, "paused:", "GC, CPU", "limit, VM")
	p.Box(fencingRedis-58, 146, 116, 46, svg.Bad, "lease of A", "expires")

	message(p, 224, fencingB, fencingRedis, svg.Plain, "Lock")
	message(p, 256, fencingRedis, fencingB, svg.Held, "token 34")
	message(p, 298, fencingB, fencingDatabase, svg.Held, "write, token 34")
	p.Box(fencingDatabase-62, 310, 124, 46, svg.Good, "accepted:", "fence = 34")

	message(p, 386, fencingA, fencingDatabase, svg.Bad, "write, token 33")
	p.Box(fencingDatabase-62, 400, 124, 46, svg.Bad, "refused:", "33 < 34")
	return p
}

// message draws an arrow with a text above it.
func message(p *svg.Picture, y, from, to float64, tone svg.Tone, text string) {
	p.Arrow(from, y, to, y)
	p.Signal((from+to)/2, y-6, svg.Middle, tone, text)
}
