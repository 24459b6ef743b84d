package jsonfield

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// CheckPointer returns an error if pointer is not a pointer of RFC 6901, or one that [Find] can find nothing at. The
// empty pointer means the whole document.
func CheckPointer(pointer string) error {
	_, err := parsePointer(pointer)
	return err
}

func parsePointer(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	path := strings.Split(pointer, "/")
	switch {
	case path[0] != "":
		return nil, fmt.Errorf("holdfast: JSON pointer %q: it does not begin with /", pointer)
	case len(path)-1 > maxDepth:
		return nil, fmt.Errorf("holdfast: JSON pointer %q: it is more than %d deep", pointer, maxDepth)
	case !utf8.ValidString(pointer):
		return nil, fmt.Errorf("holdfast: JSON pointer %q: it is not UTF-8", pointer)
	}
	path = path[1:]
	for i, token := range path {
		if strings.Contains(withoutEscapes.Replace(token), "~") {
			return nil, fmt.Errorf("holdfast: JSON pointer %q: a ~ is not followed by 0 or 1", pointer)
		}
		path[i] = unescaped.Replace(token)
	}
	return path, nil
}

var (
	withoutEscapes = strings.NewReplacer("~0", "", "~1", "")
	unescaped      = strings.NewReplacer("~0", "~", "~1", "/")
)
