// Pictures draws the diagrams of the documentation into a folder: "make -C lab pictures" does it for docs. The picture of the
// flash sale is not among them: that program draws the outcome of its own runs.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-go/holdfast/internal/svg"
)

// pictures are the diagrams by the names of their files.
func pictures() map[string]*svg.Picture {
	return map[string]*svg.Picture{
		"lease.svg":     lease(),
		"fencing.svg":   fencing(),
		"once.svg":      once(),
		"request.svg":   request(),
		"redlock.svg":   redlock(),
		"imports.svg":   imports(),
		"life-lock.svg": lifeOfLock(),
		"life-loss.svg": lifeOfLoss(),
		"life-once.svg": lifeOfOnce(),
		"walk.svg":      walk(),
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pictures FOLDER")
		os.Exit(2)
	}
	for name, picture := range pictures() {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), []byte(picture.String()), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "pictures:", err)
			os.Exit(1)
		}
	}
}
