package waiting_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestBreachesAreFound shows that the checks can fail.
func TestBreachesAreFound(t *testing.T) {
	t.Parallel()
	write := func(number, token int64) coretest.LocalWaiter {
		return coretest.LocalWaiter{Write: true, Number: number, Token: token, To: token + 5}
	}
	read := func(number, token int64) coretest.LocalWaiter {
		return coretest.LocalWaiter{Number: number, Token: token, To: token + 5}
	}
	for name, turns := range map[string][]coretest.LocalWaiter{
		"overtaken": {write(1, 10), write(3, 20), write(2, 30)},
		"barging":   {write(1, 10), read(25, 25), write(20, 30)},
		"starving":  {write(1, 10), write(2, 20), read(9, 30)},
	} {
		if len(coretest.Unruly(turns)) == 0 {
			t.Errorf("%s was not found", name)
		}
	}
	fair := []coretest.LocalWaiter{write(1, 10), read(2, 20), read(3, 21), write(22, 30)}
	preferred := []coretest.LocalWaiter{write(1, 10), read(12, 20), read(13, 21), write(11, 30), read(35, 35)}
	for _, turns := range [][]coretest.LocalWaiter{fair, preferred} {
		if found := coretest.Unruly(turns); len(found) != 0 {
			t.Errorf("a sound history was refused: %v", found)
		}
	}
	if len(coretest.Overtakers(fair)) != 0 || len(coretest.Overtakers(preferred)) == 0 {
		t.Error("arrival order is not told from that of readers who go first")
	}
}
