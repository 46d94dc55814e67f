package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/a-h/templ"

	"countersign/static"
)

// policy is the content security policy of the real pages: what breaks under it must break here.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// site serves the index, the entries and the static files.
func site(entries []Entry) http.Handler {
	pages := map[string]templ.Component{"/": index(entries)}
	for _, e := range entries {
		pages["/"+e.file()] = e.Component
	}
	mux := http.NewServeMux()
	mux.Handle(static.Prefix, static.Handler())
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Path]
		if !ok && r.Header.Get("HX-Request") == "true" { // a page that looks after itself: here nothing ever changes
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if !ok {
			http.NotFound(w, r)
			return
		}
		var body bytes.Buffer
		if err := page.Render(r.Context(), &body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", policy)
		_, _ = body.WriteTo(w)
	})
	return mux
}

// writeSite writes what site serves into a folder; any plain file server shows it.
func writeSite(ctx context.Context, dir string, entries []Entry) error {
	if err := os.MkdirAll(filepath.Join(dir, static.Prefix), 0o755); err != nil {
		return err
	}
	err := static.Each(func(urlPath string, body []byte) error {
		return os.WriteFile(filepath.Join(dir, filepath.FromSlash(urlPath)), body, 0o644)
	})
	if err != nil {
		return err
	}
	if err := writePage(ctx, filepath.Join(dir, "index.html"), index(entries)); err != nil {
		return err
	}
	for _, e := range entries {
		if err := writePage(ctx, filepath.Join(dir, e.file()), e.Component); err != nil {
			return err
		}
	}
	return nil
}

// writePage renders fully before it writes, so that a failed page leaves no half file.
func writePage(ctx context.Context, file string, page templ.Component) error {
	var body strings.Builder
	if err := page.Render(ctx, &body); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(body.String()), 0o644)
}
