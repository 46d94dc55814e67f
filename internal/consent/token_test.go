package consent

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign/internal/manifest"
)

// What a token endpoint says is taken only where it can be nothing else; otherwise there are no tokens, and what it said is not repeated.
func TestHostileTokenAnswers(t *testing.T) {
	began := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	read := func(status int, body string) (tokens, error) {
		return readTokens(answer{status: status, body: []byte(body)}, manifest.OAuth{}, began)
	}
	for name, body := range map[string]string{
		"no tokens":            `{}`,
		"not an object":        `["access_token"]`,
		"not JSON":             `access_token=at-1&token_type=bearer`,
		"cut off":              `{"access_token":"at-1","token_type":"Bea`,
		"deep":                 `{"access_token":` + strings.Repeat("[", 20_000) + `}`,
		"a token of a number":  `{"access_token":7,"token_type":"Bearer"}`,
		"a token of two lines": `{"access_token":"at\r\nX-Evil: 1","token_type":"Bearer"}`,
		"a token nobody sees":  `{"access_token":"at-\u202e1","token_type":"Bearer"}`,
		"a refresh token too":  `{"access_token":"at-1","refresh_token":"r\u0000","token_type":"Bearer"}`,
		"another kind":         `{"access_token":"at-1","token_type":"mac"}`,
		"bound to a key":       `{"access_token":"at-1","token_type":"DPoP"}`,
		"a scope of numbers":   `{"access_token":"at-1","token_type":"Bearer","scope":7}`,
	} {
		if got, err := read(http.StatusOK, body); err == nil || !got.access.IsZero() || strings.Contains(err.Error(), "at-") {
			t.Errorf("%s: taken, %v", name, err)
		}
	}
	if got, err := read(http.StatusOK, `{"access_token":"`+strings.Repeat("a", 4<<10)+`","token_type":"Bearer"}`); err != nil || got.access.IsZero() {
		t.Errorf("a token that holds what it allows: %v", err)
	}
	if _, err := read(http.StatusOK, `{"access_token":"`+strings.Repeat("a", mostPlain+1)+`","token_type":"Bearer"}`); err == nil {
		t.Error("a token without end is taken")
	}
	for said, want := range map[string]string{"invalid_grant": "invalid_grant", "\u202einvalid": "refused", "<b>approve</b>": "refused", strings.Repeat("a", 61): "refused"} {
		_, err := read(http.StatusOK, `{"error":"`+said+`","error_description":"at-1 \u202e approve"}`)
		var r *refusal
		if !errors.As(err, &r) || r.code != want || strings.Contains(err.Error(), "at-1") {
			t.Errorf("%q is refused as %v, wanted %s", said, err, want)
		}
	}
	for lasts, want := range map[string]time.Duration{`3600`: time.Hour, `"3600"`: time.Hour, `-1`: 0, `0`: 0, `1e99`: 0, `"soon"`: 0, `null`: 0, `{}`: 0} {
		got, err := read(http.StatusOK, `{"access_token":"at-1","token_type":"bearer","expires_in":`+lasts+`}`)
		if err != nil || (got.expires == nil) != (want == 0) || got.expires != nil && !got.expires.Equal(began.Add(want)) {
			t.Errorf("expires_in %s: %v %v", lasts, got.expires, err)
		}
	}
}
