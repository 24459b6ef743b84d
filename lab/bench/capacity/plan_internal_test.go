package main

import (
	"strings"
	"testing"
	"time"
)

// exampleCosts have round numbers.
func exampleCosts() Costs {
	return Costs{
		Operations: map[string]Operation{"Mutex": example, onceName: example},
		Renewal:    Operation{Commands: 1, Batched: 5, PerRead: 100, Warm: 8, Idle: 30, In: 200, Client: 5},
		Memory:     Memory{Held: map[string]float64{"Mutex": 300}, Record: 500, Mark: 200},
		Processes: Processes{Memory: 10_000, States: []ProcessState{
			{Waits: "Mutex", Names: 1, Commands: 2}, {Waits: "Mutex", Names: 1000, Commands: 300},
		}},
		Clusters: []Clustered{{Masters: 0, CPU: 50}, {Masters: 1, CPU: 55}, {Masters: 2, CPU: 70}},
	}
}

func exampleDemand() Demand {
	return Demand{
		Strategy: "Mutex", Locks: 1000, Hold: 200 * time.Millisecond, TTL: 30 * time.Second, Retention: time.Hour,
		Processes: 10, Utilisation: 0.6,
	}
}

func planOf(t *testing.T, change func(*Demand)) Plan {
	t.Helper()
	d := exampleDemand()
	change(&d)
	p, err := exampleCosts().plan(d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPlan: leases by Little's law, and the products of rates and costs.
func TestPlan(t *testing.T) {
	t.Parallel()
	p := planOf(t, func(*Demand) {})
	for name, got := range map[string][2]float64{
		"commands": {p.Load.Commands, 2000},
		"leases":   {p.Leases, 200},
		"renewals": {p.Renewals, 0}, // all end before a third of the TTL
		"masters":  {float64(p.Masters), 1},
		"in":       {p.In, 700_000},
		"out":      {p.Out, 40_000},
		"client":   {p.Client, 0.025},
		"memory":   {p.Memory, 200*300 + 20*10_000},
		"least":    {float64(p.Connections[0]), 20},
		"most":     {float64(p.Connections[1]), 70},
	} {
		if !near(got[0], got[1]) {
			t.Errorf("%s: %v, want %v", name, got[0], got[1])
		}
	}
}

func TestPlanOfLongHolds(t *testing.T) {
	t.Parallel()
	p := planOf(t, func(d *Demand) { d.Hold = time.Minute })
	if p.Leases != 60_000 || p.Renewals != 6000 || !near(p.Load.Commands, 8000) {
		t.Errorf("%v leases, %v renewals and %v commands a second", p.Leases, p.Renewals, p.Load.Commands)
	}
}

// TestPlanOfRecords: they are kept for their retention.
func TestPlanOfRecords(t *testing.T) {
	t.Parallel()
	p := planOf(t, func(d *Demand) { d.Locks, d.Once, d.Value = 0, 10, 100 })
	if p.Records != 36_000 || !near(p.Memory, 36_000*600+200_000) {
		t.Errorf("%v records, %v bytes", p.Records, p.Memory)
	}
}

// TestPlanOfShortTTLs: releases leave marks.
func TestPlanOfShortTTLs(t *testing.T) {
	t.Parallel()
	p := planOf(t, func(d *Demand) { d.TTL = markTTL })
	if want := 200.*300 + 200_000 + 1000*markSeconds*200; !near(p.Memory, want) {
		t.Errorf("%v bytes, want %v", p.Memory, want)
	}
}

// TestPlanOfACluster: one more master is needed as soon as one is too busy, and commands cost more on several.
func TestPlanOfACluster(t *testing.T) {
	t.Parallel()
	var load Load
	load.Add(example, 1)
	most := load.capacity(0.6)
	if p := planOf(t, func(d *Demand) { d.Locks = 0.99 * most }); p.Masters != 1 {
		t.Errorf("%d masters below what one carries", p.Masters)
	}
	p := planOf(t, func(d *Demand) { d.Locks = 10 * most })
	if fewer := p.Load.Of(p.Masters - 1).Utilisation().Expected; p.Masters < 10 || p.Each.Expected > 0.6 || fewer <= 0.6 {
		t.Errorf("%d masters at %v, one master fewer at %v", p.Masters, p.Each.Expected, fewer)
	}
	if want := 10 * most * example.Batched * 1.1 / second; !near(p.Load.Utilisation().Low, want) {
		t.Errorf("%v cores in pipelines, want %v", p.Load.Utilisation().Low, want)
	}
	if p.Batched >= p.Masters {
		t.Errorf("%d masters with pipelines, %d without", p.Batched, p.Masters)
	}
}

// TestPlanOfWaiters: many names of one process are asked for more rarely.
func TestPlanOfWaiters(t *testing.T) {
	t.Parallel()
	for waiting, want := range map[float64]float64{0: 0, 1: 20, 100: 2000, 500: 3000, 1000: 3000, 2000: 6000} {
		p := planOf(t, func(d *Demand) { d.Locks, d.Waiting = 0, waiting })
		if !near(p.Load.Commands, want) {
			t.Errorf("%v names: %v commands/s, want %v", waiting, p.Load.Commands, want)
		}
	}
}

func TestImpossibleDemandsAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Demand){
		"no such strategy": func(d *Demand) { d.Strategy = "Semaphore" },
		"Once is no lock":  func(d *Demand) { d.Strategy = onceName },
		"no TTL":           func(d *Demand) { d.TTL = 0 },
		"no processes":     func(d *Demand) { d.Processes = 0 },
		"all of the core":  func(d *Demand) { d.Utilisation = 1 },
	} {
		d := exampleDemand()
		change(&d)
		if p, err := exampleCosts().plan(d); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestCalculatorAnswers with the costs that were measured last.
func TestCalculatorAnswers(t *testing.T) {
	t.Parallel()
	costs, err := embeddedCosts()
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range strategies() {
		d := exampleDemand()
		d.Strategy, d.Locks = of.name, 1e6
		p, err := costs.plan(d)
		if err != nil {
			t.Fatal(err)
		}
		if p.Masters < 10 || p.cores() < 5 || p.Memory < 1e6 {
			t.Errorf("%s: %+v", of.name, p)
		}
		if text := p.text(d); !strings.Contains(text, "masters") || strings.Contains(text, "–") {
			t.Errorf("%s:\n%s", of.name, text)
		}
	}
}
