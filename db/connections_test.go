package db_test

import (
	"context"
	"strings"
	"testing"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/credential"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/secret"
)

func TestAConnectionReadsBackAsItWasInstalled(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	c := s.install(s.org, "mail-bbbbbb")
	got := s.fresh(c)
	if got.State != installation.Active || got.Standing.Mode != "" || got.Standing.Snapshot.Len() != 0 || got.Version != 1 || got.Settings["region"] != "eu" || got.Settings["account"] != "12" {
		t.Errorf("%+v", got)
	}
	if got.Destination != address || got.Release != rel || got.Runtime != "sandbox-crm.v1" || got.Contract != "token" || got.CreatedBy != "Admin" || got.Health.TestedAt != nil {
		t.Errorf("%+v", got)
	}
	list, err := s.connections.Connections(t.Context(), s.org)
	if err != nil || len(list) != 2 || list[0].Standing.Snapshot.Len() != 3 || list[1].Standing.Snapshot.Len() != 0 {
		t.Errorf("%v %v", list, err)
	}
	if n := value[int](s, `SELECT count(*) FROM audit_entries WHERE event = 'connection.installed' AND object_id = 'mail-bbbbbb'`); n != 1 {
		t.Errorf("%d audit rows", n)
	}
}

func TestAKeyIsNeverUsedAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	s.end(installation.Retired)
	for _, org := range []identity.OrgID{s.org, s.other} {
		c := s.connection
		c.ID, c.Org = identity.NewID("con_"), org
		_, err := s.connections.Install(t.Context(), c, nil, s.entry(org, audit.ConnectionInstalled, string(c.Key)))
		refused(t, err, fault.CodeConflict)
		says(t, err, "never used again")
	}
}

// One form makes one connection, even when it is sent by somebody of another organization: that is an answer and no defect of ours.
func TestAFormMakesOneConnectionWhoeverSendsIt(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	for _, org := range []identity.OrgID{s.org, s.other} {
		c := s.connection
		c.Org, c.Key = org, "mail-cccccc"
		_, err := s.connections.Install(t.Context(), c, nil, s.entry(org, audit.ConnectionInstalled, string(c.Key)))
		refused(t, err, fault.CodeConflict)
		says(t, err, "made a connection already")
	}
	if n := value[int](s, `SELECT count(*) FROM connections`); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestWhatCannotBeAuditedIsNotDone(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	c := s.connection
	c.ID, c.Key = identity.NewID("con_"), "mail-bbbbbb"
	if _, err := s.connections.Install(t.Context(), c, nil, s.entry(s.other, audit.ConnectionInstalled, string(c.Key))); err == nil {
		t.Error("an audit row for another organization was accepted")
	}
	if n := value[int](s, `SELECT count(*) FROM connections`); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestEveryChangeOfAConnectionIsRefusedToWhoeverReadAnOlderOne(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	old := s.connection
	current, err := s.connections.Rename(t.Context(), old, "CRM of sales", s.entry(s.org, audit.ConnectionRenamed, string(old.Key)))
	if err != nil || current.Name != "CRM of sales" || current.Version != old.Version+1 || current.Key != old.Key {
		t.Fatalf("%+v %v", current, err)
	}
	e := s.entry(s.org, audit.AccessSaved, string(old.Key))
	for name, f := range s.changes(old, e) {
		if err := f(); !fault.Is(err, fault.CodeStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
	foreign := current
	foreign.Org = s.other
	e.Org = s.other
	for name, f := range s.changes(foreign, e) {
		if err := f(); !fault.Is(err, fault.CodeNotFound) {
			t.Errorf("%s from another organization: %v", name, err)
		}
	}
	if now := s.fresh(old); now.Version != current.Version || now.Name != current.Name {
		t.Errorf("%+v", now)
	}
}

func (s *scene) changes(c installation.Connection, e audit.Entry) map[string]func() error {
	ctx := context.Background()
	return map[string]func() error{
		"rename": func() error { _, err := s.connections.Rename(ctx, c, "x", e); return err },
		"standing": func() error {
			_, err := s.connections.SaveStanding(ctx, c, policy.Standing{Mode: policy.ReadOnly}, nil, e)
			return err
		},
		"credential": func() error { _, err := s.connections.ReplaceCredential(ctx, c, nil, e); return err },
		"end":        func() error { _, err := s.connections.End(ctx, c, installation.Disconnected, e); return err },
		"finding": func() error {
			_, err := s.connections.RecordFinding(ctx, c, installation.Finding{}, nil, nil)
			return err
		},
	}
}

func TestSavingAStandingReplacesTheSnapshotAndCancelsWhatItNoLongerGrants(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	staged, approved, executing := s.reach(action.StateStaged), s.reach(action.StateApproved), s.reach(action.StateExecuting)
	kept := s.stage(s.call(s.run, "contacts_delete", `{"id":9}`))
	late := s.stage(s.proposal())
	s.later(late.ID, action.Life)
	c := s.save(s.connection, policy.AskUserOnWrite, everyTool[1], everyTool[2])
	if c.Snapshot != 2 || c.Version != s.connection.Version+1 || strings.Join(c.Standing.Snapshot.Tools(), " ") != "contacts_delete contacts_search" {
		t.Errorf("%+v", c)
	}
	for id, want := range map[action.ID]action.State{
		staged.ID: action.StateCancelled, approved.ID: action.StateCancelled, executing.ID: action.StateExecuting, kept.ID: action.StateStaged, late.ID: action.StateExpired,
	} {
		s.isIn(id, want)
	}
	if got := s.read(staged.ID); got.ErrorCode != string(fault.ToolNotGranted) || s.used() != 2 {
		t.Errorf("the agent reads %q; used %d", got.ErrorSentence, s.used())
	}
	if who := value[string](s, `SELECT actor_name FROM audit_entries WHERE object_id = $1 AND event = 'action.cancelled'`, approved.ID); who != "Admin" {
		t.Errorf("cancelled by %s", who)
	}
}

func TestAcceptingANewDefinitionCancelsWhatWasAskedUnderTheOldOne(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	a := s.approved()
	s.accept("def-new")
	s.isIn(a.ID, action.StateCancelled)
}

func TestASnapshotKeepsTheBytesThatWereAccepted(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	raws, err := s.connections.PinnedDefinitions(t.Context(), s.org, s.connection.Key)
	if err != nil || len(raws) != 3 || string(raws["contacts_create"]) != `{"name":"contacts_create"}` {
		t.Errorf("%v %v", raws, err)
	}
	snapshot, _ := policy.NewSnapshot(everyTool)
	_, err = s.connections.SaveStanding(t.Context(), s.connection, policy.Standing{Mode: policy.Autonomous, Snapshot: snapshot}, map[string][]byte{}, s.entry(s.org, audit.AccessSaved, "x"))
	refused(t, err, fault.CodeInternal)
	if s.fresh(s.connection).Standing.Mode != policy.AskUserOnWrite {
		t.Error("half a save")
	}
}

func TestAFindingReplacesTheListAndLeavesTheSnapshotAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	record := func(tools ...installation.Observed) installation.Connection {
		t.Helper()
		e := s.entry(s.org, audit.ConnectionTested, string(s.connection.Key))
		c, err := s.connections.RecordFinding(t.Context(), s.fresh(s.connection), installation.Finding{OK: true, Found: "2 tools", Tools: tools}, &e, []audit.Entry{s.entry(s.org, audit.DefinitionHeld, "x")})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	one := installation.Observed{Tool: "a", Digest: "1", Recipe: 1, Raw: []byte(`{}`), Annotations: policy.Annotations{ReadOnly: policy.HintTrue, Destructive: policy.HintMalformed}, Title: "A", Description: "does a"}
	two := installation.Observed{Tool: "b", Digest: "1", Recipe: 1}
	c := record(one, two)
	first, err := s.connections.ObservedTools(t.Context(), s.org, c.Key)
	if err != nil || len(first) != 2 || first[0].Annotations != one.Annotations || first[0].Title != "A" || !c.Health.OK || c.Health.TestedAt == nil || c.Health.Since == nil {
		t.Fatalf("%+v %+v %v", first, c.Health, err)
	}
	quiet := record(two, one)
	if quiet.Version != c.Version || quiet.Health.TestedAt.Equal(*c.Health.TestedAt) {
		t.Error("a quiet test makes open forms stale")
	}
	one.Digest = "2"
	changed := record(one)
	now, _ := s.connections.ObservedTools(t.Context(), s.org, c.Key)
	if changed.Version != c.Version+1 || len(now) != 1 || now[0].Digest != "2" || !now[0].FirstSeen.Equal(first[0].FirstSeen) || changed.Standing.Snapshot.Len() != 3 || changed.Snapshot != c.Snapshot {
		t.Errorf("%+v %+v", changed, now)
	}
	bad, err := s.connections.RecordFinding(t.Context(), changed, installation.Finding{What: "It answers 401.", Next: "Enter the key again."}, nil, nil)
	if still, _ := s.connections.ObservedTools(t.Context(), s.org, c.Key); err != nil || bad.Health.OK || bad.Health.What != "It answers 401." || len(still) != 1 || !bad.Health.Since.After(*c.Health.Since) {
		t.Errorf("%+v %v", bad.Health, err)
	}
	if n := value[int](s, `SELECT count(*) FROM audit_entries WHERE event IN ('connection.tested', 'connection.definition_held')`); n != 6 {
		t.Errorf("%d audit rows", n)
	}
}

func TestAHostileListIsStoredWithoutGrantingAnything(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	long := make([]byte, 50_000)
	for i := range long {
		long[i] = byte('a' + (i*i+i/7)%26)
	}
	c, err := s.connections.RecordFinding(t.Context(), s.connection, installation.Finding{OK: true, Tools: []installation.Observed{
		{Tool: "a\x00b", Description: "\xff\x00"}, {Tool: "a\uFFFDb"}, {Tool: "'; DROP TABLE actions; --"}, {Tool: string(long)},
	}}, nil, nil)
	list, err2 := s.connections.ObservedTools(t.Context(), s.org, s.connection.Key)
	if err != nil || err2 != nil || len(list) != 3 || c.Standing.Snapshot.Len() != 3 {
		t.Errorf("%d tools, %v %v", len(list), err, err2)
	}
	for _, o := range list {
		if o.Problem == "" && o.Tool != "'; DROP TABLE actions; --" {
			t.Errorf("a name that could not be stored can be used: %q", o.Tool)
		}
	}
}

func TestRetiringShredsTheCredentialCancelsWhatWaitsAndIsForEver(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	staged, approved, executing := s.reach(action.StateStaged), s.reach(action.StateApproved), s.reach(action.StateExecuting)
	c := s.end(installation.Retired)
	if c.State != installation.Retired || c.RetiredAt == nil {
		t.Errorf("%+v", c)
	}
	s.isIn(staged.ID, action.StateCancelled)
	s.isIn(approved.ID, action.StateCancelled)
	s.isIn(executing.ID, action.StateExecuting) // what was sent is told as it was
	if n := value[int](s, `SELECT count(*) FROM credentials`); n != 0 {
		t.Errorf("%d sealed fields are left", n)
	}
	for name, f := range s.changes(c, s.entry(s.org, audit.AccessSaved, string(c.Key))) {
		if err := f(); !fault.Is(err, fault.CodeConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	says(t, s.try(`UPDATE connections SET state = 'active', retired_at = NULL, version = version + 1`), "never changes")
	says(t, s.try(`DELETE FROM connections`), "never deleted")
	says(t, s.try(`INSERT INTO credentials (org_id, connection_id, field, version, sealed, origin, fingerprint, last4) SELECT org_id, id, 'token', 9, 'x', '', '', '' FROM connections`), "holds no credential")
}

func TestADisconnectedConnectionComesBackWithANewCredential(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	p := credential.Place{Org: s.org, Connection: s.connection.Key}
	c := s.end(installation.Disconnected)
	refused(t, s.credentials.Put(t.Context(), p, 0, sealedFor(s.org, c.Key, 1)), fault.ConnectionUnavailable)
	c, err := s.connections.ReplaceCredential(t.Context(), c, sealedFor(s.org, c.Key, 1), s.entry(s.org, audit.CredentialReplaced, string(c.Key)))
	if err != nil || c.State != installation.Active || c.Standing.Snapshot.Len() != 3 {
		t.Errorf("%+v %v", c, err)
	}
	if got, err := s.credentials.Current(t.Context(), p); err != nil || len(got) != 1 {
		t.Errorf("%v %v", got, err)
	}
}

func TestWhereAConnectionLeadsNeverChanges(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	for _, set := range []string{`destination = 'https://evil.example.com'`, `key = 'crm-zzzzzz'`, `runtime = 'x'`, `release_digest = 'x'`, `integration = 'x'`, `org_id = 'org_other'`} {
		says(t, s.try(`UPDATE connections SET version = version + 1, `+set), "never changes")
	}
	says(t, s.try(`UPDATE connections SET mode = 'autonomous'`), "needs a new version")
	says(t, s.try(`UPDATE connections SET version = version + 2`), "grow by one")
}

func TestACredentialIsStoredWholeOnceAndTheOlderOneForgotten(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	ctx, p := t.Context(), credential.Place{Org: s.org, Connection: s.connection.Key}
	now, err := s.credentials.Current(ctx, p)
	if err != nil || len(now) != 1 || now[0].Version != 1 || string(now[0].Sealed) != "sealed bytes" || now[0].Place != p || now[0].Last4 != "wxyz" || now[0].CreatedAt.IsZero() {
		t.Fatalf("%+v %v", now, err)
	}
	errs := make([]error, 10)
	parallel(10, func(i int) {
		errs[i] = s.credentials.Put(context.Background(), p, 1, sealedFor(s.org, p.Connection, 2))
	})
	stored := 0
	for _, err := range errs {
		if err == nil {
			stored++
		} else {
			refused(t, err, fault.CodeStale)
		}
	}
	if n := value[int](s, `SELECT count(*) FROM credentials`); stored != 1 || n != 1 {
		t.Errorf("%d stored, %d rows", stored, n)
	}
	r := sealedFor(s.org, p.Connection, 2)[0]
	r.Sealed = secret.Sealed("resealed")
	if err := s.credentials.Reseal(ctx, r, secret.Sealed("sealed bytes")); err != nil {
		t.Error(err)
	}
	refused(t, s.credentials.Reseal(ctx, r, secret.Sealed("sealed bytes")), fault.CodeStale)
	refused(t, s.credentials.Put(ctx, p, 2, sealedFor(s.org, "crm-zzzzzz", 3)), fault.CodeInternal)
	refused(t, s.credentials.Put(ctx, credential.Place{Org: s.other, Connection: p.Connection}, 0, nil), fault.CodeNotFound)
	refused(t, s.credentials.Shred(ctx, credential.Place{Org: s.other, Connection: p.Connection}), fault.CodeNotFound)
	if other, err := s.credentials.Current(ctx, credential.Place{Org: s.other, Connection: p.Connection}); len(other) != 0 || err != nil {
		t.Errorf("%v %v", other, err)
	}
	if err := s.credentials.Shred(ctx, p); err != nil {
		t.Error(err)
	}
	if now, err := s.credentials.Current(ctx, p); len(now) != 0 || err != nil {
		t.Errorf("%v %v", now, err)
	}
}

func TestNothingOfAnotherOrganizationExistsForConnections(t *testing.T) {
	t.Parallel()
	s := newScene(t, policy.AskUserOnWrite)
	_, err := s.connections.Connection(t.Context(), s.other, s.connection.Key)
	refused(t, err, fault.CodeNotFound)
	_, err = s.connections.ObservedTools(t.Context(), s.other, s.connection.Key)
	refused(t, err, fault.CodeNotFound)
	_, err = s.connections.PinnedDefinitions(t.Context(), s.other, s.connection.Key)
	refused(t, err, fault.CodeNotFound)
	if list, err := s.connections.Connections(t.Context(), s.other); len(list) != 0 || err != nil {
		t.Errorf("%v %v", list, err)
	}
}
