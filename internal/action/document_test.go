package action_test

import (
	"encoding/json"
	"strings"
	"testing"

	"countersign/internal/action"
)

func TestADocumentSaysWhoHasSignedWhereSeveralAreAsked(t *testing.T) {
	one := action.Action{ID: "act_1", Connection: "crm-aaaaaa", State: action.StateStaged, Needed: 1, Signatures: []action.Signature{{Name: "Robin"}}}
	two := one
	two.Needed = 2
	for _, c := range []struct {
		a    action.Action
		want string
	}{{one, ""}, {two, `"signatures":{"needed":2,"by":["Robin"]}`}} {
		raw, err := json.Marshal(action.Describe(c.a, nil, "https://cs.example"))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(raw); strings.Contains(got, `"signatures"`) != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("asked for %d: %s", c.a.Needed, got)
		}
	}
}
