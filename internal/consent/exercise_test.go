package consent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"countersign/internal/consent"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/provider"
	"countersign/internal/registry"
	"countersign/internal/secret"
)

// conformant is a manifest of the suite's server; %grants are what a person may choose.
const conformant = `key = "%key"
name = "Conformance %key"
category = "customers"
summary = "A server of the protocol's own conformance suite."
description = "A server that looks at what its client does, described at some length."
mark = "C"
kind = "hosted"
runtime = "sandbox_crm.v1"
why_this_kind = "The service is a hosted MCP server with annotated tools."

[[auth]]
contract = "none"

[[auth]]
contract = "oauth2"
%grants
[tools.whoami]
effect = "read"
reviewed = "2026-12-01"
why = "No server of the suite has it; a manifest names the call that proves its credential."

[probe]
tool = "whoami"
`

// stepGrants are the scopes of the scenario in which a call needs more than the minimum.
const stepGrants = `
[[grants]]
id = "basic"
title = "List the tools"
why = "Nothing works without it."
scopes = ["mcp:basic"]

[[grants]]
id = "write"
title = "Call the tools"
why = "Calls need it."
scopes = ["mcp:write"]
optional = true
`

// given is what the suite tells a client beside the address.
type given struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
	Calls  []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`
}

// exercise is one scenario, played as a server and its people would.
type exercise struct {
	*world
	scenario
	ctx  context.Context
	told given
	r    *replica
	c    installation.Connection
}

func (e *exercise) byConsent() bool { return strings.HasPrefix(e.scenario.Name, "auth/") }

func (e *exercise) play() error {
	if len(e.scenario.Context) > 0 {
		if err := json.Unmarshal(e.scenario.Context, &e.told); err != nil {
			return err
		}
	}
	if err := e.reaches(""); err != nil {
		return err
	}
	defer func() { e.r.lines.Close() }()
	q := installation.Setup{Integration: "plain", Name: e.scenario.Name, Contract: manifest.None}
	if e.byConsent() {
		q.Contract = manifest.OAuth2
	}
	if e.scenario.Name == "auth/scope-step-up" {
		q.Integration = "steps"
	}
	var err error
	if e.c, err = e.r.connections.Install(e.ctx, e.owner, q); err != nil {
		return err
	}
	if e.byConsent() {
		if err := e.allows(); err != nil {
			return err
		}
	}
	return e.uses()
}

// reaches makes a server whose operator vouches for the suite's address and, once the server found it by itself, for that of the
// authorization server.
func (e *exercise) reaches(authorization string) error {
	addresses := map[string]string{"sandbox_crm.v1": e.Server}
	if authorization != "" {
		addresses["sandbox_crm.v1/revoke"] = authorization + "/revoke"
	}
	var overrides []registry.Override
	for target, address := range addresses {
		o, err := registry.Trusted().NewOverride(target, address)
		if err != nil {
			return err
		}
		overrides = append(overrides, o)
	}
	if e.r != nil {
		e.r.lines.Close()
	}
	e.r = e.over(e.first.db, registry.Trusted().With(overrides...), "https://conformance-test.local")
	return nil
}

// allows goes to the authorization server and back, as a person would.
func (e *exercise) allows(chosen ...string) error {
	l := consent.Leave{Key: e.c.Key, Session: e.session, Chosen: chosen}
	start := func() (consent.Departure, error) { return e.r.desk.Start(e.ctx, e.owner, l) }
	d, err := start()
	if led := e.led(err); led != "" {
		if err := e.reaches(led); err != nil {
			return err
		}
		d, err = start()
	}
	if errors.Is(err, consent.ErrNoClient) && e.told.ID != "" { // the page asks for a client, and the admin enters one
		l.Entered = consent.Entered{ID: e.told.ID, Secret: secret.New(e.told.Secret)}
		d, err = start()
	}
	if err != nil {
		return err
	}
	a, err := e.visits(d.URL)
	if err != nil {
		return err
	}
	_, err = e.r.desk.Receive(e.ctx, e.owner, e.session, a)
	return err
}

// led is the origin that discovery led to when it was refused as one nobody vouches for. That it got so far is the server's own doing:
// here only the operator looks up for what to vouch.
func (e *exercise) led(err error) string {
	if err == nil || !strings.Contains(err.Error(), "an address that is not allowed") {
		return ""
	}
	u, err := url.Parse(e.Server)
	if err != nil {
		return ""
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource", "/custom/metadata/location.json"} {
		var at struct {
			Servers []string `json:"authorization_servers"`
		}
		res, err := http.Get("http://" + u.Host + path)
		if err != nil {
			return ""
		}
		_ = json.NewDecoder(res.Body).Decode(&at) // another place may have it
		_ = res.Body.Close()
		if len(at.Servers) == 0 {
			continue
		}
		if found, err := url.Parse(at.Servers[0]); err == nil {
			return found.Scheme + "://" + found.Host
		}
	}
	return ""
}

// visits is the browser at the authorization server.
func (e *exercise) visits(to string) (consent.Answer, error) {
	r, err := http.NewRequestWithContext(e.ctx, http.MethodGet, to, nil)
	if err != nil {
		return consent.Answer{}, err
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	if err != nil {
		return consent.Answer{}, err
	}
	_ = res.Body.Close()
	back, err := res.Location()
	if err != nil {
		return consent.Answer{}, fmt.Errorf("the authorization server answers %s and sends nobody back", res.Status)
	}
	q := back.Query()
	_, named := q["iss"]
	return consent.Answer{State: q.Get("state"), Code: q.Get("code"), Error: q.Get("error"), Issue: q.Get("iss"), Named: named}, nil
}

// uses lists the tools and calls each that can be called; where the service wants another consent, a person gives it, once.
func (e *exercise) uses() error {
	err := e.calls()
	if err == nil || !e.byConsent() {
		return err
	}
	var read error
	if e.c, read = e.r.connections.Read.Connection(e.ctx, e.owner.Org, e.c.Key); read != nil {
		return read
	}
	if e.c.State != installation.NeedsConsent && len(e.c.Refused) == 0 { // its page offers no other consent
		return err
	}
	var more []string
	if len(e.c.Refused) > 0 {
		more = []string{"write"}
	}
	if err := e.allows(more...); err != nil {
		return err
	}
	return e.calls()
}

func (e *exercise) calls() error {
	c, err := e.r.connections.Test(e.ctx, e.owner, e.c.Key)
	if err != nil {
		return err
	}
	line, err := e.r.lines.Open(e.ctx, c)
	if err != nil {
		return err
	}
	tools, err := line.Tools(e.ctx, 0)
	if err != nil {
		return err
	}
	var calls []provider.Call
	for _, call := range e.told.Calls {
		calls = append(calls, provider.Call{Tool: call.Name, Arguments: call.Arguments})
	}
	for _, tool := range tools {
		if tool.Problem == "" && len(e.told.Calls) == 0 {
			calls = append(calls, provider.Call{Tool: tool.Name, Arguments: json.RawMessage(`{"a":5,"b":3}`)})
		}
	}
	for _, call := range append(calls, calls...) { // twice: some scenarios change their mind after the first
		if _, err := line.Read(e.ctx, call); err != nil {
			return err
		}
	}
	return nil
}
