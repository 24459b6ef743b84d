package fastpath

import (
	"strings"
	"testing"
)

// TestDifferencesAreFound: whatever a fast path does otherwise than its slow path, the comparison notices.
func TestDifferencesAreFound(t *testing.T) {
	t.Parallel()
	const (
		free  = "if redis.call('EXISTS', KEYS[1]) == 0 then\n"
		grant = "redis.call('HSET', KEYS[1], 'at', redis.call('TIME')[2])\n" +
			"redis.call('PEXPIRE', KEYS[1], ARGV[1])\n" +
			"redis.call('SET', KEYS[2], 1, 'PX', ARGV[1])\n" +
			"redis.call('PUBLISH', 'channel', '0')\n" +
			"return {1, redis.call('PTTL', KEYS[1])}\n"
		slow = free + grant + "end\nreturn {0, redis.call('PTTL', KEYS[1])}\n"
	)
	draw := func(d *Draw) {
		d.Keys, d.Args = []string{d.Key("lock"), d.Key("token")}, []string{"1000"}
		if d.Chance(50) {
			d.Hash(d.Key("lock"), 100, map[string]string{"at": "1"})
		}
		d.LastToken(d.Key("token"))
	}
	for name, edit := range map[string]struct{ old, new string }{
		"nothing":         {},
		"condition":       {"== 0 then", ">= 0 then"},
		"field":           {"'at', ", "'since', "},
		"value":           {"TIME')[2]", "TIME')[1]"},
		"expiry by 1 ms":  {"KEYS[1], ARGV[1]", "KEYS[1], ARGV[1] + 1"},
		"no expiry":       {", 'PX', ARGV[1]", ""},
		"message":         {"'0')", "'1')"},
		"no message":      {"redis.call('PUBLISH', 'channel', '0')\n", ""},
		"reply":           {"return {1, ", "return {2, "},
		"error":           {"return {1, ", "return {1, nothing, "},
		"early write":     {free, "redis.call('DEL', KEYS[2])\n" + free},
		"swallowed error": {"redis.call('SET'", "redis.pcall('SET'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fast := strings.Replace(free+grant+"end\n", edit.old, edit.new, 1)
			if c := compare(t, fast, slow, Path{Draw: draw}, 1, 200); (c.found > 0) != (name != "nothing") {
				t.Errorf("%d of 200 states differ:\n%s", c.found, c.simplest)
			}
		})
	}
}
