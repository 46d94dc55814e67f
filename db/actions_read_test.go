package db_test

import (
	"testing"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/policy"
	"countersign/internal/run"
)

func TestActionsAreListedByWhatIsAsked(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	second := s.mint(run.Order{})
	one, two := s.stage(s.proposal()), s.stage(s.call(second, "contacts_delete", `{"id":3}`))
	three, four := s.reach(action.StateApproved), s.reach(action.StateStaged)
	s.later(four.ID, action.Life)
	names := map[action.ID]string{one.ID: "1", two.ID: "2", three.ID: "3", four.ID: "4"}
	for name, c := range map[string]struct {
		filter action.Filter
		want   string
	}{
		"everything":            {action.Filter{}, "3214"}, // the fourth was asked for a day ago
		"staged":                {action.Filter{States: []action.State{action.StateStaged}}, "21"},
		"expired":               {action.Filter{States: []action.State{action.StateExpired}}, "4"},
		"staged or approved":    {action.Filter{States: []action.State{action.StateStaged, action.StateApproved}}, "321"},
		"of a run":              {action.Filter{Run: second.Run.ID}, "2"},
		"of a connection":       {action.Filter{Connection: "crm-zzzzzz"}, ""},
		"equal calls":           {action.Filter{Digest: three.ArgsDigest}, "3"},
		"soonest due first":     {action.Filter{OldestDue: true}, "4123"},
		"a page":                {action.Filter{Limit: 2}, "32"},
		"the next page":         {action.Filter{Limit: 2, Before: two.ID}, "14"},
		"the next page by due":  {action.Filter{Limit: 2, Before: four.ID, OldestDue: true}, "12"},
		"a page that is gone":   {action.Filter{Before: "act_none"}, ""},
		"more than is possible": {action.Filter{Limit: 100_000}, "3214"},
	} {
		list, err := s.actions.Actions(t.Context(), s.org, c.filter)
		got := ""
		for _, a := range list {
			got += names[a.ID]
		}
		if err != nil || got != c.want {
			t.Errorf("%s: %s, want %s, %v", name, got, c.want, err)
		}
	}
	n, err := s.actions.Counts(t.Context(), s.org)
	if err != nil || n != (action.Counts{Waiting: 2}) {
		t.Errorf("%+v %v", n, err)
	}
	s.claimed()
	s.uncertain()
	if n, _ = s.actions.Counts(t.Context(), s.org); n != (action.Counts{Waiting: 2, Executing: 1, Uncertain: 1}) {
		t.Errorf("%+v", n)
	}
}

func TestATimelineTellsWhoDidWhat(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	u := s.uncertain()
	s.must(s.actions.Settle(t.Context(), action.Settlement{Decision: s.decision(u, s.approver2), Answer: action.Applied}))
	now, events, err := s.actions.Story(t.Context(), s.org, u.ID)
	got := ""
	for _, e := range events {
		got += e.Event + " by " + e.By + "; "
		if e.At.IsZero() {
			t.Error("no time")
		}
	}
	want := "action.staged by engineering agent; action.approved by Robin; action.executing by worker; action.uncertain by worker; action.resolved by Kim; "
	if err != nil || got != want || now.State != action.StateSucceeded {
		t.Errorf("%s %s %v", now.State, got, err)
	}
	_, _, err = s.actions.Story(t.Context(), s.org, "act_none")
	refused(t, err, fault.CodeNotFound)
}

func TestArgumentsReadBackByteForByte(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	for _, arguments := range []string{`{}`, `{"n":12345678901234567890.10,"s":"\u0000 é 😀","z":[1e400]}`, "{\"raw\":\"\x7f\"}"} {
		a := s.stage(s.call(s.run, "contacts_create", arguments))
		if got := s.read(a.ID); string(got.Arguments) != arguments || got.ArgsDigest != action.Digest(got.Connection, got.Tool, got.Definition, got.Destination, got.Arguments) {
			t.Errorf("%q came back as %q", arguments, got.Arguments)
		}
	}
	p := s.proposal()
	p.Justification = "because\x00 of \xff"
	if got := s.stage(p); got.Justification != "because\uFFFD of \uFFFD" {
		t.Errorf("%q", got.Justification)
	}
}
