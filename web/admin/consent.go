package admin

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"countersign/internal/connector"
	"countersign/internal/consent"
	"countersign/internal/fault"
	"countersign/internal/installation"
	"countersign/internal/secret"
	"countersign/views"
	"countersign/views/ui"
)

// Consents are the pages a person passes on the way to a service and back.
type Consents struct {
	Desk    *consent.Desk
	Service *installation.Connections
}

// Ask is our own page: which grants, which scopes, why. It asks nobody.
func (p *Consents) Ask(r *Request) error {
	return p.ask(r, http.StatusOK, r.QueryParams()["grant"], views.ConsentView{})
}

func (p *Consents) ask(r *Request, status int, chosen []string, v views.ConsentView) error {
	key, err := connector.Parse(r.Param("key"))
	if err != nil {
		return err
	}
	if v.Ask, err = p.Desk.Prepare(r.Ctx(), r.Org(), key, chosen); err != nil {
		return err
	}
	v.Now = time.Now()
	return r.Show(status, views.ConsentPage(r.Frame("Consent for "+v.Ask.Connection.Name, "connections"), v))
}

// Start finds the authorization server and shows where the person will sign in. The way there is theirs to go.
func (p *Consents) Start(r *Request) error {
	key, err := connector.Parse(r.Param("key"))
	if err != nil {
		return err
	}
	entered := consent.Entered{ID: strings.TrimSpace(r.Posted("client_id")), Secret: secret.New(strings.TrimSpace(r.Posted("client_secret")))}
	d, err := p.Desk.Start(r.Ctx(), r.Person(), consent.Leave{Key: key, Session: r.Browser, Chosen: r.Values("grant"), Entered: entered})
	if err != nil {
		return p.notStarted(r, entered, err)
	}
	ask, err := p.Desk.Prepare(r.Ctx(), r.Org(), key, nil)
	if err != nil {
		return err
	}
	return r.Show(http.StatusOK, views.LeavePage(r.Frame("Sign in for "+ask.Connection.Name, "connections"), views.LeaveView{Ask: ask, Departure: d}))
}

// notStarted shows the page again with what stood in the way. A service that is away is one of those things: the person chose, and may
// choose again.
func (p *Consents) notStarted(r *Request, entered consent.Entered, err error) error {
	fields, whole, again := Problems(err)
	status := statusOf(err)
	if f, ok := fault.As(err); !again && ok && f.Kind == fault.Unavailable && f.Code == fault.ConnectionUnavailable {
		whole, again, status = f, true, http.StatusBadGateway
	}
	if !again {
		return err
	}
	return p.ask(r, status, r.Values("grant"), views.ConsentView{
		WantClient: errors.Is(err, consent.ErrNoClient) || entered.ID != "", ClientID: entered.ID, Errors: fields, Error: what(whole), Next: next(whole),
	})
}

// Callback takes the answer of an authorization server. It is the one page that an address alone makes do something: the answer is
// worth nothing without the browser session that asked, and nothing a second time.
func (p *Consents) Callback(r *Request) error {
	_, named := r.QueryParams()["iss"]
	a := consent.Answer{State: r.QueryParam("state"), Code: r.QueryParam("code"), Error: r.QueryParam("error"), Issue: r.QueryParam("iss"), Named: named}
	got, err := p.Desk.Receive(r.Ctx(), r.Person(), r.Browser, a)
	if err != nil {
		return p.notReceived(r, got, err)
	}
	c, err := p.Service.Test(r.Ctx(), r.Person(), got.Key)
	if err != nil { // the consent is stored; what the test would have said can be asked for on the page
		return r.Done(ui.OK, receivedSentence(got), connectionPath(got.Key))
	}
	words := receivedSentence(got)
	if !c.Health.OK {
		words += " The test failed."
	}
	return r.Done(foundTone(c), words, connectionPath(got.Key))
}

func (p *Consents) notReceived(r *Request, got consent.Received, err error) error {
	f, ok := fault.As(err)
	if !ok || f.Kind == fault.Internal {
		return err
	}
	status := statusOf(err)
	switch f.Kind {
	case fault.Forbidden:
		status = http.StatusForbidden
	case fault.Unavailable:
		status = http.StatusBadGateway
	case fault.NotFound:
		status = http.StatusNotFound
	}
	return r.Show(status, views.ReturnPage(r.Frame("No consent", "connections"), views.ReturnView{Key: got.Key.String(), What: f.What, Next: f.Next}))
}

// receivedSentence says what was allowed, and what was not.
func receivedSentence(got consent.Received) string {
	words := "Consent stored."
	for _, g := range got.Without {
		words += " “" + g.Title + "” was not allowed; tools that need it cannot be chosen."
	}
	if len(got.Without) == 0 && len(got.Withheld) > 0 {
		words += " Not everything that was asked for was allowed."
	}
	if got.Unrenewed {
		words += " The service gave nothing to renew it with, so it will end."
	}
	return words
}

// Document is this server as a client, for authorization servers that read it.
func (p *Consents) Document() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text, err := p.Desk.Ours.Document()
		if err != nil || p.Desk.Ours.DocumentURL() == "" {
			http.Error(w, "This server has no public address, so it is nobody's client by this document.", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "public, max-age=3600")
		_, _ = w.Write(text)
	})
}
