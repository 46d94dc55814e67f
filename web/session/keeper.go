package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/gorilla/sessions"

	"countersign/internal/audit"
	"countersign/internal/fault"
)

// Cookie is the cookie's name over plain http. Over https it carries the __Host- prefix, with which a browser takes it from this very
// host alone, so that a neighbouring subdomain cannot plant one.
const Cookie = "countersign"

// Keeper is a server-side store of browser sessions: the cookie is 256 random bits, everything else is a row that can be revoked.
type Keeper struct {
	rows Store
	name string
	opts sessions.Options
}

var _ sessions.Store = (*Keeper)(nil)

// NewKeeper keeps sessions in rows. Https says whether the public address is.
func NewKeeper(rows Store, https bool) *Keeper {
	name := Cookie
	if https {
		name = "__Host-" + Cookie
	}
	return &Keeper{rows: rows, name: name, opts: sessions.Options{Path: "/", HttpOnly: true, Secure: https, SameSite: http.SameSiteLaxMode}}
}

// The keys under which a gorilla session carries ours.
type (
	recordKey struct{}
	flashKey  struct{}
)

// Get returns the session of a request, read once.
func (k *Keeper) Get(r *http.Request, name string) (*sessions.Session, error) {
	return sessions.GetRegistry(r).Get(k, name)
}

// New reads the session the cookie names. A cookie that names none is a new session, never an error.
func (k *Keeper) New(r *http.Request, name string) (*sessions.Session, error) {
	s := sessions.NewSession(k, name)
	opts := k.opts
	s.Options, s.IsNew = &opts, true
	cookie, err := r.Cookie(name)
	if err != nil || !wellFormed(cookie.Value) {
		return s, nil
	}
	record, err := k.rows.SessionByHash(r.Context(), hashOf(cookie.Value))
	if f, ok := fault.As(err); ok && (f.Kind == fault.NotFound || f.Kind == fault.Unauthenticated) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.ID, s.IsNew = cookie.Value, false
	s.Values[recordKey{}] = record
	return s, nil
}

// Save writes the cookie of a session, or takes it away when MaxAge is negative, and keeps words for the next page when there are.
func (k *Keeper) Save(r *http.Request, w http.ResponseWriter, s *sessions.Session) error {
	if flash, ok := s.Values[flashKey{}].([]byte); ok && s.ID != "" {
		if err := k.rows.SaveFlash(r.Context(), hashOf(s.ID), flash); err != nil {
			return err
		}
		delete(s.Values, flashKey{})
	}
	http.SetCookie(w, sessions.NewCookie(s.Name(), s.ID, s.Options))
	return nil
}

// Load returns who is signed in on this request; false when nobody is.
func (k *Keeper) Load(r *http.Request) (Session, bool, error) {
	s, err := k.Get(r, k.name)
	if err != nil {
		return Session{}, false, err
	}
	record, ok := s.Values[recordKey{}].(Session)
	return record, ok, nil
}

// SignIn starts a session under a new random value, so that a value planted before signing in is worth nothing after. The session the
// browser had ends.
func (k *Keeper) SignIn(w http.ResponseWriter, r *http.Request, record Session, e audit.Entry) error {
	s, err := k.Get(r, k.name)
	if err != nil {
		return err
	}
	if s.ID != "" {
		if err := k.rows.EndSession(r.Context(), hashOf(s.ID), nil); err != nil {
			return err
		}
	}
	value := newValue()
	if err := k.rows.StartSession(r.Context(), record, hashOf(value), e); err != nil {
		return err
	}
	s.ID, s.IsNew = value, false
	s.Values[recordKey{}] = record
	return s.Save(r, w)
}

// SignOut ends the session on the server and takes the cookie away. Without a session it does nothing but that.
func (k *Keeper) SignOut(w http.ResponseWriter, r *http.Request, entry func(Session) audit.Entry) error {
	s, err := k.Get(r, k.name)
	if err != nil {
		return err
	}
	if record, ok := s.Values[recordKey{}].(Session); ok {
		e := entry(record)
		if err := k.rows.EndSession(r.Context(), hashOf(s.ID), &e); err != nil {
			return err
		}
	}
	s.ID, s.Options.MaxAge = "", -1
	clear(s.Values)
	return s.Save(r, w)
}

// Say keeps words for the next page of this browser; nil forgets them.
func (k *Keeper) Say(ctx context.Context, r *http.Request, flash []byte) error {
	hash := k.Hash(r)
	if hash == nil {
		return nil
	}
	return k.rows.SaveFlash(ctx, hash, flash)
}

// Hash names the session of this request in the store; nil when nobody is signed in.
func (k *Keeper) Hash(r *http.Request) []byte {
	s, err := k.Get(r, k.name)
	if err != nil || s.ID == "" {
		return nil
	}
	return hashOf(s.ID)
}

// valueLength is the length of 32 bytes in unpadded base64.
const valueLength = 43

func newValue() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// wellFormed keeps what cannot be a value of ours from costing a query.
func wellFormed(value string) bool {
	return len(value) == valueLength && strings.IndexFunc(value, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) < 0
}

func hashOf(value string) []byte {
	sum := sha256.Sum256([]byte(value))
	return sum[:]
}
