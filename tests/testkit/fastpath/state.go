package fastpath

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
)

// frozenAt is the second at which the clocks of frozenClock stand: in 2050. All expiries are near that time.
const frozenAt int64 = 2_524_608_000

// State is what Redis contains before a script runs, and what the script is asked for.
type State struct {
	Keys []string // the script's KEYS
	Args []string // the script's ARGV

	setup    [][]any  // the commands that make the state
	micros   int64    // of the clock, behind frozenAt
	refused  []string // commands that the user may not run
	messages string   // the key of the list of published messages
}

func (s *State) String() string {
	text := fmt.Sprintf("clock: %d.%06d\nKEYS: %q\nARGV: %q\n", frozenAt, s.micros, s.Keys, s.Args)
	if len(s.refused) > 0 {
		text += fmt.Sprintf("refused commands: %q\n", s.refused)
	}
	return text
}

// stored returns the keys that the script may change.
func (s *State) stored() []string { return append(slices.Clone(s.Keys), s.messages) }

// Draw makes one random state: what a [Path] draws the keys and arguments with.
type Draw struct {
	*rand.Rand
	*State
	name string
}

// newState returns the i-th state of a seed.
func newState(seed uint64, i int, draw func(*Draw)) *State {
	d := &Draw{Rand: rand.New(rand.NewPCG(seed, uint64(i))), State: new(State)}
	d.name = fmt.Sprintf("%08x", d.Uint32()) + "-" + strconv.Itoa(i)
	d.messages = d.Key("messages")
	// The fast paths put seconds and microseconds together as text, so microseconds with fewer digits matter.
	d.micros = d.Int64N(OneOf(d, []int64{1, 10, 1000, 1_000_000}))
	if d.Chance(12) {
		d.refused = OneOf(d, [][]string{{"PEXPIRE"}, {"PEXPIRE", "DEL"}, {"SET"}, {"HSET"}})
	}
	draw(d)
	return d.State
}

// AllowAll lets the user run all commands, for paths that do the same with different ones.
func (d *Draw) AllowAll() { d.refused = nil }

// OneOf returns one of the values.
func OneOf[T any](d *Draw, all []T) T { return all[d.IntN(len(all))] }

// Chance returns true in so many of 100 cases.
func (d *Draw) Chance(percent int) bool { return d.IntN(100) < percent }

// Key returns a key that no other state has.
func (d *Draw) Key(name string) string { return "{" + d.name + "}:" + name }

// Micro returns the time of the clock in µs since 1970, and so many µs later.
func (d *Draw) Micro(later int64) string {
	return strconv.FormatInt(frozenAt*1_000_000+d.micros+later, 10)
}

// Milli returns the time of the clock in ms since 1970, and so many ms later.
func (d *Draw) Milli(later int64) int64 { return frozenAt*1000 + d.micros/1000 + later }

// Lifetime returns a time in ms, short or long.
func (d *Draw) Lifetime() int64 {
	return OneOf(d, []int64{1, 2, 999, 10_000, 30_000, 30_001, 123_456, 3_600_000})
}

// Around returns a time before or after now, in the unit of the times given.
func (d *Draw) Around(times ...int64) int64 {
	return OneOf(d, append(times, 0)) * OneOf(d, []int64{-1, 1})
}

// Do appends a command that makes the state.
func (d *Draw) Do(command ...any) { d.setup = append(d.setup, command) }

// Expire gives a key an expiry, or leaves it without.
func (d *Draw) Expire(key string) {
	if d.Chance(85) {
		d.Do("PEXPIREAT", key, d.Milli(d.Lifetime()))
	}
}

// Text writes a string.
func (d *Draw) Text(key, value string) {
	d.Do("SET", key, value)
	d.Expire(key)
}

// OtherType writes a key of a type that holdfast never writes there.
func (d *Draw) OtherType(key string) {
	switch d.IntN(3) {
	case 0:
		d.Do("RPUSH", key, "element")
	case 1:
		d.Do("SADD", key, "member")
	default:
		d.Do("ZADD", key, 1, "member")
	}
	d.Expire(key)
}

// Hash writes some of these fields, and one that no script knows. A value of "" is never written.
func (d *Draw) Hash(key string, percent int, fields map[string]string) {
	command := []any{"HSET", key}
	for _, field := range slices.Sorted(maps.Keys(fields)) { // the order of the map would change with every run
		if value := fields[field]; d.Chance(percent) && value != "" {
			command = append(command, field, value)
		}
	}
	if d.Chance(20) || len(command) == 2 {
		command = append(command, "unknown", "field")
	}
	d.Do(command...)
	d.Expire(key)
}

// LastToken writes the last token of a name: none, one of the past, of this very µs, or ahead of the clock. At times it
// is no token at all. At times its key has just been written, and the token is not of the past then: the fast paths draw the next from it. It never has a fraction: no script writes one, and the paths round it differently.
func (d *Draw) LastToken(key string) {
	switch n := d.IntN(100); {
	case n < 30:
	case n < 45 && !slices.Contains(d.refused, "SET"): // a slow path needs that right
		d.Do("SET", key, OneOf(d, []string{d.Micro(0), d.Micro(1), d.Micro(999_999), d.Micro(3_600_000_000), "-1", "-9", "no number"}))
		d.Do("PEXPIREAT", key, d.Milli(OneOf(d, []int64{7_199_990, 7_199_991, 7_199_999, 7_200_000, 7_200_001})))
	case n < 90:
		d.Text(key, d.Micro(d.Around(1, 2, 999_999, 3_600_000_000)))
	case n < 95:
		d.Text(key, OneOf(d, []string{"0", "7", "-1", "9007199254740990", "1e300", "inf", "nan", "", "no number"}))
	default:
		d.OtherType(key)
	}
}

// Remembered writes what a script remembers of an earlier one: mostly nothing.
func (d *Draw) Remembered(key string) {
	switch n := d.IntN(100); {
	case n < 85:
	case n < 97:
		d.Text(key, OneOf(d, []string{"-", "0", "1", "2"}))
	default:
		d.OtherType(key)
	}
}
