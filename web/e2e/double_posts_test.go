package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"countersign/internal/crm/crmtest"
)

// TestPressedTwice is every form whose second press would do harm, sent many times at the same moment: by one person whose mouse
// bounced, and by people who decide without knowing of each other. One press has its effect; each of the others is told what happened.
func TestPressedTwice(t *testing.T) {
	p := newPressing(t)
	t.Run("one approver presses approve eight times", p.oneApprover)
	t.Run("two approvers press approve four times each", p.twoApprovers)
	t.Run("one approves while the other denies", p.approveAgainstDeny)
	t.Run("one admin presses install eight times", p.oneInstaller)
	t.Run("two admins send the same install form", p.twoInstallers)
}

// pressing is the sandbox with people who do not wait for each other.
type pressing struct {
	s             *server
	crm           crmtest.CRM
	key           string // of the seeded connection
	agent         agent
	run           string // in every text and name, so that nobody else's are counted
	ines, tomas   *wire  // the two approvers
	admin, owner  *wire
	inesN, tomasN string // as an answer names them
}

func newPressing(t *testing.T) *pressing {
	t.Helper()
	s := sharedServer(t)
	run := s.runtime().starts(t, task("engineering", "TWICE-1"))
	in := func(who string) *wire { return s.signedIn(t, who+"@sandbox.test", s.password(t, who+"@sandbox.test")) }
	return &pressing{
		s: s, crm: crmtest.CRM{T: t, URL: s.sandbox.CRM.URL, Token: s.sandbox.CRM.Control}, key: s.sandbox.Connections[0].Key,
		agent: run.connects(t, eras[0]), run: run.ID,
		ines: in("approver"), tomas: in("approver2"), admin: in("admin"), owner: in("owner"),
		inesN: "Ines Duarte", tomasN: "Tomas Berg",
	}
}

// press is one form that somebody sends.
type press struct {
	by   *wire
	path string
	form url.Values
}

// together sends all of them at the same moment and returns the answers in their order.
func together(t *testing.T, presses []press) []got {
	t.Helper()
	answers, errs := make([]got, len(presses)), make([]error, len(presses))
	start := make(chan struct{})
	var all sync.WaitGroup
	for i, p := range presses {
		all.Go(func() {
			<-start
			answers[i], errs[i] = p.by.try(t.Context(), http.MethodPost, p.path, formType, []byte(p.form.Encode()))
		})
	}
	close(start)
	all.Wait()
	for _, err := range errs {
		must(t, err)
	}
	return answers
}

// waiting stages a note nobody else writes, so that its effects can be counted.
func (p *pressing) waiting(t *testing.T, text string) (id string) {
	t.Helper()
	return p.agent.stages(t, p.key+"__notes_add", `{"contact_id":"c_1003","text":"`+text+" "+p.run+`"}`)
}

// written is how often the CRM really wrote that note.
func (p *pressing) written(text string) (n int) {
	for _, e := range p.crm.Journal() {
		if e.Tool == "notes_add" && strings.Contains(string(e.Arguments), `"`+text+" "+p.run+`"`) {
			n++
		}
	}
	return n
}

// decides is one decision on the card as a person sees it now.
func decides(t *testing.T, by *wire, id, verb string) press {
	t.Helper()
	page := by.get(t, "/actions/"+id).body
	form := url.Values{"args_digest": {hidden(t, page, "args_digest")}, "version": {hidden(t, page, "version")}, "reason": {"Decided by " + verb + "."}}
	return press{by, "/actions/" + id + "/" + verb, form}
}

// oneWins makes sure that one press was taken and every other was told who was quicker, in what, and when. It returns the winner's place.
func oneWins(t *testing.T, answers []got, sentence func(winner int) string) int {
	t.Helper()
	winner := -1
	for i, a := range answers {
		a.clear(t, fmt.Sprint("press ", i), http.StatusSeeOther, http.StatusConflict)
		if a.status == http.StatusSeeOther && winner >= 0 {
			t.Errorf("both press %d and press %d were taken", winner, i)
		}
		if a.status == http.StatusSeeOther {
			winner = i
		}
	}
	if winner < 0 {
		t.Fatal("no press was taken")
	}
	said := regexp.MustCompile(sentence(winner) + ` this at \d\d:\d\d:\d\d UTC on \d+ \w+ \d{4}`)
	for i, a := range answers {
		if i != winner && !said.MatchString(plainText(a.body)) {
			t.Errorf("press %d does not read “%s”: %.900s", i, said, plainText(a.body))
		}
	}
	return winner
}

func (p *pressing) oneApprover(t *testing.T) {
	id := p.waiting(t, "pressed eight times")
	presses := make([]press, 8)
	for i := range presses {
		presses[i] = decides(t, p.ines, id, "approve")
	}
	oneWins(t, together(t, presses), func(int) string { return p.inesN + " approved" })
	a := p.s.runtime().settles(t, id, "succeeded")
	if n := p.written("pressed eight times"); n != 1 {
		t.Errorf("the note was written %d times", n)
	}
	approvals := 0
	for _, line := range a.Timeline {
		if line.Event == "action.approved" {
			approvals++
		}
	}
	if approvals != 1 {
		t.Errorf("the trail knows %d approvals: %+v", approvals, a.Timeline)
	}
}

func (p *pressing) twoApprovers(t *testing.T) {
	id := p.waiting(t, "pressed by two")
	names := map[*wire]string{p.ines: p.inesN, p.tomas: p.tomasN}
	var presses []press
	for range 4 {
		presses = append(presses, decides(t, p.ines, id, "approve"), decides(t, p.tomas, id, "approve"))
	}
	oneWins(t, together(t, presses), func(winner int) string { return names[presses[winner].by] + " approved" })
	p.s.runtime().settles(t, id, "succeeded")
	if n := p.written("pressed by two"); n != 1 {
		t.Errorf("the note was written %d times", n)
	}
}

// approveAgainstDeny runs several rounds, since either may be quicker.
func (p *pressing) approveAgainstDeny(t *testing.T) {
	ends := map[string]struct {
		sentence, state string
		effects         int
	}{"approve": {p.inesN + " approved", "succeeded", 1}, "deny": {p.tomasN + " denied", "denied", 0}}
	for round := range 6 {
		text := fmt.Sprint("pressed against each other ", round)
		id := p.waiting(t, text)
		var presses []press
		for range 4 {
			presses = append(presses, decides(t, p.ines, id, "approve"), decides(t, p.tomas, id, "deny"))
		}
		winner := oneWins(t, together(t, presses), func(winner int) string { return ends[lastPart(presses[winner].path)].sentence })
		end := ends[lastPart(presses[winner].path)]
		p.s.runtime().settles(t, id, end.state)
		if n := p.written(text); n != end.effects {
			t.Errorf("round %d ended as %s, and the note was written %d times", round, end.state, n)
		}
	}
}

// installing is the install form as somebody opened it once, to be sent by each of those people as often as they stand here.
func (p *pressing) installing(t *testing.T, name string, by ...*wire) []press {
	t.Helper()
	page := by[0].get(t, "/connections/new/sandbox-crm").body
	form := url.Values{"form": {hidden(t, page, "form")}, "contract": {"token"}, "name": {name}, "api_key": {p.s.crmCredential(t)}}
	presses := make([]press, len(by))
	for i, w := range by {
		presses[i] = press{w, "/connections/new/sandbox-crm", form}
	}
	return presses
}

// oneConnection makes sure that every press was led to the one connection there is now, which works, and returns its page.
func (p *pressing) oneConnection(t *testing.T, name string, presses []press) (path string) {
	t.Helper()
	for i, a := range together(t, presses) {
		a.clear(t, fmt.Sprint("press ", i), http.StatusSeeOther)
		if at := a.header.Get("Location"); path == "" {
			path = at
		} else if at != path {
			t.Errorf("one press leads to %s, another to %s", path, at)
		}
	}
	var list struct{ Connections []connection }
	p.s.runtime().asks(t, http.MethodGet, "/api/v1/connections", nil, &list)
	made := 0
	for _, c := range list.Connections {
		if c.Name == name {
			made++
			if !c.Healthy {
				t.Errorf("it does not work: %+v", c)
			}
		}
	}
	if made != 1 {
		t.Errorf("%d connections were made", made)
	}
	return path
}

func (p *pressing) oneInstaller(t *testing.T) {
	by := make([]*wire, 8)
	for i := range by {
		by[i] = p.admin
	}
	path := p.oneConnection(t, "Pressed "+p.run, p.installing(t, "Pressed "+p.run, by...))
	if text := plainText(p.admin.get(t, path).body); !strings.Contains(text, "Installed as "+lastPart(path)) {
		t.Errorf("the page they lead to says %.600s", text)
	}
}

// twoInstallers lets the first test of the connection take a while, so that whoever was slower is answered before it has ended: then nobody
// may say that it failed.
func (p *pressing) twoInstallers(t *testing.T) {
	name := "Opened twice " + p.run
	presses := p.installing(t, name, p.admin, p.owner, p.admin, p.owner, p.admin, p.owner)
	p.crm.BreaksFor("contacts_list", "slow", 1, 2)
	path := p.oneConnection(t, name, presses)
	read := plainText(p.admin.get(t, path).body + p.owner.get(t, path).body)
	for _, words := range []string{"Installed as " + lastPart(path) + ", and it works.", "Installed as " + lastPart(path) + ". Its first test is still under way"} {
		if strings.Count(read, words) != 1 {
			t.Errorf("the two do not read “%s” once: %.1200s", words, read)
		}
	}
}
