package main

import (
	"context"
	"time"
)

const (
	clusterRate    = 6000 // locks a second of the Cluster
	clusterClients = 16
	clusterTime    = 3 * time.Second
)

// Clustered is the same load on a number of masters.
type Clustered struct {
	Masters   int     `json:"masters"` // 0 for a server that is no Cluster
	Tag       bool    `json:"tag"`     // true if all names share a hash tag
	PerSecond float64 `json:"perSecond"`
	Commands  float64 `json:"commands"` // for one lock and its unlock
	CPU       float64 `json:"cpu"`      // microseconds of all masters, for the same
	Busiest   float64 `json:"busiest"`  // utilisation
}

// clusterFactor is how much more CPU time a command takes in a Cluster, as measured with one master.
func (c Costs) clusterFactor() float64 {
	factor := 1.
	for _, s := range c.Clusters {
		switch s.Masters {
		case 0:
			factor /= s.CPU
		case 1:
			return max(1, factor*s.CPU)
		}
	}
	return 1
}

// predicted returns the utilisation of the busiest master.
func (s Clustered) predicted(c Costs) float64 {
	var load Load
	load.Add(c.Operations["Mutex"], s.PerSecond)
	if s.Masters > 0 {
		load = load.slower(c.clusterFactor())
	}
	if !s.Tag {
		load = load.Of(max(1, s.Masters))
	}
	return load.Utilisation().Expected
}

// clusters measures the load on one server, and on Clusters of one, two and three masters.
func clusters(ctx context.Context) (all []Clustered, err error) {
	for masters := range 4 {
		s := oneServer()
		if masters > 0 {
			s.stop()
			s = clusterOf(masters)
		}
		for _, prefix := range []string{"", "{tag}"} {
			if prefix != "" && masters < 2 {
				continue // all names are on one master
			}
			logf("clusters: %d masters, prefix %q", masters, prefix)
			c := Clustered{Masters: masters, Tag: prefix != ""}
			if err := c.measure(ctx, s, prefix); err != nil {
				s.stop()
				return nil, err
			}
			all = append(all, c)
		}
		s.stop()
	}
	return all, nil
}

func (c *Clustered) measure(ctx context.Context, s *site, prefix string) error {
	f, err := s.fleet(ctx, clusterClients)
	if err != nil {
		return err
	}
	defer f.close()
	f.prefix = prefix
	mutex := share{works()[0], clusterRate}
	if _, err := f.poisson(ctx, []share{mutex}, 20*time.Millisecond, time.Second); err != nil { // connections and scripts
		return err
	}
	taken, err := f.poisson(ctx, []share{mutex}, 20*time.Millisecond, clusterTime)
	if err != nil {
		return err
	}
	n, used := taken.operations(), taken.total()
	c.PerSecond, c.Commands, c.CPU, c.Busiest = n/taken.seconds, used.Commands/n, micros(used.CPU)/n, taken.utilisation()
	return nil
}
