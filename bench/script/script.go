// Package script reads the Lua scripts of holdfast's core, which keeps them to itself.
package script

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/redis/go-redis/v9"
)

// Load returns a script as core composes it, of files of core/internal/lockscript/lua without their suffix.
func Load(parts ...string) (*redis.Script, error) {
	dir, err := luaDir()
	if err != nil {
		return nil, err
	}
	var source []byte
	for _, part := range parts {
		text, err := os.ReadFile(filepath.Join(dir, part+".lua"))
		if err != nil {
			return nil, fmt.Errorf("script of core: %w", err)
		}
		source = append(source, text...)
	}
	return redis.NewScript(string(source)), nil
}

// luaDir looks for the scripts above the working directory: the benchmark is run from its repository.
func luaDir() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find core/internal/lockscript/lua: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		lua := filepath.Join(dir, "core", "internal", "lockscript", "lua")
		if _, err := os.Stat(lua); err == nil {
			return lua, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no core/internal/lockscript/lua above %s", start)
		}
	}
}
