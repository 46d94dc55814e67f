package mcpclient_test

import (
	"bytes"
	"io"
	"net/http"
)

// newPeek reads the body of a request and puts it back.
func newPeek(r *http.Request) []byte {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	return b
}
