package inspector

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
)

var (
	//go:embed assets/style.css
	style string
	//go:embed assets/script.js
	script string
	//go:embed assets/icon.svg
	icon string
)

// asset is a file of the page that is the same for all.
type asset struct {
	kind, text, version string
}

// assets are all files, by the ends of their paths.
var assets = map[string]asset{
	"style.css": newAsset("text/css; charset=utf-8", style),
	"script.js": newAsset("text/javascript; charset=utf-8", script),
	"icon.svg":  newAsset("image/svg+xml", icon),
}

func newAsset(kind, text string) asset {
	sum := sha256.Sum256([]byte(text))
	return asset{kind, text, hex.EncodeToString(sum[:8])}
}

// assetAddress returns the address of a file. It changes with the text, so a browser may keep it.
func assetAddress(name string) string { return link(name, "v", assets[name].version) }

func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", a.kind)
	if r.URL.Query().Get("v") == a.version {
		w.Header().Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(a.text))
	}
}
