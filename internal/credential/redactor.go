package credential

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"countersign/internal/secret"
)

// Marker stands where a secret stood.
const Marker = "[redacted by Countersign]"

// Redactor replaces secrets, plain and in the usual encodings, in bytes that come from outside. The zero value replaces nothing.
type Redactor struct{ search *search }

// NewRedactor makes a redactor for the given secrets.
func NewRedactor(values ...secret.Value) *Redactor {
	var patterns []string
	for _, v := range values {
		if !v.IsZero() {
			patterns = append(patterns, spellings(v.Reveal())...)
		}
	}
	slices.SortFunc(patterns, func(a, b string) int { // longest first, so that a spelling wins over a part of it
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return &Redactor{search: newSearch(slices.Compact(patterns))}
}

// Bytes returns b with every secret replaced. B itself is not changed.
func (r *Redactor) Bytes(b []byte) []byte {
	out, _ := r.search.replace(nil, b, true)
	return out
}

// Header replaces secrets in the values of h.
func (r *Redactor) Header(h http.Header) {
	for name, values := range h {
		for i, v := range values {
			if clean := r.Bytes([]byte(v)); string(clean) != v {
				h[name][i] = string(clean)
			}
		}
	}
}

// Reader replaces secrets in a stream, also across the borders of reads.
func (r *Redactor) Reader(src io.Reader) io.Reader {
	if r.search.empty() {
		return src
	}
	return newRedactingReader(r.search, src)
}

// spellings are the ways in which an upstream may echo s: as it is, in URLs, JSON, HTML and hex, and inside base64 text at each of
// the three positions it can have there.
func spellings(s string) []string {
	out := []string{s, url.QueryEscape(s), url.PathEscape(s), html.EscapeString(s)}
	out = append(out, jsonSpellings(s)...)
	if len(s) < 6 { // shorter ones would match by chance and mangle answers
		return out
	}
	h := hex.EncodeToString([]byte(s))
	out = append(out, h, strings.ToUpper(h), everyByte(s, "%%%02x"), everyByte(s, "%%%02X"), everyByte(s, "\\x%02x"),
		everyByte(s, "\\u%04x"), everyByte(s, "\\u%04X"), everyByte(s, "&#%d;"), everyByte(s, "&#x%x;"))
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			if core := alignedCore(enc, s, shift); len(core) >= 6 {
				out = append(out, core)
			}
		}
	}
	return out
}

func jsonSpellings(s string) []string {
	quoted, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	escaped := string(quoted[1 : len(quoted)-1]) // with <, > and & escaped
	plain := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s)
	twice := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(plain)
	return []string{escaped, plain, twice, strings.ReplaceAll(plain, "/", `\/`), strings.ReplaceAll(escaped, "/", `\/`)}
}

func everyByte(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

// alignedCore is the part of the base64 text that depends on s alone when shift bytes of something else stand before it in its
// first group of three.
func alignedCore(enc *base64.Encoding, s string, shift int) string {
	text := enc.EncodeToString(append(make([]byte, shift), s...))
	from := (shift*8 + 5) / 6      // characters touched by the bytes before
	to := (shift + len(s)) * 8 / 6 // characters not touched by the bytes after
	return text[from:to]
}
