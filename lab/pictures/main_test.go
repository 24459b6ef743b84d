package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The pictures of docs are those that this program draws.
func TestPicturesAreCurrent(t *testing.T) {
	t.Parallel()
	for name, picture := range pictures() {
		drawn, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Error(err)
			continue
		}
		if string(drawn) != picture.String() {
			t.Errorf("docs/%s is not what this program draws: run make -C lab pictures", name)
		}
	}
}

func TestTextsFit(t *testing.T) {
	t.Parallel()
	for name, picture := range pictures() {
		for _, text := range picture.Outside() {
			t.Errorf("%s: %q does not fit", name, text)
		}
	}
}

func TestPicturesAreWellFormed(t *testing.T) {
	t.Parallel()
	for name, picture := range pictures() {
		decoder := xml.NewDecoder(strings.NewReader(picture.String()))
		for {
			_, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
		}
	}
}
