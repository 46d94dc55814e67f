package reach

import (
	"context"
	"fmt"
	"time"

	"countersign/internal/consent"
	"countersign/internal/egress"
	"countersign/internal/installation"
	"countersign/internal/manifest"
	"countersign/internal/provider"
	"countersign/internal/registry"
)

// examineWithin bounds a whole examination: a person waits for the page.
const examineWithin = 45 * time.Second

// examination is one walk along the steps of a connection.
type examination struct {
	lines    *Lines
	c        installation.Connection
	manifest manifest.Manifest
	checks   []installation.Check
	stopped  *installation.Check
	finding  installation.Finding
}

// Examine implements installation.Prober: it takes every step that a call takes, in its order, and says what each found. What follows a
// step that failed is not tried.
func (l *Lines) Examine(ctx context.Context, c installation.Connection) ([]installation.Check, installation.Finding) {
	ctx, cancel := context.WithTimeout(ctx, examineWithin)
	defer cancel()
	x := &examination{lines: l, c: c}
	if c.Kind == registry.Stdio {
		for _, s := range installation.Steps {
			x.apart(s, "It works beside the agent; nothing is sent from here.")
		}
		return x.checks, beside
	}
	x.way(ctx)
	x.discovery(ctx)
	x.service(ctx)
	if x.stopped != nil {
		x.finding = installation.Finding{What: x.stopped.Found, Next: x.stopped.Next}
	}
	return x.checks, x.finding
}

func (x *examination) add(c installation.Check) {
	if x.stopped != nil {
		c = installation.Check{Step: c.Step, Fate: installation.NotTried, Found: "Not tried: what comes before it failed."}
	}
	x.checks = append(x.checks, c)
	if c.Fate == installation.Fails {
		x.stopped = &c
	}
}

func (x *examination) holds(s installation.Step, found string) {
	x.add(installation.Check{Step: s, Fate: installation.Holds, Found: found})
}

func (x *examination) apart(s installation.Step, why string) {
	x.add(installation.Check{Step: s, Fate: installation.Apart, Found: why})
}

func (x *examination) fails(s installation.Step, found, next string) {
	x.add(installation.Check{Step: s, Fate: installation.Fails, Found: found, Next: next})
}

func (x *examination) failed(s installation.Step, err error) {
	what, next := toAdmin(x.c, err)
	x.fails(s, what, next)
}

// way is name, address and TLS, as every connection to the service meets them.
func (x *examination) way(ctx context.Context) {
	var err error
	if x.manifest, err = x.lines.manifest(ctx, x.c); err != nil {
		x.failed(installation.StepName, err)
	}
	d, err := x.lines.destination(x.c)
	switch {
	case x.stopped != nil:
	case err != nil:
		x.failed(installation.StepName, err)
	case manifest.Contract(x.c.Contract) == manifest.ConnectionString && !d.Overridden():
		const servers = "The connection string names servers, and each is held to the same rules when it is dialled; the call below shows whether they were."
		x.holds(installation.StepName, "It leads where the connection string says.")
		x.apart(installation.StepAddress, servers)
		x.apart(installation.StepTLS, servers)
	default:
		x.met(d, egress.Examine(ctx, d))
	}
	for _, s := range installation.Steps[len(x.checks):3] {
		x.apart(s, "")
	}
}

// met puts what was met on the way into words. Which address a name led to is for the server's log alone.
func (x *examination) met(d egress.Destination, w egress.Way) {
	if w.Stopped == egress.AtName {
		x.fails(installation.StepName, "“"+d.Host()+"” has no address.", "Check how the name is spelled, and its entries in DNS; then check again.")
		return
	}
	x.holds(installation.StepName, "“"+d.Host()+"” has an address.")
	switch {
	case w.Stopped == egress.AtAddress && w.Failure == egress.Refused:
		x.fails(installation.StepAddress, "“"+d.Host()+"” leads to an address that is not public, so nothing was dialled.",
			"Every address of the name has to be public. Only the operator of this server can lead a runtime elsewhere, in the endpoints file; the server's log names the address.")
	case w.Stopped == egress.AtAddress:
		x.fails(installation.StepAddress, "No connection: "+w.Failure.Sentence()+".", "See that the service runs and takes connections from this server, then check again.")
	case d.Overridden():
		x.holds(installation.StepAddress, "The operator of this server vouches for it, and it takes connections.")
	default:
		x.holds(installation.StepAddress, "Its addresses are public, and one takes connections.")
	}
	switch {
	case w.Stopped == egress.AtTLS:
		x.fails(installation.StepTLS, "It does not prove to be “"+d.Host()+"”: "+w.Failure.Sentence()+".",
			"The certificate has to be valid now, for this name, and from an authority this server knows; TLS 1.2 at least.")
	case w.Plain:
		x.apart(installation.StepTLS, "The operator of this server leads it over plain HTTP.")
	default:
		x.holds(installation.StepTLS, "It proves to be “"+d.Host()+"”. The certificate is valid until "+w.Until.UTC().Format("2 January 2006")+".")
	}
}

// discovery finds the authorization server anew, where a person consented there.
func (x *examination) discovery(ctx context.Context) {
	auth, ok := x.manifest.Contract(manifest.OAuth2)
	if !ok || x.c.Contract != string(manifest.OAuth2) {
		x.apart(installation.StepDiscovery, "Nobody signs in at the service for this connection, so there is nothing to discover.")
		return
	}
	if x.stopped != nil {
		x.apart(installation.StepDiscovery, "")
		return
	}
	site, err := consent.SiteOf(x.lines.registry, x.c)
	if err == nil {
		var found consent.Found
		if found, err = site.Discover(ctx, auth.OAuth); err == nil {
			x.holds(installation.StepDiscovery, "People sign in at “"+found.Issuer+"”.")
			return
		}
	}
	x.failed(installation.StepDiscovery, err)
}

// service is what only the service itself can answer: the credential is opened, the tools are listed, a call that needs it is made.
func (x *examination) service(ctx context.Context) {
	rest := []installation.Step{installation.StepCredential, installation.StepList, installation.StepCall}
	if x.stopped == nil {
		rest = x.asked(ctx)
	}
	for _, s := range rest {
		x.apart(s, "")
	}
}

// asked answers the steps that were not taken.
func (x *examination) asked(ctx context.Context) []installation.Step {
	line, err := x.lines.Open(ctx, x.c)
	if err != nil {
		x.failed(installation.StepCredential, err)
		return []installation.Step{installation.StepList, installation.StepCall}
	}
	if x.c.Contract == string(manifest.None) {
		x.apart(installation.StepCredential, "The service answers everybody.")
	} else {
		x.holds(installation.StepCredential, "It is there, and opens for this address alone.")
	}
	tools, err := line.Tools(ctx, 0)
	if err != nil {
		x.failed(installation.StepList, err)
		return []installation.Step{installation.StepCall}
	}
	x.holds(installation.StepList, listed(tools))
	test, err := line.Provider.Test(ctx, line.Conn)
	switch {
	case err != nil:
		x.failed(installation.StepCall, err)
		return nil
	case test.Proven:
		x.holds(installation.StepCall, "An authenticated call succeeded.")
	default:
		x.apart(installation.StepCall, "No call is known that needs the credential and changes nothing, so nothing here proves it.")
	}
	x.finding = installation.Finding{OK: true, Found: found(test), Tools: Observed(tools)}
	return nil
}

func listed(tools []provider.Definition) string {
	if len(tools) == 1 {
		return "It offers one tool."
	}
	return fmt.Sprintf("It offers %d tools.", len(tools))
}
