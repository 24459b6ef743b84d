package mutants

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Apply writes the mutated source and an overlay for the go command into dir, and returns the path of the overlay. It
// fails if the source is not what the mutant was made for.
func (m Mutant) Apply(root, dir string) (overlay string, err error) {
	original := filepath.Join(root, m.File)
	source, err := os.ReadFile(original)
	if err != nil {
		return "", fmt.Errorf("mutant %q: %w", m.Name, err)
	}
	text := string(source)
	for _, edit := range m.Edits {
		if n := strings.Count(text, edit[0]); n != 1 {
			return "", fmt.Errorf("mutant %q does not apply any more: %s has %d times\n\t%s\nBring it up to date with the source",
				m.Name, m.File, n, edit[0])
		}
		text = strings.Replace(text, edit[0], edit[1], 1)
	}
	mutated := filepath.Join(dir, filepath.Base(m.File))
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	for path, content := range map[string]string{mutated: text, overlay: string(list)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	return overlay, nil
}
