package views

import (
	"context"
	"fmt"
	"io"

	"github.com/a-h/templ"

	"countersign/views/ui"
)

// flow draws words of ours (text) and parts (components) one after the other without a gap: a template puts a blank between a part and
// the comma that follows it.
func flow(parts ...any) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		for _, p := range parts {
			var err error
			switch p := p.(type) {
			case templ.Component:
				err = p.Render(ctx, w)
			default:
				_, err = io.WriteString(w, templ.EscapeString(fmt.Sprint(p)))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// strong is a part that carries the sentence.
func strong(part any) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		if _, err := io.WriteString(w, "<b>"); err != nil {
			return err
		}
		if err := flow(part).Render(ctx, w); err != nil {
			return err
		}
		_, err := io.WriteString(w, "</b>")
		return err
	})
}

// to is a link to a page of ours.
func to(href string, label any) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		if _, err := io.WriteString(w, `<a href="`+templ.EscapeString(string(templ.URL(href)))+`">`); err != nil {
			return err
		}
		if err := flow(label).Render(ctx, w); err != nil {
			return err
		}
		_, err := io.WriteString(w, "</a>")
		return err
	})
}

// code is a name somebody else chose, drawn in the voice of bytes.
func code(name string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		if _, err := io.WriteString(w, "<code>"); err != nil {
			return err
		}
		if err := ui.Text(name).Render(ctx, w); err != nil {
			return err
		}
		_, err := io.WriteString(w, "</code>")
		return err
	})
}
