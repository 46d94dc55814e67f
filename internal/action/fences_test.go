package action

import (
	"testing"

	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/manifest"
	"countersign/internal/policy"
)

// open are facts under which every fence lets pass.
func open() Facts {
	return Facts{
		RunLive: true, BehalfActive: true, SameTask: true, ProfileAllows: true, Granted: true, SameDefinition: true, SameDestination: true,
		Mode: policy.AskUserOnWrite, ConnectionActive: true, Budget: 10, Used: 3,
	}
}

func eur(whole int64) manifest.Amount {
	return manifest.Amount{Currency: "EUR", Units: whole * 10_000}
}

// breaks are the facts that each fence refuses, in the order in which the fences are asked.
var breaks = []struct {
	sentence string
	spoil    func(*Facts)
	code     fault.Code
}{
	{"the run has ended", func(f *Facts) { f.RunLive = false }, fault.TaskEnded},
	{"the run is on another task", func(f *Facts) { f.SameTask = false }, fault.TaskEnded},
	{"the person it is for was deactivated", func(f *Facts) { f.BehalfActive = false }, fault.TaskEnded},
	{"the profile does not allow it", func(f *Facts) { f.ProfileAllows = false }, fault.ProfileForbids},
	{"it leaves the resource", func(f *Facts) { f.OutsideResource = "Another project." }, fault.OutsideResource},
	{"a person must consent again", func(f *Facts) { f.NeedsConsent = true }, fault.NeedsConsent},
	{"the connection is not active", func(f *Facts) { f.ConnectionActive = false }, fault.ConnectionUnavailable},
	{"the connection was set to read only", func(f *Facts) { f.Mode = policy.ReadOnly }, fault.ReadOnlyConnection},
	{"the tool is not granted", func(f *Facts) { f.Granted = false }, fault.ToolNotGranted},
	{"no mode was ever chosen", func(f *Facts) { f.Mode = "" }, fault.ToolNotGranted},
	{"the definition changed", func(f *Facts) { f.SameDefinition = false }, fault.DefinitionChanged},
	{"the destination moved", func(f *Facts) { f.SameDestination = false }, fault.DefinitionChanged},
	{"the key is taken by another call", func(f *Facts) { f.KeyConflict = true }, fault.IdempotencyConflict},
	{"the budget is used up", func(f *Facts) { f.Used = 10 }, fault.BudgetExceeded},
	{"the actions of the day are used up", func(f *Facts) { f.Day.Most, f.Day.Actions = 3, 3 }, fault.BudgetExceeded},
	{"the amount of the day would be exceeded", func(f *Facts) { f.Day.MostAmount, f.Day.Spent, f.Spends = eur(500), 4_000_001, eur(100) }, fault.BudgetExceeded},
	{"the amount of the day is in another currency", func(f *Facts) { f.Day.MostAmount, f.Spends = manifest.Amount{Currency: "USD", Units: 9}, eur(0) }, fault.BudgetExceeded},
	{"an equal action is uncertain", func(f *Facts) { f.UncertainEqual = "act_1" }, fault.UncertainPending},
}

func TestEachFenceRefusesWithItsCode(t *testing.T) {
	if refusal := Judge(AtStage, open()); refusal != nil {
		t.Fatalf("facts without a flaw are refused: %v", refusal)
	}
	for _, b := range breaks {
		f := open()
		b.spoil(&f)
		refusal := Judge(AtStage, f)
		if refusal == nil || refusal.Code != b.code {
			t.Errorf("%s: got %v, want %s", b.sentence, refusal, b.code)
		} else if refusal.What == "" || refusal.Next == "" {
			t.Errorf("%s: the refusal does not say what and what next", b.sentence)
		}
	}
}

// TestFencesAreAskedInOrder spoils two facts at a time: the earlier fence must answer.
func TestFencesAreAskedInOrder(t *testing.T) {
	for i, first := range breaks {
		for _, second := range breaks[i+1:] {
			f := open()
			second.spoil(&f)
			first.spoil(&f)
			if refusal := Judge(AtStage, f); refusal == nil || refusal.Code != first.code {
				t.Errorf("%s and %s: got %v, want %s", first.sentence, second.sentence, refusal, first.code)
			}
		}
	}
	var names []string
	for _, fence := range fences {
		names = append(names, fence.name)
	}
	want := []string{"task", "profile", "resource", "authorization", "idempotency", "budget", "reconciliation"}
	if len(names) != len(want) {
		t.Fatalf("the fences are %v", names)
	}
	for i := range want {
		if names[i] != want[i] {
			t.Fatalf("the fences are %v, the design says %v", names, want)
		}
	}
}

func TestARunThatExpiredDoesNotTakeBackWhatItAskedFor(t *testing.T) {
	f := open()
	f.RunLive = false
	for _, at := range []Point{AtApproval, AtClaim} {
		if refusal := Judge(at, f); refusal != nil {
			t.Errorf("at %s: %v", at, refusal)
		}
	}
}

func TestAReservedActionIsNotRefusedForTheBudgetItHolds(t *testing.T) {
	f := open()
	f.Used, f.Reserved = 10, true
	if refusal := Judge(AtClaim, f); refusal != nil {
		t.Error(refusal)
	}
}

func TestNobodyCountersignsTheirOwnSignature(t *testing.T) {
	a := Action{Org: "org_1", OnBehalfOf: "per_maya", TokenOwner: "per_olu"}
	approver := func(id identity.PersonID, roles ...identity.Role) identity.Person {
		return identity.Person{ID: id, Org: "org_1", Active: true, Roles: roles}
	}
	for _, c := range []struct {
		sentence string
		person   identity.Person
		may      bool
	}{
		{"an approver may", approver("per_ines", identity.Approver), true},
		{"an owner may", approver("per_ines", identity.Owner), true},
		{"an admin may not", approver("per_ines", identity.Admin), false},
		{"an auditor may not", approver("per_ines", identity.Auditor), false},
		{"a member may not", approver("per_ines", identity.Member), false},
		{"the person it is for may not", approver("per_maya", identity.Approver), false},
		{"the owner of the service token may not", approver("per_olu", identity.Owner), false},
		{"somebody deactivated may not", identity.Person{ID: "per_ines", Org: "org_1", Roles: []identity.Role{identity.Owner}}, false},
		{"somebody of another organization may not", identity.Person{ID: "per_ines", Org: "org_2", Active: true, Roles: []identity.Role{identity.Owner}}, false},
	} {
		if refusal := MayDecide(c.person, a); (refusal == nil) != c.may {
			t.Errorf("%s: got %v", c.sentence, refusal)
		}
	}
}

func TestAPersonApprovesWhatTheySaw(t *testing.T) {
	a := Action{ArgsDigest: "d1", Version: 3}
	for _, d := range []Decision{{ArgsDigest: "d2", Version: 3}, {ArgsDigest: "d1", Version: 2}, {}} {
		if stale := d.SawThis(a); stale == nil || stale.Code != fault.CodeStale {
			t.Errorf("%+v: got %v", d, stale)
		}
	}
	if stale := (Decision{ArgsDigest: "d1", Version: 3}).SawThis(a); stale != nil {
		t.Error(stale)
	}
}

func TestTheDigestCoversEverythingThatIsApproved(t *testing.T) {
	base := Digest("crm-abcdef", "refund", "def", "https://a.example", []byte(`{"a":1}`))
	for _, other := range []string{
		Digest("crm-abcdeg", "refund", "def", "https://a.example", []byte(`{"a":1}`)),
		Digest("crm-abcdef", "refunds", "def", "https://a.example", []byte(`{"a":1}`)),
		Digest("crm-abcdef", "refund", "deg", "https://a.example", []byte(`{"a":1}`)),
		Digest("crm-abcdef", "refund", "def", "https://b.example", []byte(`{"a":1}`)),
		Digest("crm-abcdef", "refund", "def", "https://a.example", []byte(`{"a":2}`)),
		Digest("crm-abcdef", "refun", "ddef", "https://a.example", []byte(`{"a":1}`)), // the same text, parted elsewhere
	} {
		if other == base {
			t.Error("two different approvals have one digest")
		}
	}
}

func TestArgumentsHaveOneForm(t *testing.T) {
	got, err := Arguments([]byte("{ \"b\" : 12345678901234567890, \"a\":[ 1.0 ] }"))
	if err != nil || string(got) != `{"a":[1.0],"b":12345678901234567890}` {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := Arguments(nil); err != nil || string(got) != "{}" {
		t.Errorf("no arguments became %s, %v", got, err)
	}
	for _, bad := range []string{`[]`, `"x"`, `{"a":1,"a":2}`, `{"a":NaN}`, "{\"a\":\"\xff\"}", `{} {}`, `null`} {
		if _, err := Arguments([]byte(bad)); !fault.Is(err, fault.InvalidArguments) {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}
