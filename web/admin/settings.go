package admin

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/people"
	"countersign/internal/release"
	"countersign/internal/secret"
	"countersign/views"
	"countersign/views/ui"
	"countersign/web/session"
)

// Settings are what a person sets for themselves, and the organization's facts.
type Settings struct {
	Directory people.Directory
	Roster    people.Roster
	Attempts  Attempts
	Sessions  *session.Keeper
	Releases  CurrentRelease
	PublicURL string
	Secure    bool // the public address is https
}

// CurrentRelease finds the release in use; release.Store implements it.
type CurrentRelease interface {
	Current(ctx context.Context) (release.Release, error)
}

// Show is the page.
func (s *Settings) Show(r *Request) error { return s.show(r, http.StatusOK, views.SettingsView{}) }

func (s *Settings) show(r *Request, status int, v views.SettingsView) error {
	all, err := s.Directory.People(r.Ctx(), r.Org())
	if err != nil {
		return err
	}
	current, err := s.Releases.Current(r.Ctx())
	if f, ok := fault.As(err); err != nil && (!ok || f.Kind != fault.NotFound) {
		return err
	}
	v.Person, v.Org, v.PublicURL, v.Release = r.Person(), r.Session.Org, s.PublicURL, string(current.Digest())
	v.Theme, v.Holders = Theme(r.Request()), views.Holders(all)
	return r.Show(status, views.SettingsPage(r.Frame("Settings", "settings"), v))
}

const themeLasts = 365 * 24 * time.Hour

// Theme keeps the look in a cookie of its own: it says nothing about the person and lives longer than a session.
func (s *Settings) Theme(r *Request) error {
	c := &http.Cookie{Name: "theme", Path: "/", Secure: s.Secure, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	switch theme := r.Posted("theme"); theme {
	case "light", "dark":
		c.Value, c.MaxAge = theme, int(themeLasts/time.Second)
	case "":
		c.MaxAge = -1
	default:
		return fault.Field("theme", "There is no such look; choose light, dark or the system's.")
	}
	http.SetCookie(r.Response(), c)
	return r.Done(ui.OK, "The look is saved.", "/settings")
}

// Password changes the person's own password. The current one is asked for, as often as at the door: a browser left open must not
// become an account taken over.
func (s *Settings) Password(r *Request) error {
	hash, err := s.newPassword(r)
	if err == nil {
		err = s.Roster.SetPassword(r.Ctx(), r.Org(), r.Person().ID, hash, s.Sessions.Hash(r.Request()), r.Entry(audit.PasswordSet, "person", string(r.Person().ID)))
	}
	if f, ok := fault.As(err); ok && f.Kind == fault.Limited {
		return s.show(r, http.StatusTooManyRequests, views.SettingsView{Error: f.What, Next: f.Next})
	}
	if fields, whole, again := Problems(err); err != nil && again {
		return s.show(r, statusOf(err), views.SettingsView{Errors: fields, Error: what(whole), Next: next(whole)})
	}
	if err != nil {
		return err
	}
	return r.Done(ui.OK, "Your password is changed. Every other browser is signed out.", "/settings")
}

// newPassword checks the current password and hashes the new one.
func (s *Settings) newPassword(r *Request) (hash string, err error) {
	email, address := r.Person().Email, r.RealIP()
	wait, err := s.Attempts.SignInAttempt(r.Ctx(), email, address)
	if err != nil {
		return "", err
	}
	if wait > 0 {
		r.Response().Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
		return "", tooManyTries(wait)
	}
	account, err := s.Directory.AccountByEmail(r.Ctx(), email)
	if err != nil {
		return "", err
	}
	err = bounded(r.Ctx(), func() error { return people.Verify(account, secret.New(r.Posted("current"))) })
	if fault.Is(err, fault.CodeUnauthenticated) {
		return "", fault.Field("current", "This is not your current password. It stays as it was.")
	}
	if err != nil {
		return "", err
	}
	if err := s.Attempts.SignInSucceeded(r.Ctx(), email, address); err != nil {
		return "", err
	}
	err = bounded(r.Ctx(), func() (err error) {
		hash, err = people.HashPassword(secret.New(r.Posted("password")))
		return err
	})
	return hash, err
}
