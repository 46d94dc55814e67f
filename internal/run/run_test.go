package run_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"countersign/internal/fault"
	"countersign/internal/run"
)

func order(t *testing.T, body string) (run.Order, error) {
	t.Helper()
	var q run.Request
	if err := json.Unmarshal([]byte(body), &q); err != nil {
		t.Fatal(err)
	}
	return q.Check()
}

func TestARequestIsToldEverythingThatIsWrong(t *testing.T) {
	for _, c := range []struct{ sentence, body, field string }{
		{"an unknown surface", `{"surface":"email","profile":"p"}`, "surface"},
		{"no profile", `{"surface":"chat"}`, "profile"},
		{"a task run without a task", `{"surface":"task","profile":"p","on_behalf_of":"a@b.test"}`, "task"},
		{"a task of two lines", `{"surface":"task","profile":"p","task":"a\nb","on_behalf_of":"a@b.test"}`, "task"},
		{"a task that is too long", `{"surface":"task","profile":"p","task":"` + strings.Repeat("x", 201) + `","on_behalf_of":"a@b.test"}`, "task"},
		{"a task run for nobody", `{"surface":"task","profile":"p","task":"T-1"}`, "on_behalf_of"},
		{"a person who is no address", `{"surface":"chat","profile":"p","on_behalf_of":"maya"}`, "on_behalf_of"},
		{"a connection that is no key", `{"surface":"chat","profile":"p","connections":["../x"]}`, "connections"},
		{"a budget of nothing", `{"surface":"chat","profile":"p","budget":{"consequential":0}}`, "budget"},
		{"a budget beyond the bound", `{"surface":"chat","profile":"p","budget":{"consequential":10001}}`, "budget"},
		{"a life that is too short", `{"surface":"chat","profile":"p","ttl_seconds":59}`, "ttl_seconds"},
		{"a life that is too long", `{"surface":"chat","profile":"p","ttl_seconds":86401}`, "ttl_seconds"},
	} {
		_, err := order(t, c.body)
		list, ok := err.(fault.List)
		if !ok || len(list) != 1 || list[0].Field != c.field {
			t.Errorf("%s: got %v", c.sentence, err)
		}
	}
	if _, err := order(t, `{"surface":"?","task":"x","ttl_seconds":1}`); len(err.(fault.List)) != 3 {
		t.Errorf("several faults at once: %v", err)
	}
}

func TestARequestBecomesAnOrder(t *testing.T) {
	o, err := order(t, `{"surface":"task","profile":"support","task":"SUP-1","on_behalf_of":" Maya@Example.test ","connections":[],"budget":{"consequential":3},"ttl_seconds":90}`)
	if err != nil {
		t.Fatal(err)
	}
	if o.OnBehalfOf != "maya@example.test" || o.Budget != 3 || o.TTL != 90*time.Second || o.Connections == nil || len(o.Connections) != 0 {
		t.Errorf("got %+v", o)
	}
	o, err = order(t, `{"surface":"chat","profile":"support"}`)
	if err != nil || o.TTL != run.DefaultTTL || o.Connections != nil || o.Budget != 0 {
		t.Errorf("defaults: %+v, %v", o, err)
	}
}

func TestARunIsLiveUntilItEndsOrExpires(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	ended := now.Add(-time.Minute)
	for _, c := range []struct {
		r    run.Run
		live bool
	}{
		{run.Run{ExpiresAt: now.Add(time.Second)}, true},
		{run.Run{ExpiresAt: now}, false},
		{run.Run{ExpiresAt: now.Add(time.Hour), EndedAt: &ended}, false},
	} {
		if c.r.Live(now) != c.live {
			t.Errorf("%+v: live is not %v", c.r, c.live)
		}
	}
}

func TestTokensAreLongRandomAndStoredAsAHash(t *testing.T) {
	a, hash := run.NewToken()
	b, _ := run.NewToken()
	if a == b || !strings.HasPrefix(a, run.TokenPrefix) || len(a) < 40 {
		t.Errorf("tokens %d and %d characters long", len(a), len(b))
	}
	if string(run.HashToken(a)) != string(hash) || strings.Contains(string(hash), a) {
		t.Error("the hash is not the token's")
	}
}
