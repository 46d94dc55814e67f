// Package crm owns the Sandbox CRM: a real MCP server with contacts, deals, refunds and notes kept in memory, which people use to
// try the product and tests use as an upstream whose truth can be read. It records every effect it applied in a journal, and on
// request it breaks the answer to a call the way real services do, on the real connection. It never writes to disk, never talks
// to anything, never logs arguments or credentials, and never records the value of a header.
package crm

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// stopGrace is how long Run lets calls under way finish once it is told to stop.
const stopGrace = 5 * time.Second

// Config is what a Sandbox CRM needs. A credential left empty is never accepted.
type Config struct {
	Listen       string       // address Run listens on when it is given no listener
	BearerToken  string       // credential of the MCP endpoint
	ControlToken string       // credential of the control API
	Log          *slog.Logger // nil: silent
}

// Server is one Sandbox CRM with its own state.
type Server struct {
	cfg      Config
	log      *slog.Logger
	book     *book
	protocol http.Handler // the MCP SDK's edge; always reached through serveMCP
	handler  http.Handler

	stopOnce sync.Once
	stopped  chan struct{} // closed when Run ends: hanging calls are let go and delayed effects no longer apply
}

// New makes a CRM in its seeded state.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, log: cfg.Log, book: newBook(), stopped: make(chan struct{})}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.protocol = s.newProtocol()

	mux := http.NewServeMux()
	mux.Handle("/mcp", guard("sandbox-crm", cfg.BearerToken, http.HandlerFunc(s.serveMCP)))
	mux.Handle("GET /journal", s.control(s.serveJournal))
	mux.Handle("POST /faults", s.control(s.serveFaults))
	mux.Handle("POST /tools", s.control(s.serveTools))
	mux.Handle("POST /reset", s.control(s.serveReset))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	s.handler = mux
	return s
}

// Handler serves /mcp, /healthz and the control API.
func (s *Server) Handler() http.Handler { return s.handler }

// Run serves on ln, or on Config.Listen when ln is nil, until ctx ends; then it lets go of hanging calls, lets the others finish,
// and returns nil. A Server runs once.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	if ln == nil {
		var err error
		if ln, err = (&net.ListenConfig{}).Listen(ctx, "tcp", s.cfg.Listen); err != nil {
			return err
		}
	}
	// No ReadTimeout: its deadline would also cut a call that legitimately waits for two minutes.
	srv := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	s.log.Info("sandbox crm listens", "address", ln.Addr().String())

	select {
	case err := <-failed:
		s.stop()
		return err
	case <-ctx.Done():
	}
	s.stop()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		_ = srv.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s *Server) stop() { s.stopOnce.Do(func() { close(s.stopped) }) }

// control fences the control API: it decides what the CRM does and shows arguments, so it answers on loopback only, and only to
// its own credential. The peer address of the connection counts; a forwarding header is a claim.
func (s *Server) control(next http.HandlerFunc) http.Handler {
	fenced := guard("sandbox-crm control", s.cfg.ControlToken, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fromLoopback(r.RemoteAddr) {
			sentence(w, http.StatusForbidden, "The control API answers on loopback only.")
			return
		}
		fenced.ServeHTTP(w, r)
	})
}

func fromLoopback(remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	return err == nil && peer.Addr().Unmap().IsLoopback()
}

// guard lets a request through that carries exactly the credential.
func guard(realm, credential string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !carries(r.Header, credential) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+realm+`", error="invalid_token"`)
			sentence(w, http.StatusUnauthorized, "The bearer credential is missing or wrong.")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// carries compares digests, so that neither the length nor a common prefix of the credential shows in the time taken. Two
// Authorization headers are refused: which of them counts is a question proxies answer differently.
func carries(h http.Header, credential string) bool {
	values := h.Values("Authorization")
	if credential == "" || len(values) != 1 {
		return false
	}
	scheme, given, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	want, got := sha256.Sum256([]byte(credential)), sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// sentence answers with one sentence for a person.
func sentence(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}
