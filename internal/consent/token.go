package consent

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/internal/egress"
	"countersign/internal/manifest"
	"countersign/internal/secret"
)

// tokens is what an authorization server gave.
type tokens struct {
	access  secret.Value
	refresh secret.Value // empty: none, or the one there is stays
	expires *time.Time
	scopes  []string
	named   bool // the answer named the scopes
}

// refusal is an authorization server's own no. Code is one word of the standard or the vendor's; it never holds their prose.
type refusal struct{ code string }

// Error implements error.
func (r *refusal) Error() string { return "the authorization server answered " + r.code }

// doubtful is an exchange that may have been carried out: its answer was lost, or makes no sense.
type doubtful struct{ cause error }

// Error implements error.
func (d *doubtful) Error() string { return "no usable answer of the authorization server" }

// Unwrap returns the cause.
func (d *doubtful) Unwrap() error { return d.cause }

// words of refusals, by what they mean for a consent. Besides the standard's there are those of vendors that have their own.
var (
	endedWords  = []string{"invalid_grant", "invalid_refresh_token", "bad_refresh_token", "token_revoked", "token_expired", "invalid_token"}
	clientWords = []string{"invalid_client", "unauthorized_client", "bad_client_secret", "incorrect_client_credentials", "invalid_client_id"}
	laterWords  = []string{"temporarily_unavailable", "server_error", "slow_down", "ratelimited", "rate_limited", "too_many_requests"}
)

// exchangeCode trades the code of a callback for tokens.
func (s Site) exchangeCode(ctx context.Context, q Request, o manifest.OAuth, key, verifier secret.Value, code, callback string) (tokens, error) {
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback}, "code_verifier": {verifier.Reveal()}}
	return s.token(ctx, q.Server, q.Client, o, key, form)
}

// exchangeRefresh trades a refresh token for new tokens. The scopes are not named: the standard keeps them as granted.
func (s Site) exchangeRefresh(ctx context.Context, c Consent, o manifest.OAuth, key, refresh secret.Value) (tokens, error) {
	return s.token(ctx, c.Server, c.Client, o, key, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh.Reveal()}})
}

func (s Site) token(ctx context.Context, server Server, c Client, o manifest.OAuth, key secret.Value, form url.Values) (tokens, error) {
	if server.Resource != "" {
		form.Set("resource", server.Resource)
	}
	authorize := c.authorise(form, key)
	began := time.Now() // the lifetime counts from before the answer travelled
	a, err := s.post(ctx, server.Token, "application/x-www-form-urlencoded", []byte(form.Encode()), authorize)
	if err != nil {
		return tokens{}, &doubtful{err}
	}
	return readTokens(a, o, began)
}

// tokenAnswer is the answer of a token endpoint. Some vendors answer 200 with an error in it.
type tokenAnswer struct {
	Access  string          `json:"access_token"`
	Kind    string          `json:"token_type"`
	Refresh string          `json:"refresh_token"`
	Lasts   json.RawMessage `json:"expires_in"`
	Scope   *string         `json:"scope"`
	Error   string          `json:"error"`
}

func readTokens(a answer, o manifest.OAuth, began time.Time) (tokens, error) {
	var whole map[string]json.RawMessage
	var t tokenAnswer
	understood := json.Unmarshal(a.body, &whole) == nil && json.Unmarshal(a.body, &t) == nil
	switch {
	case a.status >= 500 || a.status == http.StatusTooManyRequests || a.status == http.StatusRequestTimeout:
		return tokens{}, &refusal{"temporarily_unavailable"}
	case t.Error != "":
		return tokens{}, &refusal{word(t.Error)}
	case a.status/100 == 4 || a.status/100 == 3:
		return tokens{}, &refusal{"http_" + strconv.Itoa(a.status)}
	case !understood:
		return tokens{}, &doubtful{errAbsent}
	}
	if o.TokensIn != "" {
		if inner, ok := whole[o.TokensIn]; ok && json.Unmarshal(inner, &t) != nil {
			return tokens{}, &doubtful{errAbsent}
		}
	}
	if !plain(t.Access) || t.Refresh != "" && !plain(t.Refresh) || !bearer(t.Kind, o) {
		return tokens{}, &doubtful{errAbsent}
	}
	out := tokens{access: secret.New(t.Access), refresh: secret.New(t.Refresh), expires: lasts(t.Lasts, began)}
	if t.Scope != nil && *t.Scope != "" {
		out.scopes, out.named = listed(*t.Scope), true
	}
	return out, nil
}

// bearer reports whether the token may be used as one. A vendor that keeps its tokens elsewhere in the answer says other words there.
func bearer(kind string, o manifest.OAuth) bool {
	return kind == "" || strings.EqualFold(kind, "bearer") || o.TokensIn != ""
}

// lasts reads a lifetime, a number or a number in quotes; nil where there is none.
func lasts(raw json.RawMessage, began time.Time) *time.Time {
	var seconds json.Number
	if json.Unmarshal([]byte(strings.Trim(string(raw), `"`)), &seconds) != nil {
		return nil
	}
	n, err := seconds.Float64()
	if err != nil || n <= 0 || n > 10*365*24*3600 {
		return nil
	}
	at := began.Add(time.Duration(n * float64(time.Second)))
	return &at
}

// word keeps a refusal to what can be a code: the rest of an answer may hold anything.
func word(s string) string {
	s = strings.ToLower(s)
	if len(s) > 60 || strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) {
		return "refused"
	}
	return s
}

func (r *refusal) ended() bool  { return slices.Contains(endedWords, r.code) }
func (r *refusal) client() bool { return slices.Contains(clientWords, r.code) || r.code == "http_401" }

// later reports whether asking again may help: a status without a word may come from anything in between.
func (r *refusal) later() bool {
	return slices.Contains(laterWords, r.code) || strings.HasPrefix(r.code, "http_") && !r.client()
}

// revoke gives one token back (RFC 7009).
func (s Site) revoke(ctx context.Context, server Server, c Client, key, token secret.Value, hint string) error {
	form := url.Values{"token": {token.Reveal()}, "token_type_hint": {hint}}
	authorize := c.authorise(form, key)
	a, err := s.post(ctx, server.Revoke, "application/x-www-form-urlencoded", []byte(form.Encode()), authorize)
	if err != nil {
		return err
	}
	if a.status/100 != 2 {
		return &refusal{"http_" + strconv.Itoa(a.status)}
	}
	return nil
}

// tokenPlace is where the secrets of the token endpoint may be sent.
func (s Site) tokenPlace(server Server) (egress.Destination, error) {
	return s.destination(server.Token)
}
