package web_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"countersign/db/dbtest/scene"
	"countersign/internal/action"
	"countersign/internal/capability"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/run"
	"countersign/internal/servicetoken"
	"countersign/web"
)

// desk is a site with one live run that can ask for things. The member is the person behind it; its token is the owner's.
type desk struct {
	*site
	connection installation.Connection
	run        capability.Live
	token      servicetoken.Token
	second     identity.Person // another approver
	bell       *bell
}

// bell remembers what was woken, and fails when it is told to.
type bell struct {
	mu     sync.Mutex
	woken  []action.ID
	broken bool
}

func (b *bell) Wake(_ context.Context, _ identity.OrgID, id action.ID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return errors.New("the queue is away")
	}
	b.woken = append(b.woken, id)
	return nil
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{site: newSite(t), bell: &bell{}}
	d.second = d.Person("second@harbor.test", identity.Approver)
	d.connection = d.Install(d.Org, d.Publish())
	d.grant(scene.Search, scene.Create, scene.Refund)
	d.Profile("support", 10, scene.Uses(d.connection)...)
	d.token, _ = d.Token("ci", servicetoken.RunsWrite)
	d.run = d.mint(run.Order{Surface: policy.Task, Task: "SUP-481", OnBehalfOf: "member@harbor.test"})
	d.serve(func(h *web.Handlers) { h.Actions.Waker = d.bell })
	return d
}

// grant replaces what the connection grants.
func (d *desk) grant(tools ...policy.Pinned) {
	d.T.Helper()
	raws := map[string]string{"refund_issue": `{"name":"refund_issue","description":"Pays <b>money</b> back."}`}
	d.connection = d.Grant(d.connection, policy.AskUserOnWrite, raws, tools...)
}

func (d *desk) mint(o run.Order) capability.Live {
	d.T.Helper()
	o.Profile = "support"
	l, _ := d.Mint(d.token, o)
	return l
}

// asks stages a call of the run.
func (d *desk) asks(tool, arguments, why string) action.Action {
	d.T.Helper()
	p := d.Proposal(d.run, d.connection, tool, arguments)
	p.Justification = why
	return d.Stage(p)
}

func (d *desk) refund() action.Action {
	d.T.Helper()
	return d.asks("refund_issue", `{"contact_id":"c_1042","amount_cents":24000,"reason":"Parcel lost"}`, "The carrier confirmed it.")
}

func (d *desk) isIn(id action.ID, want action.State) {
	d.T.Helper()
	if got := d.Action(id).State; got != want {
		d.T.Errorf("the action is %s, want %s", got, want)
	}
}

// lost is an action that was approved and sent, and whose answer never came.
func (d *desk) lost() action.Action {
	d.T.Helper()
	a := d.Approve(d.refund().ID)
	claimed, err := d.Actions.Claim(d.T.Context(), d.Org.ID, a.ID, action.Ready{Definition: a.Definition, Destination: a.Destination})
	d.Must(err)
	began := time.Date(2026, 11, 30, 14, 2, 11, 204_000_000, time.UTC)
	outcome := action.Uncertain("upstream_error", "The request was sent and the connection ended before an answer came.",
		action.Evidence{StartedAt: began, EndedAt: began.Add(30003 * time.Millisecond), BytesWritten: 412, Transport: "broken"})
	a, err = d.Actions.Complete(d.T.Context(), claimed, outcome)
	d.Must(err)
	return a
}

// presses posts the form of a card as it shows this action.
func (b *browser) presses(a action.Action, verb string, more ...string) page {
	b.T.Helper()
	return b.post("/actions/"+string(a.ID)+"/"+verb, append([]string{"args_digest", a.ArgsDigest, "version", strconv.Itoa(a.Version)}, more...)...)
}
