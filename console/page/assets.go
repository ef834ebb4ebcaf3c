package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strings"
)

// statics are the scripts and styles of the console.
//
//go:embed static
var statics embed.FS

// asset is a script or a style.
type asset struct {
	content []byte
	kind    string
	tag     string
}

// openAssets reads the scripts and styles.
func (s *server) openAssets() error {
	s.assets = map[string]asset{}
	entries, err := statics.ReadDir("static")
	if err != nil {
		return err
	}
	for _, e := range entries {
		content, err := statics.ReadFile("static/" + e.Name())
		if err != nil {
			return err
		}
		s.addAsset(e.Name(), content)
	}
	for name, content := range s.Assets {
		s.addAsset(name, content)
	}
	return nil
}

func (s *server) addAsset(name string, content []byte) {
	kind := mime.TypeByExtension(path.Ext(name))
	if strings.HasSuffix(name, ".js") {
		kind = "text/javascript; charset=utf-8"
	}
	sum := sha256.Sum256(content)
	s.assets[name] = asset{content, kind, `"` + hex.EncodeToString(sum[:8]) + `"`}
}

// asset answers with a script or a style.
func (s *server) asset(w http.ResponseWriter, r *http.Request) {
	secure(w)
	a, ok := s.assets[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "no-cache") // a new version of the program is seen at once; unchanged ones are 304
	h.Set("ETag", a.tag)
	if r.Header.Get("If-None-Match") == a.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(a.content) // fails only if the reader has gone
}
