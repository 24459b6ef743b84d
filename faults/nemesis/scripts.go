package nemesis

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/redis/go-redis/v9"
)

// hash returns the SHA-1 by which a server knows a script of core, which is put together from these files.
func hash(names ...string) string {
	_, here, _, _ := runtime.Caller(0)
	text := ""
	for _, name := range names {
		part, err := os.ReadFile(filepath.Join(filepath.Dir(here), "..", "..", "core", "lua", name+".lua"))
		if err != nil {
			panic(err) // the program runs beside its source
		}
		text += string(part)
	}
	return redis.NewScript(text).Hash()
}
