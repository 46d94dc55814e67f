// Package directtest owns what the vendors of tests have in common: a journal of what they really did, and the ways in which they can
// treat one request. A vendor of a test is a real HTTP server. It knows no provider, and no product code imports it.
package directtest

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Mode is a way to treat one request.
type Mode string

// The modes. The first four carry the request out and then lose the answer.
const (
	ApplyThenHang     Mode = "apply_then_hang"
	ApplyThenReset    Mode = "apply_then_reset"
	ApplyThen500      Mode = "apply_then_500"
	ApplyThenTruncate Mode = "apply_then_truncate"
	Reject            Mode = "reject"
	Limit             Mode = "limit"
	Hang              Mode = "hang"
	Reset             Mode = "reset"
	Slow              Mode = "slow"
)

// slowness is how long a slow answer takes.
const slowness = 200 * time.Millisecond

// Effect is one line of the journal.
type Effect struct {
	Operation string
	Detail    string
}

// Server is a vendor.
type Server struct {
	URL string
	// Name says which operation a request is.
	Name func(*http.Request) string
	// Refuse writes a definite refusal in the vendor's own form; status is 422 or 429.
	Refuse func(w http.ResponseWriter, status int)
	// Next does the vendor's work.
	Next http.Handler

	server   *httptest.Server
	mu       sync.Mutex
	armed    map[string]Mode
	pass     map[string]int
	journal  []Effect
	requests []string
	gone     chan struct{}
}

// Start serves until the test ends.
func (s *Server) Start(t testing.TB) *Server {
	t.Helper()
	s.armed, s.pass, s.gone = map[string]Mode{}, map[string]int{}, make(chan struct{})
	s.server = httptest.NewServer(s)
	s.URL = s.server.URL
	t.Cleanup(func() { close(s.gone); s.server.Close() })
	return s
}

// Break arms one fault for the next request of an operation.
func (s *Server) Break(operation string, m Mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed[operation] = m
}

// BreakAfter lets so many requests of an operation pass before the one that is armed.
func (s *Server) BreakAfter(operation string, pass int, m Mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed[operation], s.pass[operation] = m, pass
}

// Mend disarms every fault.
func (s *Server) Mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.armed)
	clear(s.pass)
}

// Note writes an effect down. The vendor calls it where it applies one.
func (s *Server) Note(operation, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.journal = append(s.journal, Effect{operation, detail})
}

// Effects are the effects of one operation, or all where it is empty.
func (s *Server) Effects(operation string) []Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.journal), func(e Effect) bool { return operation != "" && e.Operation != operation })
}

// Requests are the operations asked for so far, in order.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) take(operation string) Mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, operation)
	if s.pass[operation] > 0 {
		s.pass[operation]--
		return ""
	}
	m := s.armed[operation]
	delete(s.armed, operation)
	return m
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch mode := s.take(s.Name(r)); mode {
	case ApplyThenHang, ApplyThenReset, ApplyThen500, ApplyThenTruncate:
		s.lose(w, r, mode)
	case Reject:
		s.Refuse(w, http.StatusUnprocessableEntity)
	case Limit:
		s.Refuse(w, http.StatusTooManyRequests)
	case Hang:
		s.hang(r)
	case Reset:
		reset(w)
	case Slow:
		select {
		case <-time.After(slowness):
		case <-s.gone:
		}
		fallthrough
	default:
		s.Next.ServeHTTP(w, r)
	}
}

// lose carries the request out and loses the answer.
func (s *Server) lose(w http.ResponseWriter, r *http.Request, m Mode) {
	answer := httptest.NewRecorder()
	s.Next.ServeHTTP(answer, r)
	switch m {
	case ApplyThenHang:
		s.hang(r)
	case ApplyThenReset:
		reset(w)
	case ApplyThen500:
		http.Error(w, "something went wrong", http.StatusInternalServerError)
	default:
		body := answer.Body.Bytes()
		if len(body) < 2 {
			body = []byte("{}")
		}
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(body[:len(body)/2])
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		reset(w)
	}
}

func (s *Server) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.gone:
	}
}

// reset ends the connection as a dying machine would.
func reset(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// JSON writes a value.
func JSON(w http.ResponseWriter, media string, status int, v any) {
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
