package credential

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/secret"
)

const token = "tok_9f8/Zk3vB7nM1pL5wX0y"

func bearer(t *testing.T) Contract {
	t.Helper()
	c, err := Token("Authorization", "Bearer {secret}")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func destination(t *testing.T, raw string) egress.Destination {
	t.Helper()
	d, err := egress.Operator(raw)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func values(s string) map[string]secret.Value {
	return map[string]secret.Value{TokenField: secret.New(s)}
}

func TestContractsThatWouldSteerARequestAreRefused(t *testing.T) {
	for _, h := range []Header{
		{Field: TokenField, Name: "", Format: "{secret}"},
		{Field: TokenField, Name: "X Y", Format: "{secret}"},
		{Field: TokenField, Name: "X:Y", Format: "{secret}"},
		{Field: TokenField, Name: "X-Key\r\nHost", Format: "{secret}"},
		{Field: TokenField, Name: "Host", Format: "{secret}"},
		{Field: TokenField, Name: "host", Format: "{secret}"},
		{Field: TokenField, Name: "Content-Length", Format: "{secret}"},
		{Field: TokenField, Name: "Transfer-Encoding", Format: "{secret}"},
		{Field: TokenField, Name: "mcp-session-id", Format: "{secret}"},
		{Field: TokenField, Name: "Authorization", Format: "Bearer"},
		{Field: TokenField, Name: "Authorization", Format: "{secret}{secret}"},
		{Field: TokenField, Name: "Authorization", Format: "Bearer {secret}\r\nX: y"},
		{Field: "", Name: "Authorization", Format: "Bearer {secret}"},
	} {
		if _, err := NewContract(h); !fault.Is(err, fault.CodeInvalid) {
			t.Errorf("%q was accepted", h)
		}
	}
	if _, err := NewContract(Header{Field: "a", Name: "X-Key", Format: "{secret}"}, Header{Field: "b", Name: "x-key", Format: "{secret}"}); err == nil {
		t.Error("two secrets in one header")
	}
	if _, err := NewContract(Header{Field: "a", Name: "X-Key", Format: "{secret}"}, Header{Field: "a", Name: "X-Other", Format: "{secret}"}); err == nil {
		t.Error("one field twice")
	}
	if c, err := NewContract(Header{Field: "api", Name: "DD-API-KEY", Format: "{secret}"}, Header{Field: "app", Name: "DD-APPLICATION-KEY", Format: "{secret}"}); err != nil || len(c.Fields()) != 2 {
		t.Error(err)
	}
}

func TestEachUnusableValueHasItsSentence(t *testing.T) {
	c := bearer(t)
	for value, part := range map[string]string{
		"":                           "empty",
		" " + token:                  "white space",
		token + "\n":                 "white space",
		token + "\r\nX-Evil: 1":      "line break",
		"a\x00b":                     "control",
		"a\x7fb":                     "control",
		"clé-privée-0123456789":      "ASCII",
		strings.Repeat("a", 8<<10+1): "8 KiB",
	} {
		err := c.Check(values(value))
		f, ok := fault.As(err)
		if !ok || f.Field != TokenField || !strings.Contains(f.What, part) {
			t.Errorf("%.20q: %v, want %q", value, err, part)
		}
		if len(value) > 8 && err != nil && strings.Contains(err.Error(), strings.TrimSpace(value)) {
			t.Errorf("the sentence quotes the value: %v", err)
		}
	}
	if err := c.Check(values(token)); err != nil {
		t.Error(err)
	}
	if err := c.Check(map[string]secret.Value{TokenField: secret.New(token), "other": secret.New("x")}); err == nil {
		t.Error("an unknown field was accepted")
	}
}

func TestACredentialIsAppliedToItsOriginOnly(t *testing.T) {
	d := destination(t, "http://127.0.0.1:9001/mcp")
	a, err := Bind(bearer(t), values(token), d)
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"http://127.0.0.1:9002/mcp", "https://127.0.0.1:9001/mcp", "http://127.0.0.1/mcp", "http://localhost:9001/", "http://127.0.0.1.evil.example:9001/"} {
		r := httptest.NewRequest(http.MethodPost, url, nil)
		if err := a.Edit(r); !errors.Is(err, ErrElsewhere) || len(r.Header) != 0 {
			t.Errorf("%s: %v %v", url, err, r.Header)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:9001/other", nil)
	r.Header.Set("Authorization", "Bearer from-the-caller")
	if err := a.Edit(r); err != nil || len(r.Header.Values("Authorization")) != 1 || r.Header.Get("Authorization") != "Bearer "+token {
		t.Errorf("%v %v", err, r.Header)
	}
	if s := fmt.Sprintf("%v %+v %#v", a, a, *a); strings.Contains(s, token) {
		t.Error("an authorizer prints its secret")
	}
	if _, err := Bind(bearer(t), values(token), egress.Destination{}); err == nil {
		t.Error("bound to nowhere")
	}
}

func TestAnUpstreamThatEchoesTheCredentialGetsItTakenOut(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, `{"headers":{"authorization":"`+r.Header.Get("Authorization")+`"}}`)
	}))
	defer srv.Close()
	d := destination(t, srv.URL)
	a, err := Bind(bearer(t), values(token), d)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*http.Client{egress.Client(d, egress.Options{Editor: a}), egress.Dispatch(d, egress.Options{Editor: a})} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if want := `{"headers":{"authorization":"Bearer ` + Marker + `"}}`; string(body) != want || resp.Header.Get("X-Echo") != "Bearer "+Marker {
			t.Errorf("%s %s", body, resp.Header.Get("X-Echo"))
		}
	}
}

// shelf is a Store in memory with the database's semantics.
type shelf struct {
	mu   sync.Mutex
	rows map[Place][]Record
}

func (s *shelf) Current(_ context.Context, p Place) ([]Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Record(nil), s.rows[p]...), nil
}

func (s *shelf) Put(_ context.Context, p Place, expected int64, records []Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if versionOf(s.rows[p]) != expected {
		return fault.Stale("The credential was changed meanwhile.")
	}
	s.rows[p] = records
	return nil
}

func (s *shelf) Reseal(_ context.Context, r Record, old secret.Sealed) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, row := range s.rows[r.Place] {
		if row.Field == r.Field && string(row.Sealed) == string(old) {
			s.rows[r.Place][i].Sealed = r.Sealed
		}
	}
	return nil
}

func (s *shelf) Shred(_ context.Context, p Place) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rows, p)
	return nil
}

func TestTheVaultOpensACredentialOnlyWhereItWasPut(t *testing.T) {
	keys, err := secret.Generate()
	if err != nil {
		t.Fatal(err)
	}
	store := &shelf{rows: map[Place][]Record{}}
	v := NewVault(keys, store)
	here, there := Place{"org_1", "crm-abcdef"}, Place{"org_2", "crm-abcdef"}
	d := destination(t, "http://127.0.0.1:9001/mcp")
	c, ctx := bearer(t), t.Context()

	if _, err := v.Authorizer(ctx, here, c, d); !fault.Is(err, fault.ConnectionUnavailable) {
		t.Errorf("no credential: %v", err)
	}
	if n, err := v.Save(ctx, here, c, values(token), d); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if n, err := v.Save(ctx, here, c, values(token+"2"), d); err != nil || n != 2 {
		t.Fatal(n, err)
	}
	if _, err := v.Save(ctx, here, c, values("a\nb"), d); err == nil {
		t.Error("an unusable value was stored")
	}
	a, err := v.Authorizer(ctx, here, c, d)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9001/", nil)
	if err := a.Edit(r); err != nil || r.Header.Get("Authorization") != "Bearer "+token+"2" {
		t.Error(err, r.Header)
	}
	sums, err := v.Summaries(ctx, here)
	if err != nil || len(sums) != 1 || sums[0].Version != 2 || sums[0].Fingerprint == "" || sums[0].Origin != d.Origin() {
		t.Errorf("%+v %v", sums, err)
	}
	if strings.Contains(fmt.Sprintf("%+v %s", store.rows, store.rows[here][0].Sealed), token) {
		t.Error("the store holds the credential in clear")
	}

	moved := destination(t, "http://127.0.0.1:9002/mcp")
	if _, err := v.Authorizer(ctx, here, c, moved); !errors.Is(err, ErrElsewhere) {
		t.Errorf("another address: %v", err)
	}
	// Somebody with the database, but without the keys, copies or edits rows.
	store.rows[there] = append([]Record(nil), store.rows[here]...)
	if _, err := v.Authorizer(ctx, there, c, d); err == nil {
		t.Error("a row copied to another organization opens")
	}
	store.rows[here][0].Origin = moved.Origin()
	if _, err := v.Authorizer(ctx, here, c, moved); err == nil {
		t.Error("a row whose origin was edited opens")
	}
	store.rows[here][0].Origin = d.Origin()

	rotated, id, err := keys.AddKey(secret.Sealing)
	if err != nil {
		t.Fatal(err)
	}
	if rotated, err = rotated.Promote(secret.Sealing, id); err != nil {
		t.Fatal(err)
	}
	v = NewVault(rotated, store)
	if n, err := v.Reseal(ctx, here); n != 1 || err != nil {
		t.Error(n, err)
	}
	if n, err := v.Reseal(ctx, here); n != 0 || err != nil {
		t.Error(n, err)
	}
	if _, err := v.Authorizer(ctx, here, c, d); err != nil {
		t.Error(err)
	}
	if err := v.Shred(ctx, here); err != nil {
		t.Error(err)
	}
	if _, err := v.Authorizer(ctx, here, c, d); err == nil {
		t.Error("a shredded credential opens")
	}
}

func TestAnOpenServiceNeedsNoCredential(t *testing.T) {
	v := NewVault(nil, &shelf{})
	a, err := v.Authorizer(t.Context(), Place{"org_1", "docs-abcdef"}, Contract{}, destination(t, "http://127.0.0.1:9001/"))
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9001/", nil)
	if err := a.Edit(r); err != nil || len(r.Header) != 0 {
		t.Error(err, r.Header)
	}
	if b, _ := io.ReadAll(a.Body(strings.NewReader("x"))); string(b) != "x" {
		t.Errorf("%s", b)
	}
}
