package supervise

import (
	"strings"
	"testing"
)

func TestSupportedSystems(t *testing.T) {
	t.Parallel()
	if err := Supported(); err != nil {
		t.Errorf("this system: %v", err)
	}
	for system, supported := range map[string]bool{"linux": true, "darwin": true, "windows": false, "freebsd": false} {
		err := supportedOn(system)
		if (err == nil) != supported || err != nil && !strings.Contains(err.Error(), system) {
			t.Errorf("%s: %v", system, err)
		}
	}
}
