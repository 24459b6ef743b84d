package linear_test

import "testing"

// TestRegister has histories of writes to a fenced resource.
func TestRegister(t *testing.T) {
	t.Parallel()
	judged{
		legal: map[string]*story{
			"tokens that rise":     begin().write(1, 5, false).write(2, 5, false).write(3, 6, false),
			"an old token refused": begin().write(1, 5, false).write(2, 6, false).write(3, 5, true).write(4, 6, false),
			"at one moment":        begin().write(1, 6, false).write(1, 5, false),
		},
		illegal: map[string]*story{
			"an old token accepted": begin().write(1, 5, false).write(2, 6, false).write(3, 5, false),
			"a new token refused":   begin().write(1, 5, false).write(2, 6, true),
			"an equal one refused":  begin().write(1, 5, false).write(2, 5, true),
		},
	}.run(t, "register")
}

// TestControl shows that the unfenced side of the register is judged by the same model, and counted apart.
func TestControl(t *testing.T) {
	t.Parallel()
	for old, want := range map[bool]int{false: 0, true: 1} {
		s := begin().writeUnfenced(1, 5, false).writeUnfenced(2, 6, false)
		if old {
			s.writeUnfenced(3, 5, true)
		}
		r := s.check()
		if r.Baseline.Partitions != 1 || r.Baseline.Illegal != want || len(r.Illegal) != 0 || len(r.Models) != 0 {
			t.Errorf("old write %v: baseline %+v, illegal %q, models %+v", old, r.Baseline, r.Illegal, r.Models)
		}
	}
}
