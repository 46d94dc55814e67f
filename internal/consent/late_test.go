package consent_test

import (
	"context"
	"strings"
	"testing"

	"countersign/internal/audit"
	"countersign/internal/consent"
	"countersign/internal/credential"
	"countersign/internal/fault"
	"countersign/internal/installation"
)

// A connection that is retired while a person is at the service, or while the service is asked for the tokens, takes no consent; and what
// the service gave meanwhile is not left lying there.
func TestAConsentThatComesTooLateIsGivenBack(t *testing.T) {
	retire := func(w *world) {
		w.Helper()
		c := w.connection()
		_, err := w.first.connections.Retire(w.Context(), w.owner, installation.Access{Key: c.Key, Version: c.Version})
		w.must(err)
	}
	t.Run("on the way", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "")
		a := w.visit(w.leave(consent.Leave{}).URL)
		retire(w)
		if _, err := w.receive(a); !fault.Is(err, fault.CodeConflict) {
			t.Errorf("the answer is taken with %v", err)
		}
		if n := len(w.server.Journal("code")); n != 0 {
			t.Errorf("%d codes were traded for a retired connection", n)
		}
	})
	for name, c := range map[string]struct {
		fields string
		live   int
		says   string
	}{
		"at the last moment":                     {"", 0, "confirmed that the consent is given back"},
		"at the last moment, and it stays there": {"revocation = \"none\"\nmanage = \"https://desk.example.com/apps\"", 1, "offers no way to give the consent back. A person can end it at https://desk.example.com/apps."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.fields)
			w.first.desk.Store = &overtaken{Store: w.first.desk.Store, give: func() { retire(w) }}
			_, err := w.receive(w.visit(w.leave(consent.Leave{}).URL))
			if f, ok := fault.As(err); !ok || !strings.Contains(f.What, "retired meanwhile") || !strings.Contains(f.Next, c.says) {
				t.Errorf("it is answered %v", err)
			}
			if w.server.Live() != c.live || w.count("SELECT count(*) FROM consents")+w.count("SELECT count(*) FROM credentials") != 0 {
				t.Errorf("%d tokens work on", w.server.Live())
			}
		})
	}
	t.Run("after another consent came in between", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "")
		real := w.first.desk.Store
		w.first.desk.Store = &overtaken{Store: &outrun{real, func() { retire(w) }}, give: func() {
			w.first.desk.Store = real
			w.consents()
		}}
		_, err := w.receive(w.visit(w.leave(consent.Leave{}).URL))
		if f, ok := fault.As(err); !ok || !strings.Contains(f.Next, "confirmed that the consent is given back") {
			t.Errorf("it is answered %v", err)
		}
	})
}

// outrun is a store after whose every Give something else happens.
type outrun struct {
	consent.Store
	then func()
}

func (s *outrun) Give(ctx context.Context, c consent.Consent, sealed []credential.Record, e audit.Entry) error {
	defer s.then()
	return s.Store.Give(ctx, c, sealed, e)
}
