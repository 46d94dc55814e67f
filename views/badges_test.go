package views

import (
	"strings"
	"testing"

	"github.com/a-h/templ"

	"countersign/internal/action"
)

func html(t *testing.T, c templ.Component) string {
	t.Helper()
	var b strings.Builder
	if err := c.Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestEveryStateHasItsWords(t *testing.T) {
	if len(stateWords) != len(action.States) {
		t.Errorf("%d states have words, there are %d", len(stateWords), len(action.States))
	}
	for _, s := range action.States {
		got := html(t, StateChip(string(s)))
		if stateWords[string(s)] == "" || !strings.Contains(got, stateWords[string(s)]) || !strings.Contains(got, `data-state="`+string(s)+`"`) {
			t.Errorf("%s draws as %s", s, got)
		}
	}
}

// A state this release does not know must never look settled.
func TestAnUnknownStateLooksUnknown(t *testing.T) {
	if got := html(t, StateChip("rolled_back\u202e")); !strings.Contains(got, `data-state="uncertain"`) || !strings.Contains(got, "rolled_back") || strings.Contains(got, "\u202e") {
		t.Errorf("got %s", got)
	}
}

func TestWhatIsNotARequestToReadIsConsequential(t *testing.T) {
	for _, c := range []struct {
		effect      string
		destructive bool
		want        string
	}{
		{"read", false, "Read"},
		{"consequential", false, "Consequential"},
		{"consequential", true, "Destructive"},
		{"", false, "Consequential"},
		{"Read", false, "Consequential"},
		{"read", true, "Destructive"},
	} {
		if got := html(t, EffectBadge(c.effect, c.destructive)); !strings.HasSuffix(got, c.want+"</span>") {
			t.Errorf("%q, destructive %v draws as %s, want %s", c.effect, c.destructive, got, c.want)
		}
	}
}

func TestTheFirstCommandIsExact(t *testing.T) {
	want := `countersign org create --slug acme --name &#34;Acme&#34; --owner-email you@example.com --password-stdin</pre>`
	if got := html(t, SignIn(SignInView{NoOrg: true})); !strings.Contains(got, want) || strings.Contains(got, "<form") {
		t.Errorf("the page without an organization must hold the command and no form: %s", got)
	}
}

func TestAWrongPairKeepsTheAddressOnly(t *testing.T) {
	got := html(t, SignIn(SignInView{Email: "a@b.test", Error: "Email and password do not match.", To: "/actions/x"}))
	for _, want := range []string{`value="a@b.test"`, `role="alert"`, `name="to" value="/actions/x"`, `data-test="sign-in"`} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}
