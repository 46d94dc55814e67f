package db_test

import (
	"context"
	"fmt"
	"testing"

	"countersign/db"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/people"
	"countersign/internal/policy"
)

// group makes a group of approvers and lets the profile ask it, with so many signatures.
func (s *scene) group(name string, signatures int, members ...identity.Person) people.Group {
	s.t.Helper()
	g := people.Group{Org: s.org, Name: name}
	for _, m := range members {
		g.Members = append(g.Members, m.ID)
	}
	if err := (db.Groups{DB: s.db}).SaveGroup(s.t.Context(), g, s.entry(s.org, audit.GroupSaved, name)); err != nil {
		s.t.Fatal(err)
	}
	s.sql(`UPDATE profile_uses SET approvers = $1, signatures = $2`, name, signatures)
	return g
}

func (s *scene) tryApprove(a action.Action, by identity.Person) error {
	_, err := s.actions.Approve(context.Background(), s.decision(a, by))
	return err
}

func TestOnlyTheGroupThatWasAskedDecides(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.group("finance", 1, s.approver2, s.asker)
	a := s.stage(s.proposal())
	for verb, decide := range map[string]func(context.Context, action.Decision) (action.Action, error){"approve": s.actions.Approve, "deny": s.actions.Deny} {
		_, err := decide(t.Context(), s.decision(a, s.approver))
		refused(t, err, fault.CodeForbidden)
		says(t, err, "The group “finance” decides on this, and you are not in it.")
		_, err = decide(t.Context(), s.decision(a, s.asker)) // in the group, and the person it is for
		refused(t, err, fault.CodeForbidden)
		_ = verb
	}
	s.isIn(a.ID, action.StateStaged)
	if got := s.must(s.actions.Approve(t.Context(), s.decision(a, s.approver2))); got.State != action.StateApproved || len(got.Signatures) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestSeveralPeopleSignAndTheLastOneApproves(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.sql(`INSERT INTO profile_quorums (org_id, profile, connection_key, tool, signatures) VALUES ($1, 'engineering', $2, 'contacts_create', 2)`, s.org, s.connection.Key)
	a := s.stage(s.proposal())
	got := s.must(s.actions.Approve(t.Context(), s.decision(a, s.approver)))
	if got.State != action.StateStaged || got.Version != 1 || got.Missing() != 1 || len(got.Signatures) != 1 || got.Signatures[0].Name != "Robin" {
		t.Fatalf("after one signature: %+v", got)
	}
	if _, err := s.claim(got); !fault.Is(err, fault.CodeConflict) {
		t.Errorf("one of two signatures let it be sent: %v", err)
	}
	err := s.tryApprove(a, s.approver)
	refused(t, err, fault.CodeConflict)
	says(t, err, "You signed this at ", "signs once")
	refused(t, s.tryApprove(a, s.asker), fault.CodeForbidden)
	refused(t, s.tryApprove(a, s.tokenOwner), fault.CodeForbidden)
	s.isIn(a.ID, action.StateStaged)
	if read := s.read(a.ID); read.Missing() != 1 || read.Signatures[0].By != s.approver.ID {
		t.Errorf("%+v", read)
	}
	got = s.must(s.actions.Approve(t.Context(), s.decision(a, s.approver2)))
	if got.State != action.StateApproved || got.DecidedByName != "Robin and Kim" || got.Missing() != 0 {
		t.Errorf("after two: %+v", got)
	}
	_, line, err := s.actions.Story(t.Context(), s.org, a.ID)
	if err != nil || len(line) != 3 || line[1].Event != string(audit.SignatureGiven) || line[1].By != "Robin" || line[2].Event != string(audit.ActionApproved) {
		t.Errorf("%+v %v", line, err)
	}
	if _, err := s.claim(got); err != nil {
		t.Error(err)
	}
}

func TestADenialByOneEndsItAlsoByOneWhoSigned(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.sql(`UPDATE profile_uses SET signatures = 3`)
	a := s.stage(s.proposal())
	s.must(s.actions.Approve(t.Context(), s.decision(a, s.approver)))
	if got := s.must(s.actions.Deny(t.Context(), s.decision(a, s.approver))); got.State != action.StateDenied || got.DecidedByName != "Robin" {
		t.Errorf("%+v", got)
	}
	refused(t, s.tryApprove(a, s.approver2), fault.CodeStale)
}

func TestWhatWasAskedIsNotLoosenedByAnEditOfTheProfile(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.group("finance", 2, s.approver2, s.approver)
	a := s.stage(s.proposal())
	s.sql(`UPDATE profile_uses SET signatures = 1, approvers = NULL`)
	if got := s.must(s.actions.Approve(t.Context(), s.decision(a, s.approver))); got.State != action.StateStaged || got.Approvers != "finance" || got.Missing() != 1 {
		t.Errorf("%+v", got)
	}
	g := db.Groups{DB: s.db}
	all, err := g.Groups(t.Context(), s.org)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	err = g.RemoveGroup(t.Context(), s.org, "finance", all[0].Version, s.entry(s.org, audit.GroupRemoved, "finance"))
	refused(t, err, fault.CodeConflict)
	says(t, err, "An action waits for the group")
	s.must(s.actions.Deny(t.Context(), s.decision(a, s.approver2)))
	if err := g.RemoveGroup(t.Context(), s.org, "finance", all[0].Version, s.entry(s.org, audit.GroupRemoved, "finance")); err != nil {
		t.Error(err)
	}
}

func TestWhoLeavesTheGroupDecidesNoMore(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.group("finance", 1, s.approver2, s.approver)
	a := s.stage(s.proposal())
	s.sql(`DELETE FROM approver_group_members WHERE person_id = $1`, s.approver.ID)
	refused(t, s.tryApprove(a, s.approver), fault.CodeForbidden)
	s.sql(`DELETE FROM approver_group_members`)
	refused(t, s.tryApprove(a, s.approver2), fault.CodeForbidden) // nobody is left: nobody decides
	s.isIn(a.ID, action.StateStaged)
}

func TestNoModeApprovesInThePlaceOfPeopleWhoAreAsked(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.Autonomous)
	if a := s.stage(s.proposal()); a.State != action.StateApproved {
		t.Fatalf("%+v", a)
	}
	s.sql(`UPDATE profile_uses SET signatures = 2`)
	if a := s.stage(s.proposal()); a.State != action.StateStaged {
		t.Errorf("two signatures were asked for, and policy approved: %+v", a)
	}
	s.group("finance", 1, s.approver)
	if a := s.stage(s.proposal()); a.State != action.StateStaged {
		t.Errorf("a group was asked, and policy approved: %+v", a)
	}
}

func TestManyWhoSignAtOnceGiveExactlyWhatIsAsked(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.sql(`UPDATE profile_uses SET signatures = 3`)
	var signers []identity.Person
	for i := range 6 {
		signers = append(signers, s.person(s.org, fmt.Sprintf("signer%d", i), identity.Approver))
	}
	a := s.stage(s.proposal())
	errs := make([]error, 2*len(signers))
	parallel(len(errs), func(i int) { errs[i] = s.tryApprove(a, signers[i%len(signers)]) })
	signed := 0
	for _, err := range errs {
		if err == nil {
			signed++
		}
	}
	got := s.read(a.ID)
	if signed != 3 || len(got.Signatures) != 3 || got.State != action.StateApproved || got.Version != 2 {
		t.Errorf("%d presses signed; %+v", signed, got)
	}
}

func TestAPersonDemotedBetweenThePageAndThePressIsRefusedInWords(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	a, u := s.stage(s.proposal()), s.uncertain()
	s.sql(`UPDATE people SET roles = '{member}' WHERE id = $1`, s.approver.ID) // the session still says approver
	for _, err := range []error{
		s.tryApprove(a, s.approver), second(s.actions.Deny(t.Context(), s.decision(a, s.approver))),
		second(s.actions.Settle(t.Context(), action.Settlement{Decision: s.decision(u, s.approver), Answer: action.Applied})),
	} {
		refused(t, err, fault.CodeForbidden)
		says(t, err, "Your roles do not let you decide")
	}
	s.sql(`UPDATE people SET active = false WHERE id = $1`, s.approver2.ID)
	refused(t, s.tryApprove(a, s.approver2), fault.CodeForbidden)
	s.isIn(a.ID, action.StateStaged)
	s.isIn(u.ID, action.StateUncertain)
}

func second[A any](_ A, err error) error { return err }

func TestWhenThePersonItIsForLeavesNothingIsSent(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	staged, approved := s.stage(s.proposal()), s.approved()
	s.sql(`UPDATE people SET active = false WHERE id = $1`, s.asker.ID)
	_, _, err := s.actions.Stage(t.Context(), s.proposal())
	refused(t, err, fault.TaskEnded)
	says(t, err, "no longer active here")
	refused(t, s.tryApprove(staged, s.approver), fault.TaskEnded)
	_, err = s.claim(approved)
	refused(t, err, fault.TaskEnded)
	s.isIn(staged.ID, action.StateStaged)
	s.isIn(approved.ID, action.StateCancelled)
}

func TestASignatureCannotBeForgedBySQL(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.group("finance", 2, s.approver2, s.approver, s.asker, s.tokenOwner)
	a := s.stage(s.proposal())
	s.must(s.actions.Approve(t.Context(), s.decision(a, s.approver)))
	outsider := s.person(s.org, "outsider", identity.Approver)
	idle := s.person(s.org, "idle", identity.Member)
	s.sql(`INSERT INTO approver_group_members VALUES ($1, 'finance', $2)`, s.org, idle.ID)
	const sign = `INSERT INTO action_approvals (org_id, action_id, person_id, person_name, args_digest, version) SELECT org_id, id, $2, 'x', args_digest, version FROM actions WHERE id = $1`
	for name, c := range map[string]struct {
		says, sql string
		args      []any
	}{
		"by the person it is for":        {"countersigns their own", sign, []any{a.ID, s.asker.ID}},
		"by the token's owner":           {"countersigns their own", sign, []any{a.ID, s.tokenOwner.ID}},
		"by somebody outside the group":  {"only the group", sign, []any{a.ID, outsider.ID}},
		"by somebody without the role":   {"only an active approver", sign, []any{a.ID, idle.ID}},
		"by another organization":        {"only an active approver", sign, []any{a.ID, s.stranger.ID}},
		"twice":                          {"action_approvals_once", sign, []any{a.ID, s.approver.ID}},
		"under other bytes":              {"bytes that wait", `INSERT INTO action_approvals (org_id, action_id, person_id, person_name, args_digest, version) SELECT org_id, id, $2, 'x', 'other', version FROM actions WHERE id = $1`, []any{a.ID, s.approver2.ID}},
		"under another version":          {"bytes that wait", `INSERT INTO action_approvals (org_id, action_id, person_id, person_name, args_digest, version) SELECT org_id, id, $2, 'x', args_digest, 7 FROM actions WHERE id = $1`, []any{a.ID, s.approver2.ID}},
		"given to another person":        {"never changes", `UPDATE action_approvals SET person_id = $2 WHERE action_id = $1`, []any{a.ID, s.approver2.ID}},
		"taken away":                     {"never changes", `DELETE FROM action_approvals WHERE action_id = $1`, []any{a.ID}},
		"one too few":                    {"fewer people have signed", `UPDATE actions SET state = 'approved', version = version + 1, approved_digest = args_digest, decided_by = $2, decided_at = clock_timestamp() WHERE id = $1`, []any{a.ID, s.approver.ID}},
		"fewer asked afterwards":         {"what was asked for", `UPDATE actions SET state = 'cancelled', version = version + 1, finished_at = clock_timestamp(), budget_held = false, signatures_needed = 1 WHERE id = $1`, []any{a.ID}},
		"another group asked afterwards": {"what was asked for", `UPDATE actions SET state = 'cancelled', version = version + 1, finished_at = clock_timestamp(), budget_held = false, approvers = NULL WHERE id = $1`, []any{a.ID}},
		"a denial from outside":          {"only the group", `UPDATE actions SET state = 'denied', version = version + 1, decided_by = $2, decided_at = clock_timestamp(), finished_at = clock_timestamp(), reason = 'x', budget_held = false WHERE id = $1`, []any{a.ID, outsider.ID}},
	} {
		t.Run(name, func(t *testing.T) { says(t, s.try(c.sql, c.args...), c.says) })
	}
	for _, sql := range []string{`UPDATE action_approvals SET args_digest = 'x'`, `DELETE FROM action_approvals`, `DELETE FROM budget_days`, `UPDATE approver_groups SET name = 'x'`} {
		if _, err := s.db.Pool().Exec(context.Background(), sql); err == nil {
			t.Errorf("%s: allowed", sql)
		}
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	g, ctx := db.Groups{DB: s.db}, t.Context()
	e := s.entry(s.org, audit.GroupSaved, "finance")
	save := func(gr people.Group) error { return g.SaveGroup(ctx, gr, e) }
	fine := people.Group{Org: s.org, Name: "finance", Members: []identity.PersonID{s.approver.ID, s.tokenOwner.ID}}
	for sentence, spoil := range map[string]func(*people.Group){
		"a person without the role":        func(x *people.Group) { x.Members = []identity.PersonID{s.admin.ID} },
		"a person of another organization": func(x *people.Group) { x.Members = []identity.PersonID{s.stranger.ID} },
		"a person who is not there":        func(x *people.Group) { x.Members = []identity.PersonID{"per_none"} },
		"nobody":                           func(x *people.Group) { x.Members = nil },
		"a person twice":                   func(x *people.Group) { x.Members = []identity.PersonID{s.approver.ID, s.approver.ID} },
		"a name with capitals":             func(x *people.Group) { x.Name = "Finance" },
	} {
		x := fine
		spoil(&x)
		if err := save(x); err == nil {
			t.Errorf("a group of %s is saved", sentence)
		}
	}
	if err := save(fine); err != nil {
		t.Fatal(err)
	}
	refused(t, save(fine), fault.CodeConflict)
	all, err := g.Groups(ctx, s.org)
	if err != nil || len(all) != 1 || len(all[0].Members) != 2 {
		t.Fatal(all, err)
	}
	old := all[0]
	old.Members = []identity.PersonID{s.approver2.ID}
	if err := save(old); err != nil {
		t.Fatal(err)
	}
	refused(t, save(old), fault.CodeStale)
	foreign := old
	foreign.Org = s.other
	refused(t, g.SaveGroup(ctx, foreign, s.entry(s.other, audit.GroupSaved, "finance")), fault.CodeNotFound)
	if theirs, err := g.Groups(ctx, s.other); err != nil || len(theirs) != 0 {
		t.Errorf("another organization sees %v, %v", theirs, err)
	}
	all, _ = g.Groups(ctx, s.org)
	s.sql(`UPDATE profile_uses SET approvers = 'finance'`)
	err = g.RemoveGroup(ctx, s.org, "finance", all[0].Version, e)
	refused(t, err, fault.CodeConflict)
	says(t, err, "A profile asks the group")
	refused(t, g.RemoveGroup(ctx, s.other, "finance", all[0].Version, s.entry(s.other, audit.GroupRemoved, "x")), fault.CodeNotFound)
}
