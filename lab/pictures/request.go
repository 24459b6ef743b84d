package main

import "github.com/holdfast-go/holdfast/internal/svg"

// Where the four participants of the picture of a request stand.
const (
	requestClient  = 66
	requestGuard   = 206
	requestRedis   = 336
	requestHandler = 452
)

// request draws a request with an Idempotency-Key whose response is lost, and its retry.
func request() *svg.Picture {
	p := svg.New(548, "A request with a key, and its retry",
		"The client sends a payment with the key k1. The guard begins the key in Redis, the handler charges the card once, and the "+
			"guard records its response. The response is lost on its way to the client. The client sends the same request again: "+
			"the guard finds the recorded response in Redis and sends it, without calling the handler.")
	for _, column := range []struct {
		x    float64
		name string
	}{{requestClient, "client"}, {requestGuard, "guard"}, {requestRedis, "Redis"}, {requestHandler, "handler"}} {
		p.Box(column.x-48, 14, 96, 32, svg.Plain, column.name)
		p.Dashed(column.x, 46, column.x, 506)
	}
	message(p, 80, requestClient, requestGuard, svg.Plain, "POST, key k1")
	message(p, 112, requestGuard, requestRedis, svg.Plain, "begin k1")
	message(p, 144, requestRedis, requestGuard, svg.Held, "token 33")
	p.Arrow(requestGuard, 176, requestHandler, 176)
	p.Signal((requestGuard+requestRedis)/2, 170, svg.Middle, svg.Plain, "runs it")
	p.Box(requestHandler-52, 186, 104, 46, svg.Good, "charges", "the card")
	p.Arrow(requestHandler, 260, requestGuard, 260)
	p.Signal((requestGuard+requestRedis)/2, 254, svg.Middle, svg.Plain, "201, receipt")
	message(p, 292, requestGuard, requestRedis, svg.Held, "complete k1")
	p.Arrow(requestGuard, 324, (requestClient+requestGuard)/2+8, 324)
	p.Signal((requestClient+requestGuard)/2, 318, svg.Middle, svg.Bad, "201 is lost")

	message(p, 376, requestClient, requestGuard, svg.Plain, "POST, key k1")
	message(p, 408, requestGuard, requestRedis, svg.Plain, "begin k1")
	message(p, 440, requestRedis, requestGuard, svg.Good, "completed")
	message(p, 472, requestGuard, requestClient, svg.Good, "201, replayed")
	p.Box(requestHandler-52, 396, 104, 46, svg.Plain, "does not", "run again")

	p.Note(20, 532, svg.Start, "While the first one runs: 409. Another body with the key: 422.")
	return p
}
