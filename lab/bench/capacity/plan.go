package main

import (
	"fmt"
	"math"
	"time"
)

// Demand is what a deployment has to carry.
type Demand struct {
	Strategy    string
	Locks       float64 // a second, each with its unlock
	Hold, TTL   time.Duration
	Once        float64 // a second, each with its end
	Retention   time.Duration
	Value       float64 // bytes of a record
	Processes   int
	Waiting     float64 // names that a process waits for, at any time
	Utilisation float64 // of a master, at most
}

// Plan is what that takes.
type Plan struct {
	Load        Load
	Masters     int     // for [Load.Utilisation]'s Expected
	Batched     int     // masters, if commands always share pipelines
	Each        Range   // utilisation of a master
	Leases      float64 // at any time
	Renewals    float64 // a second
	Records     float64
	Memory      float64 // bytes of all masters, connections included
	Connections [2]int  // of a master: at least, and at most
	In, Out     float64 // bytes a second
	Client      float64 // cores of all clients
}

const (
	// A process with few callers has one connection for commands and one for renewals. With many callers it has four and
	// two. One more is for its subscription.
	leastConnections = 1 + 1
	mostConnections  = 4 + 2 + 1

	renewalsPerTTL = 3
)

// plan multiplies. It assumes that names spread evenly over the slots of the masters.
func (c Costs) plan(d Demand) (p Plan, err error) {
	lock, found := c.Operations[d.Strategy]
	if !found || d.Strategy == onceName {
		return p, fmt.Errorf("no strategy %q, there are Mutex, Fair, Read and Write", d.Strategy)
	}
	if d.TTL <= 0 || d.Utilisation <= 0 || d.Utilisation >= 1 || d.Processes < 1 {
		return p, fmt.Errorf("the TTL and the utilisation must be positive, the utilisation below 1, and one process the least")
	}
	add := func(o Operation, perSecond float64) {
		p.Load.Add(o, perSecond)
		p.In += o.In * perSecond
		p.Out += o.Out * perSecond
		p.Client += o.Client * perSecond / second
	}
	p.Leases = d.Locks * d.Hold.Seconds()
	if interval := d.TTL / renewalsPerTTL; d.Hold >= interval {
		p.Renewals = p.Leases / interval.Seconds()
	}
	p.Records = d.Once * d.Retention.Seconds()
	add(lock, d.Locks)
	add(c.Operations[onceName], d.Once)
	add(c.Renewal, p.Renewals)
	add(lock.times(1/lock.Commands), c.waits(d))
	p.size(d.Utilisation, c.clusterFactor())
	p.Connections = [2]int{leastConnections * d.Processes, mostConnections * d.Processes}
	p.Memory = p.Leases*c.Memory.Held[d.Strategy] + p.Records*(c.Memory.Record+d.Value) +
		float64(p.Masters*p.Connections[0])*c.Processes.Memory
	if d.TTL <= markTTL {
		p.Memory += d.Locks * markSeconds * c.Memory.Mark
	}
	return p, nil
}

// size chooses the number of masters. More than one are a Cluster, where commands cost more.
func (p *Plan) size(utilisation, clusterFactor float64) {
	p.Masters, p.Batched = p.Load.masters(utilisation)
	if p.Masters > 1 {
		p.Load = p.Load.slower(clusterFactor)
		p.Masters, p.Batched = p.Load.masters(utilisation)
	}
	p.Each = p.Load.Of(p.Masters).Utilisation()
}

// masters returns how many keep below a utilisation: by what is expected, and if commands always share pipelines.
func (l Load) masters(utilisation float64) (expected, batched int) {
	if l.Commands == 0 {
		return 1, 1
	}
	return int(math.Ceil(1 / l.capacity(utilisation))), max(1, int(math.Ceil(l.Utilisation().Low/utilisation)))
}

// cores returns the CPU time of all masters in a second.
func (p Plan) cores() float64 { return p.Each.Expected * float64(p.Masters) }

// waits returns the commands of waiters, a second. A process that waits for many names asks for each of them more rarely.
func (c Costs) waits(d Demand) float64 {
	most := math.Inf(1)
	for _, s := range c.Processes.States {
		if s.Waits == d.Strategy {
			most = min(most, s.Commands*max(1, d.Waiting/float64(s.Names)))
		}
	}
	if d.Waiting == 0 || math.IsInf(most, 1) {
		return 0
	}
	return most * float64(d.Processes)
}
