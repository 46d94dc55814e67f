package db

import (
	"context"
	"slices"

	"countersign/db/rows"
	"countersign/internal/action"
	"countersign/internal/manifest"
	"countersign/internal/policy"
	"countersign/internal/profile"
)

// subject is the call the fences judge: a proposal, or an action that exists.
type subject struct {
	self        string // action id, empty for a proposal
	key         string // idempotency key of a proposal, empty for an action that exists
	tool        string
	definition  string // digest of the definition it was asked under
	destination string
	arguments   []byte
	argsDigest  string
	spends      manifest.Amount
	touched     manifest.Touched
	reserved    bool
}

func subjectOf(a rows.Action) subject {
	return subject{
		self: a.ID, tool: a.Tool, definition: a.Definition, destination: a.Destination, arguments: a.Arguments, argsDigest: a.ArgsDigest,
		spends: spendsOf(a), touched: touchedOf(a), reserved: a.BudgetHeld,
	}
}

func subjectOfProposal(p action.Proposal) subject {
	return subject{
		key: p.Key, tool: p.Tool, definition: p.Definition, destination: p.Destination, arguments: p.Arguments, argsDigest: p.ArgsDigest,
		spends: p.Spends, touched: p.Touched,
	}
}

// present is what the caller found out about the outside just now.
type present struct {
	definition      string // live digest; empty where nobody asked (an approval), then the last one observed counts
	destination     string // empty where nobody asked
	outsideResource string
}

// judged is what the database says about one call at this moment.
type judged struct {
	facts       action.Facts
	ofKey       string      // the action there is of the proposal's key; empty: none
	mode        policy.Mode // of the connection, within what was minted and what the profile allows
	destructive bool
	asked       asked
}

// facts reads everything the fences judge. The run and the connection are locked, so what is read holds until the commit.
func (t step) facts(ctx context.Context, r rows.Run, c rows.Connection, s subject, p present) (judged, error) {
	f, err := t.q.ActionFacts(ctx, rows.ActionFactsParams{
		RunID: r.ID, ConnectionID: c.ID, Key: s.key, Tool: s.tool, Arguments: s.arguments, ArgsDigest: s.argsDigest, Self: s.self,
		Currency: s.spends.Currency, Setting: s.touched.Setting,
	})
	if err != nil {
		return judged{}, err
	}
	who := askedOf(f)
	outside := p.outsideResource
	if outside == "" {
		outside = s.touched.Outside(who.bound, who.allowed)
	}
	use := useOf(f.ProfileMode, f.ProfileTools)
	mode := use.Narrow(policy.Standing{Mode: policy.Mode(c.Mode)}).Mode.Within(policy.Mode(text(f.MintedMode)))
	live, destination := p.definition, p.destination
	if live == "" {
		if live = text(f.ObservedDigest); live == "" {
			live = s.definition
		}
	}
	if destination == "" {
		destination = s.destination
	}
	return judged{
		ofKey: f.OfKey, mode: mode, asked: who, destructive: f.PinnedDestructive != nil && *f.PinnedDestructive,
		facts: action.Facts{
			Now: f.Now, RunLive: r.EndedAt == nil && f.Now.Before(r.ExpiresAt), BehalfActive: who.behalfActive, SameTask: true, // a run's task never changes, and a trigger compares it
			ProfileAllows:   f.InProfile && allowsWriting(use, s.tool),
			OutsideResource: outside,
			Granted:         f.MintedDigest != nil && f.PinnedDigest != nil,
			SameDefinition:  s.definition == text(f.PinnedDigest) && s.definition == text(f.MintedDigest) && s.definition == live,
			SameDestination: s.destination == c.Destination && s.destination == destination,
			Mode:            mode, ConnectionActive: c.State == "active", NeedsConsent: c.State == "needs_consent",
			Reserved: s.reserved, Budget: int(r.Budget), Used: int(r.ConsequentialUsed), Day: who.day, Spends: s.spends,
			UncertainEqual: action.ID(f.UncertainEqual),
		},
	}, nil
}

// useOf is a profile's use of a connection. Null tools are all of them, an empty list is none.
func useOf(mode *string, tools []string) profile.Use {
	return profile.Use{Mode: policy.Mode(text(mode)), Tools: tools}
}

func allowsWriting(u profile.Use, tool string) bool {
	return (u.Mode == "" || u.Mode.Access() == policy.AccessFull) && (u.Tools == nil || slices.Contains(u.Tools, tool))
}
