package policy

import "countersign/internal/fault"

// Call is what Decide needs to know about one call: the run's surface, what was minted into the run, and the connection as it is now.
type Call struct {
	Surface   Surface
	Minted    bool   // the tool was in the snapshot when the run started
	Granted   bool   // it is in the snapshot now
	SamePin   bool   // the pinned definition is still the one minted, and the live one equals it
	Effect    Effect // of the minted definition
	Mode      Mode   // of the connection now, or the profile's narrower one
	Reachable bool   // the connection is active and its credential usable
}

// Do is what happens to a call.
type Do string

// What can happen.
const (
	Pass   Do = "pass"  // a read: goes through
	Stage  Do = "stage" // becomes an action that waits for a person
	Run    Do = "run"   // becomes an action approved by policy
	Refuse Do = "refuse"
)

// Verdict is the answer, with its reason.
type Verdict struct {
	Do     Do
	Code   fault.Code // only with Refuse
	Reason string
	Next   string
}

// Decide answers one call. The order is the order in which an agent should learn the facts: what it was never given looks the same
// as what does not exist; then what its surface forbids; then what people changed since it started.
func Decide(c Call) Verdict {
	switch {
	case !c.Minted:
		return notGranted
	case c.Surface != Task && c.Effect != Read:
		return Verdict{
			Refuse, fault.ConsequentialInChat, "A chat run may not change anything in an outside service; nothing was staged.",
			"Ask for a task run: there this call can be staged for a person's approval.",
		}
	case !c.Reachable:
		return Verdict{
			Refuse, fault.ConnectionUnavailable, "This connection does not work right now.",
			"Go on without it. An admin sees what is wrong on the connection's page.",
		}
	case c.Effect != Read && c.Mode == ReadOnly:
		return Verdict{
			Refuse, fault.ReadOnlyConnection, "An admin has set this connection to read only.",
			"Use its read tools, or ask an admin to allow writing.",
		}
	case !c.Granted:
		return notGranted
	case !c.SamePin:
		return Verdict{
			Refuse, fault.DefinitionChanged, "This tool's definition changed and is held back until a person has reviewed it.",
			"Go on without it, or ask an admin to review the change on the connection's page.",
		}
	case c.Effect == Read:
		return Verdict{Do: Pass, Reason: "It only reads."}
	case c.Mode == AskUserOnWrite:
		return Verdict{Do: Stage, Reason: "It changes something, so a person decides."}
	case c.Mode == Autonomous:
		return Verdict{Do: Run, Reason: "It changes something, and policy approves within the fences."}
	}
	return notGranted // an unknown mode or effect grants nothing
}

var notGranted = Verdict{Refuse, fault.ToolNotGranted, "This run has no such tool.", "List the tools: what is listed is what this run may use."}

// Fault is a refusal as an error; nil for the other verdicts.
func (v Verdict) Fault() *fault.Error {
	if v.Do != Refuse {
		return nil
	}
	return fault.New(fault.Forbidden, v.Code, v.Reason, v.Next)
}
