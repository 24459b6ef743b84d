package linear

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// notInNames are the characters that a name may have and a file should not.
var notInNames = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// Draw writes a picture of each illegal partition beside the history in that file, as porcupine draws it: a page of HTML
// that needs no network. It returns the paths, and the errors of writing.
func (r *Report) Draw(history string) (paths []string, err error) {
	for i, p := range r.found {
		path := fmt.Sprintf("%s-%d-%s-%s.html", strings.TrimSuffix(history, ".jsonl"), i+1, p.model,
			strings.Trim(notInNames.ReplaceAllString(p.name, "-"), "-"))
		if failed := p.draw(path); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		paths = append(paths, path)
	}
	return paths, err
}

func (p part) draw(path string) error {
	rows(p.ops)
	_, info := porcupine.CheckOperationsVerbose(p.rules, p.ops, searchTimeout)
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(porcupine.Visualize(p.rules, info, out), out.Close())
}

// rows gives each operation a row of the picture in which no other one is at the same time. Porcupine calls the rows
// clients.
func rows(ops []porcupine.Operation) {
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var free []int64 // when each row is free
	for i := range ops {
		row := slices.IndexFunc(free, func(at int64) bool { return at < ops[i].Call })
		if row < 0 {
			row, free = len(free), append(free, 0)
		}
		ops[i].ClientId, free[row] = row, ops[i].Return
	}
}
