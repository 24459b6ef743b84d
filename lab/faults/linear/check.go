package linear

import (
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-go/holdfast/lab/faults/history"
)

const (
	// searchTimeout bounds the search in one partition, or in one piece of it.
	searchTimeout = 10 * time.Second
	// checkTimeout bounds all searches in one history. Those that it leaves out are unknown.
	checkTimeout = 2 * time.Minute
)

// Check judges a history. Its searches take two minutes at most, see [Report.Unknown]. Each illegal partition takes as much
// as 10 s more, for the line that explains it.
func Check(events []history.Event) *Report {
	r := NewReport()
	deadline := time.Now().Add(checkTimeout)
	for _, p := range parts(events) {
		r.judge(p, min(searchTimeout, time.Until(deadline)))
	}
	return r
}

// baseline is the row of the unfenced side of the register, which accepts all writes. The model has to find that illegal.
const baseline = "baseline: no fence"

// parts makes operations of a history, by partition.
func parts(events []history.Event) (all []part) {
	record := read(events)
	for _, name := range slices.Sorted(maps.Keys(record.leases)) {
		leases, looks := record.leases[name], record.looks[name]
		if len(looks) > 0 && len(leases)+len(looks) <= mostLeases && !answersMayBeOld(record.topology) {
			all = append(all, electionPart(name, leases, looks, record.faults))
		} else {
			all = append(all, lockParts(name, leases, record.faults)...)
		}
	}
	for model, resources := range map[string]map[string][]write{"register": record.writes, baseline: record.stale} {
		for _, name := range slices.Sorted(maps.Keys(resources)) {
			all = append(all, fenceParts(model, name, resources[name])...)
		}
	}
	return all
}

// judge adds what porcupine says of one partition. A timeout of 0 or less means that no time is left.
func (r *Report) judge(p part, timeout time.Duration) {
	verdict := porcupine.CheckResult(porcupine.Unknown)
	if timeout > 0 {
		verdict = porcupine.CheckOperationsTimeout(p.rules, p.ops, timeout)
	}
	count := Count{Partitions: 1, Operations: len(p.ops), Excused: p.excused}
	switch verdict {
	case porcupine.Ok:
	case porcupine.Illegal:
		count.Illegal = 1
	default:
		count.Unknown = 1
	}
	if p.model == baseline {
		r.Baseline = r.Baseline.plus(count)
		return
	}
	r.Models[p.model] = r.Models[p.model].plus(count)
	if count.Illegal > 0 {
		r.illegal(p)
	}
	if count.Unknown > 0 {
		r.Unknown = append(r.Unknown, p.model+" "+p.name)
	}
}
