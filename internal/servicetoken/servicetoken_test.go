package servicetoken_test

import (
	"strings"
	"testing"

	"countersign/internal/identity"
	"countersign/internal/servicetoken"
)

func TestATokenDoesWhatItsScopesSayAndNeverApproves(t *testing.T) {
	for _, s := range servicetoken.Scopes {
		if strings.Contains(string(s), "approve") || strings.Contains(string(s), "decide") || s == "actions:write" {
			t.Errorf("the scope %s could decide", s)
		}
		for _, other := range servicetoken.Scopes {
			may := servicetoken.Token{Scopes: []servicetoken.Scope{s}}.May(other)
			want := s == other || (s == servicetoken.RunsWrite && other == servicetoken.RunsRead)
			if may != want {
				t.Errorf("a token with %s may %s: %v", s, other, may)
			}
		}
	}
}

func TestANewTokenIsShownOnceAndKeptAsAHash(t *testing.T) {
	owner := identity.Person{ID: "per_1", Org: "org_1", Email: "olu@example.test"}
	token, clear, hash, err := servicetoken.New(owner, " ci ", []string{"runs:write", "runs:write"})
	if err != nil {
		t.Fatal(err)
	}
	if token.Name != "ci" || len(token.Scopes) != 1 || token.Owner != owner.ID || token.Org != owner.Org || !strings.HasSuffix(clear, token.LastFour) {
		t.Errorf("got %+v", token)
	}
	if string(servicetoken.Hash(clear)) != string(hash) || !strings.HasPrefix(clear, servicetoken.Prefix) {
		t.Error("the hash is not the token's")
	}
	for sentence, bad := range map[string][2]string{"no name": {"", "runs:write"}, "a long name": {strings.Repeat("n", 81), "runs:write"}, "an unknown scope": {"ci", "actions:approve"}, "no scope": {"ci", ""}} {
		if _, _, _, err := servicetoken.New(owner, bad[0], []string{bad[1]}); err == nil {
			t.Errorf("%s is accepted", sentence)
		}
	}
}
