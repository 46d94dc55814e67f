package agentside

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"countersign/internal/secret"
)

// A gateway that took the token and then says something wrong is not one that does not answer.
func TestWhatTheGatewayAnsweredStaysTrue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		preflight, config int // status
		answers, takes    bool
	}{
		"the token is refused":      {http.StatusUnauthorized, http.StatusOK, true, false},
		"something else is there":   {http.StatusNotFound, http.StatusOK, false, false},
		"no configuration is given": {http.StatusOK, http.StatusBadGateway, true, true},
		"its configuration is odd":  {http.StatusOK, http.StatusOK, true, true},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status := c.preflight
			if r.URL.Path == "/gateway/config" {
				status = c.config
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"mcp":{"url":"nowhere"}}`)
		}))
		t.Cleanup(s.Close)
		g, err := Open(s.URL, secret.New(canary), false)
		must(t, err)
		if f := Examine(t.Context(), g, false, ""); f.Answers != c.answers || f.TakesToken != c.takes || f.Run != nil || len(f.Wrong) == 0 {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
