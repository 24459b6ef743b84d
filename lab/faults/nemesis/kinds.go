package nemesis

import (
	"slices"

	"github.com/holdfast-go/holdfast/lab/faults/topology"
)

// What faults are possible on.
var (
	oneServer       = []topology.Kind{topology.Memory, topology.AOF, topology.Clock}
	forgetful       = []topology.Kind{topology.Memory, topology.AOF, topology.Sentinel}
	inMemory        = []topology.Kind{topology.Memory}
	persistentOrNot = []topology.Kind{topology.Memory, topology.AOF}
	onDisk          = []topology.Kind{topology.AOF, topology.Clock, topology.Redlock}
	settable        = []topology.Kind{topology.Clock}
	noReplicas      = []topology.Kind{topology.Memory, topology.AOF, topology.Clock, topology.Redlock}
	sentinels       = []topology.Kind{topology.Sentinel, topology.SentinelAck}
	clusters        = []topology.Kind{topology.Cluster, topology.ClusterAck}
	replicated      = slices.Concat(sentinels, clusters)
)

func (f fault) applies(kind topology.Kind) bool { return f.on == nil || slices.Contains(f.on, kind) }

// always is for faults by which any server forgets.
func always(why string) func(topology.Kind) string {
	return func(topology.Kind) string { return why }
}

// Failover returns why a failover loses locks, see [history.Event]: it does unless they are acknowledged by replicas.
func Failover(kind topology.Kind) string {
	if kind == topology.SentinelAck || kind == topology.ClusterAck {
		return ""
	}
	return "asynchronous failover"
}

// all are the faults, by row.
var all = slices.Concat(linkFaults, workerFaults, serverFaults, stateFaults, replicaFaults)

// Names returns the row of each fault that a topology can have, by its name.
func Names(kind topology.Kind) map[string]int {
	names := make(map[string]int)
	for _, f := range all {
		if f.applies(kind) {
			names[f.name] = f.row
		}
	}
	return names
}
