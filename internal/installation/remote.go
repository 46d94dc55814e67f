package installation

import (
	"context"
	"slices"
	"strings"

	"countersign/internal/audit"
	"countersign/internal/credential"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/registry"
)

// Remote is what a person types for a connection of a remote runtime.
type Remote struct {
	Address string
	Named   bool   // the credential travels in a header of its own
	Header  string // which one
}

// checkRemote judges what was typed; for any other runtime nothing may have been.
func checkRemote(kind registry.Kind, contract manifest.Contract, r Remote) error {
	if kind != registry.Remote {
		if r != (Remote{}) {
			return fault.Field("url", "This integration has an address of its own, which nobody types in.")
		}
		return nil
	}
	faults := collect(nil, checkAddress(r.Address))
	switch {
	case r.Named && contract != manifest.Token:
		faults = append(faults, fault.Field("header", "Only a credential that is typed in travels in a header of its own."))
	case r.Named:
		faults = collect(faults, credential.CheckNamed(r.Header))
	case r.Header != "":
		faults = append(faults, fault.Field("header", "A bearer token travels in the header Authorization; leave the name out, or choose a header of its own."))
	}
	return faults.Err()
}

// checkAddress is the rule for an address that a person types. What is behind its name is judged at every dial.
func checkAddress(address string) error {
	switch {
	case address == "":
		return fault.Field("url", "The address is empty; it looks like https://mcp.example.com/mcp.")
	case strings.Contains(address, "?"):
		return fault.Field("url", "The address carries a query (?…). Addresses are shown on pages and written to logs; a credential has a field of its own.")
	case strings.ContainsAny(address, "{}"):
		return fault.Field("url", "The address holds a placeholder in braces; write what belongs there.")
	}
	_, err := egress.Public(address)
	return err
}

// Confirmable reports whether the server says of a tool that it only reads, so that an admin may confirm it or has.
func (t Tool) Confirmable() bool {
	return t.Listed && t.Problem == "" && (t.Class.Reason == policy.Unconfirmed || t.Class.Reason == policy.AdminSaysSo)
}

// ConfirmReads saves which definitions count as reads: exactly those named, of what the server lists now. Each was read by the person who
// saves; one that changed meanwhile saves nothing. What is granted by a definition takes its new effect at once, in the same save.
func (s *Connections) ConfirmReads(ctx context.Context, by identity.Person, a Access, named []Confirmation) (Connection, error) {
	c, err := s.at(ctx, by.Org, a.Key, a.Version)
	if err != nil {
		return Connection{}, err
	}
	if c.Kind != registry.Remote {
		return Connection{}, fault.New(fault.Conflict, fault.CodeConflict, "Nothing was saved. The tools of this connection are judged by the catalog, not one by one here.", "Save mode and tools instead.")
	}
	tools, err := s.Tools(ctx, c)
	if err == nil {
		err = confirmable(tools, named)
	}
	if err != nil {
		return Connection{}, err
	}
	now := confirming(c, tools, named)
	added, removed := changes(c.Confirmed, now)
	if added == "" && removed == "" {
		return c, nil
	}
	next, raws, err := s.reclassified(ctx, c, tools, now)
	if err != nil {
		return Connection{}, err
	}
	e := entry(by, audit.ReadConfirmed, c.Key, audit.Fact{Name: "confirmed", Value: added}, audit.Fact{Name: "withdrawn", Value: removed})
	return s.Write.ConfirmReads(ctx, c, now, next, raws, e)
}

// reclassified is the standing that follows from other confirmations, with the definitions it pins.
func (s *Connections) reclassified(ctx context.Context, c Connection, tools []Tool, now []Confirmation) (policy.Standing, map[string][]byte, error) {
	m, err := s.Manifest(ctx, c)
	if err != nil {
		return policy.Standing{}, nil, err
	}
	after := c
	after.Confirmed = now
	raws := map[string][]byte{}
	for i, t := range tools {
		raws[t.Tool] = t.PinnedRaw
		if t.Listed {
			tools[i].Class = classify(after, m, t.Observed)
		}
	}
	next, err := policy.Reclassify(c.Standing, Candidates(tools))
	return next, raws, err
}

// confirmable refuses a definition that is not the one shown, or of which the server itself does not say that it reads.
func confirmable(tools []Tool, named []Confirmation) error {
	for _, n := range named {
		i := slices.IndexFunc(tools, func(t Tool) bool { return t.Tool == n.Tool && t.Listed })
		switch {
		case i < 0 || tools[i].Digest != n.Digest:
			return fault.Stale("Nothing was confirmed. “" + n.Tool + "” is not what it was when you read it.")
		case !tools[i].Confirmable():
			return fault.New(fault.Conflict, fault.CodeConflict, "Nothing was confirmed. The server itself does not say that “"+n.Tool+"” only reads.", "Leave it consequential; a person can approve each call.")
		}
	}
	return nil
}

// confirming is what is confirmed from now on. A granted definition that the server no longer lists was not shown, so it stays as it was.
func confirming(c Connection, tools []Tool, named []Confirmation) []Confirmation {
	now := slices.Clone(named)
	for _, old := range c.Confirmed {
		shown := slices.ContainsFunc(tools, func(t Tool) bool { return t.Listed && t.Tool == old.Tool && t.Digest == old.Digest })
		if p, granted := c.Standing.Snapshot.Find(old.Tool); !shown && granted && p.Digest == old.Digest {
			now = append(now, old)
		}
	}
	slices.SortFunc(now, func(a, b Confirmation) int { return strings.Compare(a.Tool+"\x00"+a.Digest, b.Tool+"\x00"+b.Digest) })
	return slices.Compact(now)
}

func changes(before, after []Confirmation) (added, removed string) {
	var plus, minus []string
	for _, c := range after {
		if !slices.Contains(before, c) {
			plus = append(plus, c.Tool)
		}
	}
	for _, c := range before {
		if !slices.Contains(after, c) {
			minus = append(minus, c.Tool)
		}
	}
	return brief(plus), brief(minus)
}
