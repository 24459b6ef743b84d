package lockconformance

import "testing"

// TestRoom: the room must notice what a lock that does not hold lets happen, since no such lock is ever tested.
func TestRoom(t *testing.T) {
	t.Parallel()
	type step struct {
		shared bool
		token  int64 // 0 to leave
	}
	const alone, share = false, true
	for name, test := range map[string]struct {
		steps []step
		wrong bool // the last step
	}{
		"one after another":          {[]step{{alone, 1}, {alone, 0}, {alone, 2}}, false},
		"two at once":                {[]step{{alone, 1}, {alone, 2}}, true},
		"sharing":                    {[]step{{share, 1}, {share, 2}, {share, 3}}, false},
		"sharing with one alone":     {[]step{{alone, 1}, {share, 2}}, true},
		"alone with one who shares":  {[]step{{share, 1}, {share, 2}, {share, 0}, {alone, 3}}, true},
		"alone after all who shared": {[]step{{share, 1}, {share, 2}, {share, 0}, {share, 0}, {alone, 3}}, false},
		"the same token":             {[]step{{alone, 2}, {alone, 0}, {alone, 2}}, true},
		"sharing in any order":       {[]step{{alone, 1}, {alone, 0}, {share, 3}, {share, 2}}, false},
		"sharing with an old token":  {[]step{{alone, 2}, {alone, 0}, {share, 3}, {share, 2}}, true},
		"older than who shared":      {[]step{{share, 2}, {share, 3}, {share, 0}, {share, 0}, {alone, 3}}, true},
	} {
		var r room
		for i, s := range test.steps {
			if s.token == 0 {
				r.leave(s.shared)
				continue
			}
			err := r.enter(s.shared, s.token)
			if last := i == len(test.steps)-1; (err != nil) != (last && test.wrong) {
				t.Errorf("%s: step %d: error %v", name, i+1, err)
			}
		}
	}
}
