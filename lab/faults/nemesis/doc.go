// Package nemesis breaks workers, links and servers, by a seed: at most two things at once, with quiet times between.
// Every fault carries its row of the catalogue in lab/faults/RESULTS.md.
package nemesis
