package gateway

import (
	"strings"
	"unicode/utf8"

	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/policy"
	"countersign/internal/unseen"
)

// target is the tool a call names: one connection of the run and the upstream's own name.
type target struct {
	grant  capability.Grant
	tool   string
	minted policy.Pinned
	now    policy.Pinned
	kept   bool // it is in the snapshot now
}

func (t target) key() connector.Key { return t.grant.Connection.Key }

// effect is the stricter of what was minted and what holds now.
func (t target) effect() policy.Effect {
	if t.minted.Effect == policy.Read && (!t.kept || t.now.Effect == policy.Read) {
		return policy.Read
	}
	return policy.Consequential
}

var notGranted = fault.New(fault.Forbidden, fault.ToolNotGranted, "This run has no such tool.", "List the tools: what is listed is what this run may use.")

// target resolves a name of an endpoint. What was never minted, what belongs to another connection and what does not exist look alike.
func (g *Gateway) target(l capability.Live, only connector.Key, name string) (target, error) {
	key, short := only, name
	if only == "" {
		var ok bool
		if key, short, ok = capability.Split(name); !ok {
			return target{}, notGranted
		}
	}
	grant, ok := l.Find(key)
	if !ok {
		return target{}, notGranted
	}
	minted, ok := pinNamed(grant.Minted, key, short)
	if !ok {
		return target{}, notGranted
	}
	return targetOf(grant, minted), nil
}

func targetOf(grant capability.Grant, minted policy.Pinned) target {
	t := target{grant: grant, tool: minted.Tool, minted: minted}
	t.now, t.kept = grant.Now.Snapshot.Find(minted.Tool)
	return t
}

// pinNamed finds the one minted tool with a short name. An upstream that made two of its names shorten to one would choose which of
// them a call reaches; then neither is reached. A tool that is listed under a shortened name only because its own looks like one also
// answers to its own, for callers that know the service; what is listed comes first.
func pinNamed(minted policy.Snapshot, key connector.Key, short string) (policy.Pinned, bool) {
	own, known := minted.Find(short)
	if known && capability.ShortName(key, short) == short {
		return own, true // verbatim names are never the ending of a shortened one
	}
	var found policy.Pinned
	matches := 0
	for p := range minted.All() {
		if capability.ShortName(key, p.Tool) == short {
			found = p
			matches++
		}
	}
	if matches == 0 && known && len(capability.Name(key, "")+short) <= capability.MaxName && ordinary(short) {
		return own, true
	}
	return found, matches == 1
}

// ordinary reports whether every model API accepts the characters of a name.
func ordinary(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	})
}

// decide asks policy and answers its refusal. SamePin is whether the live definition is the minted one, as far as it is known.
func (t target) decide(l capability.Live, samePin, reachable bool) *fault.Error {
	_, refusal := t.verdict(l, samePin, reachable)
	return refusal
}

func (t target) verdict(l capability.Live, samePin, reachable bool) (policy.Do, *fault.Error) {
	v := policy.Decide(policy.Call{
		Surface: l.Run.Surface, Minted: true, Granted: t.kept && t.grant.InProfile, SamePin: samePin && t.samePin(),
		Effect: t.effect(), Mode: t.grant.Now.Mode, Reachable: reachable,
	})
	refusal := v.Fault()
	if refusal != nil && t.byProfile(refusal.Code) {
		refusal = fault.New(fault.Forbidden, fault.ProfileForbids, "The run's profile does not allow this tool on this connection any more.", "Use another tool, or ask an admin to change the profile.")
	}
	return v.Do, refusal
}

// byProfile tells a refusal that comes from the profile from one that comes from the connection.
func (t target) byProfile(code fault.Code) bool {
	own := t.grant.Connection.Standing
	switch code {
	case fault.ToolNotGranted:
		_, kept := own.Snapshot.Find(t.tool)
		return kept || (!t.grant.InProfile && own.Snapshot.Len() == 0)
	case fault.ReadOnlyConnection:
		return own.Mode.Access() == policy.AccessFull
	}
	return false
}

func (t target) samePin() bool {
	return t.minted.Digest == t.now.Digest && t.minted.Recipe == t.now.Recipe && t.minted.Digest != ""
}

func printable(s string) bool { return utf8.ValidString(s) && !strings.ContainsFunc(s, unseen.Is) }
