package admin

import (
	"net/http"

	"countersign/internal/fault"
)

// Posted is the value of a posted field. A value in the address is none: addresses are logged by proxies and kept by browsers.
func (r *Request) Posted(name string) string { return r.Request().PostForm.Get(name) }

// Values are all values of a posted field; the guard has parsed the form and bounded it.
func (r *Request) Values(name string) []string { return r.Request().PostForm[name] }

func what(f *fault.Error) string {
	if f == nil {
		return ""
	}
	return f.What
}

func next(f *fault.Error) string {
	if f == nil {
		return ""
	}
	return f.Next
}

// statusOf is the status of a form that comes back: 409 where the world changed, else 422.
func statusOf(err error) int {
	if f, ok := fault.As(err); ok && f.Kind == fault.Conflict {
		return http.StatusConflict
	}
	return http.StatusUnprocessableEntity
}
