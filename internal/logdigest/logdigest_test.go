package logdigest

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	hash := "-_" + strings.Repeat("k", 41)
	for text, want := range map[string]string{
		"ad3ab9f1": "ad3ab9f1", " AD3AB9F1\n": "AD3AB9F1", "lock=ad3ab9f1": "ad3ab9f1", `"lock":"ad3ab9f1",`: "ad3ab9f1", "digest: ad3ab9f1": "ad3ab9f1",
		hash: hash, "key_hash=" + hash: hash, `"key_hash": "` + hash + `"`: hash,
		"": "", "ad3ab9f": "", "ad3ab9f12": "", "order:42": "", "lock=order:42": "", "a lock=ad3ab9f1": "", hash + "k": "",
	} {
		if digest, ok := Parse(text); digest != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", text, digest, ok)
		}
	}
}
