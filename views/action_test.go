package views

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"countersign/internal/action"
	"countersign/internal/growth"
	"countersign/internal/run"
	"countersign/internal/wording"
)

// staged is the card of an action with one argument, as somebody sees it who may decide.
func staged(t *testing.T, argument string) ActionView {
	t.Helper()
	raw, err := json.Marshal(map[string]string{"text": argument})
	if err == nil {
		raw, err = action.Arguments(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 30, 13, 54, 0, 0, time.UTC)
	v := ActionView{Now: now, Run: run.Run{Budget: 3, Used: 1}, Action: action.Action{
		ID: "act_1", State: action.StateStaged, Tool: "notes_add", ConnectionName: "CRM",
		Arguments: raw, ArgsDigest: strings.Repeat("a", 64), Definition: strings.Repeat("b", 64), RequestedAt: now.Add(-time.Minute), ExpiresAt: now.Add(time.Hour), Destination: "https://crm.example.com/mcp",
	}}
	if v.Arguments, err = wording.Arguments(raw); err != nil {
		t.Fatal(err)
	}
	v.Sentence = wording.Say(v.Policy, v.Arguments, v.Action.Tool, v.Action.ConnectionName)
	return v
}

func drawn(t *testing.T, v ActionView) string {
	t.Helper()
	var b strings.Builder
	if err := ActionCard(v).Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestTheLargestArgumentIsDrawnInTime: an agent must not be able to make a card that nobody can open.
func TestTheLargestArgumentIsDrawnInTime(t *testing.T) {
	for name, unit := range map[string]string{"plain": "a", "override": "\u202e", "breaks": "\n", "lines": "x\n", "cyrillic": "с a", "hebrew": "ש ", "piled": "z\u0301"} {
		growth.Linear(t, name, (action.MaxArguments-100)/6/4, func(size int) func() { // an escape takes up to six bytes
			v := staged(t, strings.Repeat(unit, size/len(unit)))
			return func() {
				if strings.ContainsAny(drawn(t, v), "\u202e\u200b") {
					t.Errorf("%s: something hidden reached the page", name)
				}
			}
		})
	}
}

// TestFoldedLinesAreRepeatedBesideTheButtons: nobody approves what they were not told of.
func TestFoldedLinesAreRepeatedBesideTheButtons(t *testing.T) {
	html := drawn(t, staged(t, strings.Repeat("one line\n", 40)))
	for _, want := range []string{"Show the other 28 lines", "28 lines are folded.", `href="#arg-1"`, `id="arg-1"`} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q", want)
		}
	}
	if html := drawn(t, staged(t, "one line")); strings.Contains(html, "folded") || strings.Contains(html, "hides something") {
		t.Error("an honest argument is warned of")
	}
}

// TestTheCardInEveryState draws the card in every state, with and without the right to decide.
func TestTheCardInEveryState(t *testing.T) {
	for _, s := range action.States {
		for _, refused := range []string{"", "Your roles do not let you decide on actions."} {
			v := staged(t, "x y")
			at := v.Now
			v.Action.State, v.Refused = s, refused
			switch s {
			case action.StateStaged, action.StateExpired, action.StateCancelled:
			case action.StateDenied, action.StateApproved:
				v.Action.DecidedAt, v.Action.DecidedByName = &at, "Robin"
			default:
				v.Action.DecidedAt, v.Action.DecidedByName, v.Action.ClaimedAt, v.Action.SettlesAt = &at, "Robin", &at, &at
			}
			html := drawn(t, v)
			if decides := strings.Contains(html, `data-test="approve"`); decides != (s == action.StateStaged && refused == "") {
				t.Errorf("%s, refused %q: approve is offered: %t", s, refused, decides)
			}
			if settles := strings.Contains(html, `data-test="resolve-applied"`); settles != (s == action.StateUncertain && refused == "") {
				t.Errorf("%s, refused %q: settling is offered: %t", s, refused, settles)
			}
			if follows := strings.Contains(html, "hx-trigger"); follows != (s == action.StateApproved || s == action.StateExecuting) {
				t.Errorf("%s: the page follows: %t", s, follows)
			}
			if !strings.Contains(html, stateWords[string(s)]) || strings.Contains(html, "%!") {
				t.Errorf("%s is not said", s)
			}
			if seal := strings.Contains(html, `class="stamp"`); seal != (v.Action.DecidedByName != "" && s != action.StateDenied) {
				t.Errorf("%s: the seal is drawn: %t", s, seal)
			}
		}
	}
}

// TestNobodySignedWhatPolicyApproved: the seal stands on a line that a person signed, and nowhere else.
func TestNobodySignedWhatPolicyApproved(t *testing.T) {
	v := staged(t, "x y")
	at := v.Now
	v.Action.State, v.Action.ApprovedByPolicy, v.Action.DecidedAt = action.StateApproved, true, &at
	if html := drawn(t, v); strings.Contains(html, `class="stamp"`) || !strings.Contains(html, "No person signed") {
		t.Error("policy looks like a person")
	}
}

func TestWhatAProviderAnswersIsItsText(t *testing.T) {
	for raw, want := range map[string]string{
		`{"content":[{"type":"text","text":"Done <b>"},{"type":"image","data":"x"},{"type":"text","text":"Two"}]}`: "Done <b>|Two",
		`{"content":[]}`: "{\n  \"content\": []\n}", `not json`: "not json", `[1]`: "[\n  1\n]",
	} {
		if got := strings.Join(answerTexts([]byte(raw)), "|"); got != want {
			t.Errorf("%s is %q", raw, got)
		}
	}
}
