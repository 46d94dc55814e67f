package answer

import (
	"net/http"

	"countersign/internal/fault"
	"countersign/views"
)

var titles = map[int]string{
	http.StatusUnprocessableEntity:   "That cannot be read",
	http.StatusUnauthorized:          "Sign in first",
	http.StatusForbidden:             "Not yours to open",
	http.StatusNotFound:              "Not found",
	http.StatusMethodNotAllowed:      "Not that way",
	http.StatusConflict:              "This changed while you read",
	http.StatusTooManyRequests:       "Too often",
	http.StatusRequestEntityTooLarge: "Too large",
	http.StatusUnsupportedMediaType:  "That cannot be read",
	http.StatusMisdirectedRequest:    "Another address",
	http.StatusServiceUnavailable:    "Something does not answer",
}

// View is a fault as the error page says it. Trace is the request id, by which an operator finds the log line.
func View(f *fault.Error, trace string) views.ErrorView {
	title, ok := titles[Status(f)]
	switch {
	case f.Code == CodeCrossSite:
		title = "Sent from another site"
	case !ok:
		title = "Our mistake"
	}
	return views.ErrorView{Title: title, What: f.What, Next: f.Next, Code: string(f.Code), Trace: trace}
}
