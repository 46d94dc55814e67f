// Package static owns every file a browser may fetch from us: styles, scripts, icons. Each is served under a name that carries the
// hash of its content, so it can be cached for ever and never be stale. It never serves a file that is not compiled in, never
// answers another method than GET and HEAD, and knows nothing of pages.
package static

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// Prefix is where the handler is mounted.
const Prefix = "/static/"

// hashDigits is how much of the SHA-256 a URL carries: 64 bits, far more than chance needs.
const hashDigits = 16

//go:embed css/*.css js/*.js img/*.svg
var files embed.FS

// contentTypes is the closed list of what we serve. With nosniff a wrong type would be refused by the browser, so none is guessed.
var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// asset is one compiled-in file.
type asset struct {
	hashed string // app.<hash>.css
	kind   string // content type
	body   []byte
}

var (
	byName, byHashed = index(files)
	icons            = URL("icons.svg") + "#i-"
)

// index reads every embedded file once. The embedded tree is flat by base name; two files of one name are a build mistake.
func index(tree fs.FS) (map[string]asset, map[string]asset) {
	names, hashed := map[string]asset{}, map[string]asset{}
	err := fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(tree, p)
		if err != nil {
			return err
		}
		name, ext := path.Base(p), path.Ext(p)
		if _, twice := names[name]; twice {
			panic("static: two files are called " + name)
		}
		sum := sha256.Sum256(body)
		a := asset{
			hashed: strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:])[:hashDigits] + ext,
			kind:   contentTypes[ext],
			body:   body,
		}
		names[name], hashed[a.hashed] = a, a
		return nil
	})
	if err != nil {
		panic("static: " + err.Error()) // reading compiled-in files cannot fail
	}
	return names, hashed
}

// URL is the address of a file by its plain name: URL("app.css") is /static/app.<hash>.css. Names are literals in templates, so
// an unknown one is our own mistake and panics at the first rendering of the page.
func URL(name string) string {
	a, ok := byName[name]
	if !ok {
		panic("static: there is no file " + name)
	}
	return Prefix + a.hashed
}

// Icon is the address of one symbol of the icon sprite, for <use href>.
func Icon(name string) string { return icons + name }

// Each calls f with the URL path and the content of every file, for those who write the site to a folder.
func Each(f func(urlPath string, body []byte) error) error {
	for _, a := range byName {
		if err := f(Prefix+a.hashed, a.body); err != nil {
			return err
		}
	}
	return nil
}

// Handler serves the files under Prefix. Only exact hashed names exist; a 404 is never cached, so that a replica that is one
// release behind cannot poison a shared cache with "not found" for the next release's file.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "Only GET and HEAD are answered here.", http.StatusMethodNotAllowed)
			return
		}
		name, mounted := strings.CutPrefix(r.URL.Path, Prefix)
		a, ok := byHashed[name]
		if !mounted || !ok {
			h.Set("Cache-Control", "no-store")
			http.Error(w, "There is no such file.", http.StatusNotFound)
			return
		}
		h.Set("Content-Type", a.kind)
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("ETag", `"`+a.hashed+`"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.body))
	})
}
