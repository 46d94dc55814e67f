package ui

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/a-h/templ"
)

// ticks is how many hex digits a strip draws.
const ticks = 32

// Strip draws the first 32 hex digits of a digest as ticks, so that a glance tells "same bytes" between a notification, a list and
// a card. It is a help and never the check. Anything that is not a digest draws nothing: a made-up strip would say "same" of nothing.
func Strip(digest string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		rects, ok := strip(digest)
		if !ok {
			return nil
		}
		_, err := io.WriteString(w, `<svg class="strip" viewBox="0 0 96 16" aria-hidden="true">`+rects+`</svg>`)
		return err
	})
}

func strip(digest string) (string, bool) {
	if len(digest) < ticks {
		return "", false
	}
	var b strings.Builder
	for i := range ticks {
		v, err := strconv.ParseUint(digest[i:i+1], 16, 8)
		if err != nil {
			return "", false
		}
		b.WriteString(`<rect x="` + strconv.Itoa(3*i) + `" y="` + strconv.Itoa(15-int(v)) + `" width="2" height="` + strconv.Itoa(int(v)+1) + `"/>`)
	}
	return b.String(), true
}

// quads draws a digest in groups of four, as people compare it. The gaps are drawn, not written: copied or searched for, it is one word.
func quads(digest string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b strings.Builder
		for i := 0; i < len(digest); i += 4 {
			b.WriteString(`<span class="quad">` + templ.EscapeString(digest[i:min(i+4, len(digest))]) + `</span><wbr>`)
		}
		_, err := io.WriteString(w, strings.TrimSuffix(b.String(), "<wbr>"))
		return err
	})
}
