package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
)

// Costs are what a measurement has found. The calculator multiplies them.
type Costs struct {
	Machine string  `json:"machine"`
	Seconds float64 `json:"seconds"` // that the measurement took
	// Operations are a lock with its unlock, and the begin of a Once with its end, by the names of [works].
	Operations map[string]Operation `json:"operations"`
	Renewal    Operation            `json:"renewal"`
	Memory     Memory               `json:"memory"`
	Processes  Processes            `json:"processes"`
	HandOvers  []HandOver           `json:"handOvers"`
	Clusters   []Clustered          `json:"clusters"`
	Checks     []Check              `json:"checks"`
	Checked    MemoryCheck          `json:"checkedMemory"`
}

// Operation has what one operation costs. Times are microseconds.
type Operation struct {
	Commands float64 `json:"commands"`
	// Batched is the server's CPU time if many callers of one process share pipelines of PerRead commands.
	Batched float64 `json:"batched"`
	PerRead float64 `json:"perRead"`
	// Warm is the server's CPU time if each command has a read and a write of its own, and the server is always busy.
	Warm float64 `json:"warm"`
	// Idle is what a command costs more if the server was idle for a long time before it.
	Idle   float64 `json:"idle"`
	In     float64 `json:"in"`     // bytes that the server reads
	Out    float64 `json:"out"`    // bytes that the server writes
	Client float64 `json:"client"` // CPU time of the client, if each command is sent by itself
}

// times returns the operation at a share of its costs.
func (o Operation) times(factor float64) Operation {
	o.Commands *= factor
	o.Batched *= factor
	o.Warm *= factor
	o.In *= factor
	o.Out *= factor
	o.Client *= factor
	return o
}

// Memory has bytes of the server.
type Memory struct {
	Held   map[string]float64 `json:"held"`   // a lease, by strategy
	Record float64            `json:"record"` // a record of Once, without its value
	Mark   float64            `json:"mark"`   // a release of a lease with a TTL up to markTTL, for markSeconds
}

// Processes have what one of many clients that do the same adds. Each has connections of its own, as a process has.
type Processes struct {
	Clients int            `json:"clients"`
	Memory  float64        `json:"memory"` // bytes of a connection
	States  []ProcessState `json:"states"`
}

// ProcessState is what a client does by itself in one state.
type ProcessState struct {
	Name        string  `json:"name"`
	Waits       string  `json:"waits,omitempty"` // for locks of this strategy
	Names       int     `json:"names,omitempty"` // for which a client waits
	Connections float64 `json:"connections"`
	Commands    float64 `json:"commands"` // a second
	CPU         float64 `json:"cpu"`      // microseconds of the server, a second
	Client      float64 `json:"client"`   // the same of the client
}

// HandOver is one name that many callers lock and unlock at once, without holding it.
type HandOver struct {
	Strategy  string  `json:"strategy"`
	Processes int     `json:"processes"`
	Callers   int     `json:"callers"` // of each process
	PerSecond float64 `json:"perSecond"`
	Commands  float64 `json:"commands"`
	CPU       float64 `json:"cpu"`
}

//go:embed costs.json
var embedded []byte

// embeddedCosts returns what the last measurement for the page has found.
func embeddedCosts() (c Costs, err error) {
	if err := json.Unmarshal(embedded, &c); err != nil {
		return c, fmt.Errorf("costs.json: %w", err)
	}
	return c, nil
}

// save writes what the next build of the calculator embeds.
func (c Costs) save(path string) error {
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return fmt.Errorf("costs: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("costs: %w", err)
	}
	return nil
}
