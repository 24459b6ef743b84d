package main

import (
	"fmt"
	"math"

	"github.com/holdfast-go/holdfast/lab/bench/report"
)

// check is the table of predictions beside what was measured.
func (c Costs) check() string {
	rows := [][]string{{
		"load", "of the most", "operations/s", "commands/s", "reads of each", "predicted", "at least", "at most", "measured",
		"off by",
	}}
	for _, k := range c.Checks {
		rows = append(rows, []string{
			k.Load, share100(k.Share), number(k.PerSecond), number(k.Commands), number(k.PerCommand), share100(k.Predicted.Expected),
			share100(k.Predicted.Low), share100(min(1, k.Predicted.High)), share100(k.Measured), off(k.Predicted.Expected, k.Measured),
		})
	}
	return report.Table(rows)
}

// verdict states the error.
func (c Costs) verdict() string {
	within, least, most := 0, math.Inf(1), math.Inf(-1)
	for _, k := range c.Checks {
		if k.Predicted.Low <= k.Measured && k.Measured <= k.Predicted.High {
			within++
		}
		least, most = min(least, k.Predicted.Expected/k.Measured-1), max(most, k.Predicted.Expected/k.Measured-1)
	}
	text := fmt.Sprintf("Of %d measured utilisations, %d are between the bounds. The prediction is %+.0f%% to %+.0f%% off.",
		len(c.Checks), within, percent*least, percent*most)
	if c.Checked.Measured > 0 {
		text += fmt.Sprintf("\nThe memory after the last row is %s MB, and the prediction %s MB (%s).", number(c.Checked.Measured/1e6),
			number(c.Checked.Predicted/1e6), off(c.Checked.Predicted, c.Checked.Measured))
	}
	return text
}
