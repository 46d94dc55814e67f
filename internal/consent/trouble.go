package consent

import (
	"countersign/internal/audit"
	"countersign/internal/fault"
)

// Trouble is why a consent no longer works, in words for the connection's page.
type Trouble struct {
	Word string // for the trail
	What string
	Next string
}

const again = "Sign in again from the connection's page; its tools, mode and key stay as they are."

// The troubles.
var (
	Expired = Trouble{"expired", "The consent has expired: its access ended, and the service gave nothing to renew it with.", again}
	Revoked = Trouble{"revoked", "The service no longer accepts the consent: it was revoked there, or has expired.", again}
	Unknown = Trouble{
		"client", "The service no longer knows the client that asked for the consent, or its secret.",
		"Check the client at the vendor, then sign in again from the connection's page; its tools, mode and key stay as they are.",
	}
	Moved = Trouble{
		"moved", "The authorization server of this connection is at another address than when a person consented.",
		"Nothing was sent to the new one. " + again,
	}
	Refused = Trouble{"refused", "The service refused to renew the consent.", again}
)

// troubleOf is the trouble of a word.
func troubleOf(word string) Trouble {
	for _, t := range []Trouble{Expired, Revoked, Unknown, Moved} {
		if t.Word == word {
			return t
		}
	}
	return Refused
}

// Fault is what a call is answered while the trouble lasts.
func (t Trouble) Fault() *fault.Error {
	return fault.New(fault.Unavailable, fault.NeedsConsent, t.What, "Go on without this connection. An admin can sign in again on its page.")
}

func (t Trouble) entry(c Consent) audit.Entry {
	return audit.Entry{
		Org: c.Org, Actor: audit.System("consent"), Event: audit.ConsentLost, Object: audit.Object{Kind: "connection", ID: c.Connection.String()},
		Facts: []audit.Fact{{Name: "reason", Value: t.Word}, {Name: "given by", Value: c.ByName}},
	}
}
