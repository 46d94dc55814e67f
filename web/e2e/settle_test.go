package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// settleSeconds is how long the vendor of this test may still apply a lost call: its manifest says so. It is long enough to try to answer
// too early on a slow machine, and short enough to wait for.
const settleSeconds = "15"

// TestItDidNotHappen is a lost call of which a person learns that it was never applied. That is no answer before the vendor's time to
// apply it has passed; from then on it is, and only then may an agent ask for the same again.
func TestItDidNotHappen(t *testing.T) {
	t.Parallel()
	l := newLostCall(t)
	for _, chapter := range []struct {
		name string
		told func(*testing.T)
	}{
		{"the operator publishes a catalog that says how long, and a connection is made from it", l.connects},
		{"an answer is lost, and the same is not asked for again", l.isLost},
		{"it is too early to say that it did not happen", l.tooEarly},
		{"saying so takes the role and a reason", l.takesRoleAndReason},
		{"when the time has passed a person says so", l.settles},
		{"now the same may be asked for again, and is decided anew", l.againAnew},
	} {
		if !t.Run(chapter.name, chapter.told) {
			t.FailNow()
		}
	}
}

// lostCall is what the chapters hand on.
type lostCall struct {
	s                 *server
	key               string
	approver          *person
	approving         *wire // the same approver without a browser's manners
	auditing, running *wire // an auditor, and whom the run is for
	agent, other      agent // of two runs
	id                string
	opens             time.Time // when “it did not happen” opens, as the refusal says
}

const lostArguments = `{"contact_id":"c_1004","title":"Head of Harbour"}`

func newLostCall(t *testing.T) *lostCall {
	t.Helper()
	s := newServer(t, "COUNTERSIGN_DEMO=1")
	s.start(t)
	in := func(email string) *wire { return s.signedIn(t, email, s.password(t, email)) }
	return &lostCall{
		s: s, approver: s.signsIn(t, "approver@sandbox.test", desk), approving: in("approver@sandbox.test"),
		auditing: in("auditor@sandbox.test"), running: in("admin@sandbox.test"),
	}
}

func (l *lostCall) tool() string { return l.key + "__contacts_update" }

func (l *lostCall) connects(t *testing.T) {
	folder := t.TempDir()
	must(t, os.CopyFS(folder, os.DirFS(filepath.Join(repo, "catalog"))))
	file := filepath.Join(folder, "sandbox-crm.toml")
	raw, err := os.ReadFile(file)
	must(t, err)
	const at = "[tools.contacts_update]\n"
	if strings.Count(string(raw), at) != 1 {
		t.Fatalf("the manifest has no %s", at)
	}
	must(t, os.WriteFile(file, []byte(strings.Replace(string(raw), at, at+"settle_seconds = "+settleSeconds+"\n", 1)), 0o600))
	if r := l.s.operator("").runs(t, "catalog", "publish", "--dir", folder); r.code != 0 || !strings.Contains(r.stdout, "Published") {
		t.Fatalf("publishing: %v", r)
	}

	admin := l.s.signsIn(t, "admin@sandbox.test", desk)
	admin.opens(t, "/connections/new/sandbox-crm")
	admin.fills(t, "name", "Quick CRM")
	admin.fills(t, "api_key", l.s.crmCredential(t))
	admin.presses(t, "install")
	admin.reads(t, "Working")
	l.key = lastPart(admin.URL())
	admin.ticks(t, "mode", "ask_user_on_write", true)
	admin.presses(t, "save-access")
	admin.opens(t, "/profiles/support")
	admin.ticks(t, "use", l.key, true)
	admin.presses(t, "save-profile")
	l.agent = l.s.runtime().starts(t, task("support", "LOST-1")).connects(t, eras[0])
	l.other = l.s.runtime().starts(t, task("support", "LOST-2")).connects(t, eras[1])
}

func (l *lostCall) isLost(t *testing.T) {
	l.id = l.agent.stages(t, l.tool(), lostArguments)
	l.s.crm(t).Breaks("contacts_update", "reset") // nothing is applied, and nobody can tell
	l.approver.opens(t, "/actions/"+l.id)
	l.approver.presses(t, "approve")
	l.s.runtime().settles(t, l.id, "uncertain")
	l.staysRefused(t)
}

// staysRefused is what agents read while nobody knows.
func (l *lostCall) staysRefused(t *testing.T) {
	t.Helper()
	l.agent.refused(t, "uncertain_pending", l.tool(), lostArguments)
	l.other.refused(t, "uncertain_pending", l.tool(), lostArguments)
	if n := len(l.s.crm(t).Effects("contacts_update")); n != 0 {
		t.Errorf("the CRM applied it %d times", n)
	}
}

// says posts that it did not happen, with what the approver sees, whatever the page offers.
func (l *lostCall) says(t *testing.T, by *wire, reason string) got {
	t.Helper()
	p := decides(t, l.approving, l.id, "settle")
	p.form.Set("answer", "not_applied")
	p.form.Set("reason", reason)
	return by.form(t, p.path, p.form)
}

const noSuchTitle = "The contact still has its old title."

var until = regexp.MustCompile(`may still be applied until (\d\d:\d\d:\d\d UTC on \d+ \w+ \d{4}), so nobody can say yet that it did not happen\. Look again after that time`)

func (l *lostCall) tooEarly(t *testing.T) {
	refused := l.says(t, l.approving, noSuchTitle)
	refused.clear(t, "saying so at once", http.StatusConflict)
	said := until.FindStringSubmatch(plainText(refused.body))
	if said == nil {
		t.Fatalf("the refusal does not say until when: %.900s", plainText(refused.body))
	}
	opens, err := time.Parse("15:04:05 UTC on 2 January 2006", said[1])
	must(t, err)
	if left := time.Until(opens); left > 15*time.Second {
		t.Errorf("it opens in %v; the manifest says %s seconds", left, settleSeconds)
	}
	if !strings.Contains(refused.body, noSuchTitle) {
		t.Error("what was typed is lost with the refusal")
	}
	l.opens = opens
	if a := l.s.runtime().action(t, l.id); a.State != "uncertain" {
		t.Errorf("after the refusal it is %s", a.State)
	}
	l.staysRefused(t)
}

func (l *lostCall) takesRoleAndReason(t *testing.T) {
	eventually(t, "the page opens the answer", func() bool {
		return !strings.Contains(plainText(l.approving.get(t, "/actions/"+l.id).body), "Opens at")
	})
	if early := time.Until(l.opens); early > 0 {
		t.Errorf("the page opens the answer %v too early", early)
	}
	l.staysRefused(t) // time alone settles nothing
	l.says(t, l.auditing, noSuchTitle).clear(t, "an auditor", http.StatusForbidden)
	l.says(t, l.running, noSuchTitle).clear(t, "the person behind the run, who is no approver", http.StatusForbidden)
	l.says(t, l.approving, " ").clear(t, "an approver without a reason", http.StatusUnprocessableEntity)
	if a := l.s.runtime().action(t, l.id); a.State != "uncertain" {
		t.Errorf("after what was refused it is %s", a.State)
	}
}

func (l *lostCall) settles(t *testing.T) {
	late := decides(t, l.approving, l.id, "settle")
	late.form.Set("answer", "applied")
	l.approver.opens(t, "/actions/"+l.id)
	l.approver.fills(t, "reason", noSuchTitle)
	l.approver.presses(t, "resolve-not-applied")
	l.approver.reads(t, "Recorded: it did not happen.", noSuchTitle)
	a := l.s.runtime().settles(t, l.id, "failed")
	if a.Resolution != "person" {
		t.Errorf("it is resolved by %q", a.Resolution)
	}
	last := a.Timeline[len(a.Timeline)-1]
	if last.Event != "action.resolved" || !strings.Contains(last.By, "Ines Duarte") {
		t.Errorf("the trail ends with %+v", last)
	}
	told := l.approving.form(t, late.path, late.form)
	told.clear(t, "somebody who says the opposite from a page opened before", http.StatusConflict)
	if text := plainText(told.body); !strings.Contains(text, "it ended as failed at") {
		t.Errorf("they are told %.900s", text)
	}
}

// againAnew asks from another run, whose call is a new action; in its own run the call has its answer, and is tried again by name.
func (l *lostCall) againAnew(t *testing.T) {
	id := l.other.stages(t, l.tool(), lostArguments)
	if id == l.id {
		t.Fatalf("the new call is the old action %s", id)
	}
	if n := len(l.s.crm(t).Effects("contacts_update")); n != 0 {
		t.Errorf("before anybody approved it anew, the CRM applied it %d times", n)
	}
	l.approver.opens(t, "/actions/"+id)
	l.approver.reads(t, "1 equal call")
	l.approver.presses(t, "approve")
	l.s.runtime().settles(t, id, "succeeded")
	if n := len(l.s.crm(t).Effects("contacts_update")); n != 1 {
		t.Errorf("in the end the CRM applied it %d times", n)
	}
	if told := l.agent.calls(t, l.tool(), lostArguments); !told.failed || !strings.Contains(told.text, "Nothing was applied.") {
		t.Errorf("in the run it was lost in the call is answered %v %s", told.failed, told.text)
	}
}
