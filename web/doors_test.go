package web_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/db/dbtest/scene"
	"countersign/internal/audit"
	"countersign/internal/identity"
)

func TestSignInJourney(t *testing.T) {
	s := newSite(t)
	b := s.browser()

	b.get("/people").goes(t, "/sign-in?to=%2Fpeople")
	b.get("/sign-in?to=/people").is(t, http.StatusOK, `name="to" value="/people"`, `data-test="sign-in"`)
	in := b.post("/sign-in", "email", " Owner@Harbor.test ", "password", scene.Password, "to", "/people").goes(t, "/people")

	cookie := in.Cookies()[0]
	if cookie.Name != "countersign" || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" || len(cookie.Value) != 43 || cookie.MaxAge != 0 {
		t.Fatalf("cookie: %+v", cookie)
	}
	b.get("/people").is(t, http.StatusOK, "owner@harbor.test")
	b.get("/sign-in?to=/tokens").goes(t, "/tokens")

	b.post("/sign-out").goes(t, "/sign-in")
	b.get("/people").goes(t, "/sign-in?to=%2Fpeople")
	b.post("/sign-out").goes(t, "/sign-in")
	b.header.Set("Cookie", "countersign="+cookie.Value)
	b.get("/people").is(t, http.StatusSeeOther)

	if got := s.Events(s.Org.ID); !slices.Equal(got[:2], []audit.Event{audit.SignedOut, audit.SignedIn}) {
		t.Fatalf("trail: %v", got)
	}
}

func TestEverySignInGetsAValueOfItsOwn(t *testing.T) {
	s := newSite(t)
	b := s.browser()
	planted := strings.Repeat("A", 43)
	u, _ := url.Parse(s.server.URL)
	b.http.Jar.SetCookies(u, []*http.Cookie{{Name: "countersign", Value: planted, Path: "/"}})
	first := b.post("/sign-in", "email", "owner@harbor.test", "password", scene.Password).Cookies()[0].Value
	second := b.post("/sign-in", "email", "owner@harbor.test", "password", scene.Password).Cookies()[0].Value
	if first == planted || second == first {
		t.Fatal("a value was kept over a sign-in")
	}
	old := s.browser()
	old.header.Set("Cookie", "countersign="+first)
	old.get("/people").is(t, http.StatusSeeOther)
}

func TestRefusedSignInsReadTheSame(t *testing.T) {
	s := newSite(t)
	gone := s.Person("gone@harbor.test", identity.Member)
	s.Must(s.Directory.SetActive(t.Context(), s.Org.ID, gone.ID, false, audit.Entry{Org: s.Org.ID, Actor: audit.Operator, Event: audit.PersonDeactivated, Object: audit.Object{Kind: "person", ID: string(gone.ID)}}))
	s.SQL("UPDATE people SET password_hash = '' WHERE email = 'member@harbor.test'")

	bodies := map[string]bool{}
	for _, c := range [][2]string{
		{"owner@harbor.test", "wrong wrong wrong"},
		{"nobody@harbor.test", scene.Password},
		{"gone@harbor.test", scene.Password},
		{"member@harbor.test", ""},
		{"owner@harbor.test", ""},
		{"not an address", scene.Password},
		{"", ""},
		{strings.Repeat("x", 4000) + "@harbor.test", scene.Password},
	} {
		began := time.Now()
		p := s.browser().post("/sign-in", "email", c[0], "password", c[1]).is(t, http.StatusUnprocessableEntity, "That email and password do not match.")
		if took := time.Since(began); took < 250*time.Millisecond {
			t.Errorf("%.20s: answered after %s", c[0], took)
		}
		if len(p.Cookies()) != 0 {
			t.Errorf("%.20s: got a cookie", c[0])
		}
		if c[1] != "" {
			p.lacks(t, c[1])
		}
		bodies[p.between(t, `class="note bad"`, "</div>")] = true
	}
	if len(bodies) != 1 {
		t.Fatalf("%d different answers", len(bodies))
	}
	if got := s.Events(s.Org.ID); got[0] != audit.SignInRefused {
		t.Fatalf("trail: %v", got[:3])
	}
}

func TestSignInIsRateLimited(t *testing.T) {
	s := newSite(t)
	b := s.browser()
	for range 5 {
		b.post("/sign-in", "email", "owner@harbor.test", "password", "wrong wrong wrong").is(t, http.StatusUnprocessableEntity)
	}
	p := b.post("/sign-in", "email", "owner@harbor.test", "password", scene.Password).is(t, http.StatusTooManyRequests, "Too many tries.", "Wait 15 minutes")
	if p.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	b.post("/sign-in", "email", "admin@harbor.test", "password", scene.Password).goes(t, "/")
	s.SQL("UPDATE sign_in_attempts SET at = at - interval '16 minutes'")
	b.post("/sign-in", "email", "owner@harbor.test", "password", scene.Password).goes(t, "/")
}

func TestOnlyOwnPathsAreFollowed(t *testing.T) {
	s := newSite(t)
	for _, to := range []string{"//evil.test", "https://evil.test/", "/\\evil.test", "/\t/evil.test", "javascript:alert(1)", "evil.test", "/%0d%0aSet-Cookie:x", "///evil.test", "/sign-out"} {
		got := s.browser().post("/sign-in", "email", "owner@harbor.test", "password", scene.Password, "to", to).is(t, http.StatusSeeOther).Header.Get("Location")
		if got != "/" && got != "/%0d%0aSet-Cookie:x" {
			t.Errorf("%q led to %q", to, got)
		}
	}
	s.browser().post("/sign-in", "email", "owner@harbor.test", "password", scene.Password, "to", "/audit?actor=x&event=a").goes(t, "/audit?actor=x&event=a")
}

func TestNoOrganizationYet(t *testing.T) {
	s := newEmptySite(t)
	s.browser().get("/sign-in").is(t, http.StatusOK, "No organization yet", "countersign org create").lacks(t, `type="password"`)
	s.browser().get("/").goes(t, "/sign-in")
	s.browser().post("/sign-in", "email", "a@b.test", "password", "x").is(t, http.StatusUnprocessableEntity)
}

func TestSessionEnds(t *testing.T) {
	s := newSite(t)
	b := s.as("owner@harbor.test")
	b.get("/").is(t, http.StatusOK)
	s.SQL("UPDATE sessions SET used_at = used_at - interval '61 minutes'")
	b.get("/").goes(t, "/sign-in")

	b = s.as("owner@harbor.test")
	s.SQL("UPDATE sessions SET expires_at = now() - interval '1 second'")
	b.get("/").goes(t, "/sign-in")

	b = s.as("member@harbor.test")
	s.SQL("UPDATE people SET active = false WHERE email = 'member@harbor.test'")
	b.get("/").goes(t, "/sign-in")
}

func TestHtmxIsSentToTheDoorAsAWhole(t *testing.T) {
	s := newSite(t)
	b := s.browser()
	b.header.Set("HX-Request", "true")
	if p := b.get("/people").is(t, http.StatusUnauthorized); p.Header.Get("HX-Redirect") != "/sign-in" {
		t.Fatalf("HX-Redirect: %q", p.Header.Get("HX-Redirect"))
	}
}

func TestInvitationJourney(t *testing.T) {
	s := newSite(t)
	owner := s.as("owner@harbor.test")
	p := owner.post("/people", "email", "Maya@Harbor.test", "roles", "approver", "roles", "auditor", "with", "link").is(t, http.StatusOK, "not shown again")
	link := p.between(t, `data-test="invitation-link">`, "<")
	path := strings.TrimPrefix(link, s.server.URL)
	owner.get("/people").is(t, http.StatusOK, "maya@harbor.test", "Has no password yet").lacks(t, path)

	maya := s.browser()
	maya.get(path).is(t, http.StatusOK, "approver and auditor", "Harbor &amp; Pine")
	maya.get(path).is(t, http.StatusOK) // a scanner that opened it first uses nothing up
	maya.post(path, "name", "", "password", "short").is(t, http.StatusUnprocessableEntity, "1 to 100 characters", "12 to 200 characters")
	maya.post(path, "name", "Maya Okafor", "password", "another long sentence").goes(t, "/")
	maya.get("/audit").is(t, http.StatusOK, "Joined", "Maya Okafor")
	s.browser().get(path).is(t, http.StatusGone, "This invitation is over")
	s.browser().post(path, "name", "Eve", "password", "another long sentence").is(t, http.StatusGone)
	s.browser().get("/join/"+strings.Repeat("x", 43)).is(t, http.StatusGone)

	again := s.browser()
	again.post("/sign-in", "email", "maya@harbor.test", "password", "another long sentence").goes(t, "/")
}

func TestPasswordLinkSignsOutEverywhere(t *testing.T) {
	s := newSite(t)
	member := s.as("member@harbor.test")
	owner := s.as("owner@harbor.test")
	id := string(s.People[identity.Member].ID)
	first := owner.post("/people/"+id+"/link").is(t, http.StatusOK, "Password link for").between(t, `data-test="invitation-link">`, "<")
	second := owner.post("/people/"+id+"/link").is(t, http.StatusOK).between(t, `data-test="invitation-link">`, "<")
	s.browser().get(strings.TrimPrefix(first, s.server.URL)).is(t, http.StatusGone)
	path := strings.TrimPrefix(second, s.server.URL)
	s.browser().get(path).is(t, http.StatusOK, "Set a new password").lacks(t, `name="name"`)
	s.browser().post(path, "password", "a third long sentence").goes(t, "/")
	member.get("/").goes(t, "/sign-in")
	s.browser().post("/sign-in", "email", "member@harbor.test", "password", scene.Password).is(t, http.StatusUnprocessableEntity)
	if got := s.Events(s.Org.ID); !slices.Contains(got, audit.PasswordSet) {
		t.Fatalf("trail: %v", got)
	}
}
