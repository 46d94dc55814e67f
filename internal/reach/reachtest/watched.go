package reachtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Watched is an upstream whose requests are noted, and can be held.
type Watched struct {
	mu    sync.Mutex
	next  http.Handler
	asked []string
	holds []*hold
}

type hold struct {
	what     string
	arrived  chan struct{}
	released chan struct{}
}

// ServeHTTP notes a request before the upstream sees it.
func (w *Watched) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/mcp" {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if h := w.note(body); h != nil {
			close(h.arrived)
			<-h.released
		}
	}
	w.mu.Lock()
	next := w.next
	w.mu.Unlock()
	next.ServeHTTP(rw, r)
}

// Become lets another server answer at the same address from now on.
func (w *Watched) Become(next http.Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next = next
}

func (w *Watched) note(body []byte) *hold {
	var message struct {
		Method string
		Params struct{ Name string }
	}
	_ = json.Unmarshal(body, &message) // what is no message has no method
	what := strings.TrimSpace(message.Method + " " + message.Params.Name)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, what)
	i := slices.IndexFunc(w.holds, func(h *hold) bool { return h.what == what })
	if i < 0 {
		return nil
	}
	h := w.holds[i]
	w.holds = slices.Delete(w.holds, i, i+1)
	return h
}

// Hold stops the next request of a kind ("tools/list", "tools/call contacts_get") when it has arrived, until release is called.
func (w *Watched) Hold(what string) (arrived <-chan struct{}, release func()) {
	h := &hold{what: what, arrived: make(chan struct{}), released: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holds = append(w.holds, h)
	return h.arrived, sync.OnceFunc(func() { close(h.released) })
}

// Asked counts the requests of a kind; an empty kind is all of them.
func (w *Watched) Asked(kind string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.asked {
		if strings.HasPrefix(a, kind) {
			n++
		}
	}
	return n
}

// Forget begins to count anew.
func (w *Watched) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = nil
}
