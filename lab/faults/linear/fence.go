package linear

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// write is one write to a resource of the register, which decided at that time.
type write struct {
	at      int64
	by      string
	token   int64
	refused bool
}

// fenceModel is the model of a fenced resource: its state is the greatest token of the writes before. A write is
// refused exactly if its token is smaller.
func fenceModel(greatest int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return greatest },
		Step: func(state, input, _ any) (bool, any) {
			seen, w := state.(int64), input.(write)
			return w.refused == (w.token < seen), max(seen, w.token)
		},
		DescribeOperation: func(input, _ any) string {
			w := input.(write)
			if w.refused {
				return fmt.Sprintf("write %d by %s: refused", w.token, w.by)
			}
			return fmt.Sprintf("write %d by %s", w.token, w.by)
		},
	}
}

// mostWrites bounds how many writes are judged together. The next ones begin with the greatest token before them.
const mostWrites = 4000

// fenceParts makes the operations of one resource.
func fenceParts(model, name string, writes []write) (all []part) {
	greatest := int64(0)
	for some := range slices.Chunk(writes, mostWrites) {
		p := part{model: model, name: name, rules: fenceModel(greatest)}
		for _, w := range some {
			p.ops = append(p.ops, porcupine.Operation{Input: w, Call: w.at, Return: w.at})
			greatest = max(greatest, w.token)
		}
		all = append(all, p)
	}
	return all
}
