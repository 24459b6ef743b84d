package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// row is the outcome of one part of a proof.
type row struct {
	Part    string           `json:"part,omitempty"`
	Commit  string           `json:"commit"`
	Code    string           `json:"code"`
	Command string           `json:"command"`
	Date    time.Time        `json:"date"`
	Seconds int              `json:"seconds"`
	Figures map[string]int64 `json:"figures"`
	Failed  string           `json:"failed,omitempty"` // why; empty if it passed
	// Before is how often the part had failed on the same code before this run.
	Before int `json:"failed_before,omitempty"`
}

// rowsOf reads the rows of a proof.
func rowsOf(dir, proof string) ([]row, error) {
	text, err := os.ReadFile(filepath.Join(dir, proof+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var rows []row
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("%s: %w", proof, err)
	}
	return rows, nil
}

// keep writes a row in the place of an older one of the same part.
func keep(dir, proof string, r row) error {
	rows, err := rowsOf(dir, proof)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(rows, func(old row) bool { return old.Part == r.Part }); i < 0 {
		rows = append(rows, r)
	} else {
		if old := rows[i]; old.valid(r.Code, r.Command) {
			r.Before = old.Before
			if old.Failed != "" {
				r.Before++
			}
		}
		rows[i] = r
	}
	text, err := json.MarshalIndent(rows, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, proof+".json"), append(text, '\n'), 0o644)
}

// valid returns true if a row is of this code and command.
func (r row) valid(code, command string) bool { return r.Code == code && r.Command == command }
