package main

const second = 1e6 // microseconds

// Load is what one server does in a second: commands, and the sums of their costs.
type Load struct {
	Commands             float64
	batched, warm, idled float64 // microseconds
}

// Range is a prediction.
type Range struct {
	Low      float64 `json:"low"`
	Expected float64 `json:"expected"`
	High     float64 `json:"high"`
}

// Add adds operations.
func (l *Load) Add(o Operation, perSecond float64) {
	l.Commands += o.Commands * perSecond
	l.batched += o.Batched * perSecond
	l.warm += o.Warm * perSecond
	l.idled += o.Idle * o.Commands * perSecond
}

// Of returns the part of the load that one of several servers has, if names spread evenly.
func (l Load) Of(servers int) Load { return l.times(1 / float64(servers)) }

// Utilisation returns the share of one core that the server's main thread uses.
//
// A command costs its script, its part of a read and a write, and a wake-up if the server was idle before. Low is for commands
// that always share pipelines. High is for commands that all find a server that was idle for a long time.
//
// Expected is for requests at random times (Poisson), each with a read of its own. Such a command finds the server idle with
// the probability 1-u, and an idle time lasts as long as the mean time between two commands. So
//
//	u = commands × (warm + (1-u) × wake-up)
func (l Load) Utilisation() Range {
	if l.Commands == 0 {
		return Range{}
	}
	wakeUps := l.idled * coldness(l.Commands)
	return Range{
		Low:      l.batched / second,
		Expected: (l.warm + wakeUps) / (second + wakeUps),
		High:     (l.warm + l.idled) / second,
	}
}

// halfCold is after how many microseconds of idle time a wake-up costs half of the most. It fits Redis 7.0 here, with 2,000
// to 45,000 commands a second, within 5%.
const halfCold = 45

// coldness is the factor of a wake-up that depends on the time between commands: the longer a server was idle, the more
// of what it needs has left the caches of its processor, and the deeper the processor sleeps.
func coldness(commands float64) float64 {
	between := second / commands
	return between / (between + halfCold)
}

// A point is a measured load of one server.
type point struct{ utilisation, commands float64 }

// idleness is how long the server was idle before a command on average, as its wake-up cost sees it.
func (p point) idleness() float64 { return (1 - p.utilisation) * coldness(p.commands) }

// cost is the server's time for each command.
func (p point) cost() float64 { return p.utilisation * second / p.commands }

// warmAndIdle finds what a command costs a busy server, and [Operation.Idle], from two loads. It inverts
// [Load.Utilisation].
func warmAndIdle(busy, calm point) (warm, idle float64) {
	idle = (calm.cost() - busy.cost()) / (calm.idleness() - busy.idleness())
	return busy.cost() - idle*busy.idleness(), idle
}

// capacity returns the greatest factor by which the load may grow before one server has that utilisation.
func (l Load) capacity(utilisation float64) float64 {
	low, high := 0., 1e9
	for range 100 {
		factor := (low + high) / 2
		if l.times(factor).Utilisation().Expected > utilisation {
			high = factor
		} else {
			low = factor
		}
	}
	return low
}

func (l Load) times(factor float64) Load {
	l = l.slower(factor)
	l.Commands *= factor
	return l
}

// slower returns as many commands that cost more.
func (l Load) slower(factor float64) Load {
	return Load{l.Commands, l.batched * factor, l.warm * factor, l.idled * factor}
}
