package measure

import (
	"testing"
	"time"
)

// TestCPUTime: the main thread alone counts where the server tells it, and a server that tells nothing is an error.
func TestCPUTime(t *testing.T) {
	t.Parallel()
	const older = "# CPU\r\nused_cpu_sys:0.250000\r\nused_cpu_user:1.500000\r\n"
	const newer = older + "used_cpu_sys_main_thread:0.125000\r\nused_cpu_user_main_thread:1.000000\r\n"
	for info, want := range map[string]time.Duration{older: 1750 * time.Millisecond, newer: 1125 * time.Millisecond} {
		if got, err := parseCPUTime(info); got != want || err != nil {
			t.Errorf("%v, %v, want %v of\n%s", got, err, want, info)
		}
	}
	if got, err := parseCPUTime("# CPU\r\n"); err == nil {
		t.Errorf("%v of a server that tells nothing", got)
	}
}
