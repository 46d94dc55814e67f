package policy

// Hint is an annotation of an upstream tool as found in its raw JSON. Only the JSON booleans are hints; "true" as text, 1 or an
// object are Malformed, which never helps the tool.
type Hint uint8

// The readings of an annotation.
const (
	HintAbsent Hint = iota // missing or null
	HintTrue
	HintFalse
	HintMalformed
)

// Annotations are the two hints that matter, from the pinned definition.
type Annotations struct {
	ReadOnly    Hint
	Destructive Hint
}

// Origin says who vouches for annotations.
type Origin uint8

// The origins. An annotation of a custom remote MCP counts only after an admin confirmed that very definition.
const (
	CatalogVendor Origin = iota + 1
	CustomRemote
)

// Review is a manifest's reviewed statement about one tool. It outranks every annotation.
type Review struct {
	Effect      Effect
	Destructive bool
}

// Evidence is everything known about one tool's effect.
type Evidence struct {
	Review        *Review // nil where the manifest says nothing about the tool
	Annotations   Annotations
	Origin        Origin
	ConfirmedRead bool // an admin confirmed this pinned definition as a read
}

// Reason says why a tool has its effect.
type Reason string

// The reasons.
const (
	Reviewed      Reason = "reviewed"      // the catalog's tool policy
	VendorSaysSo  Reason = "vendor_read"   // readOnlyHint true from a catalog vendor
	AdminSaysSo   Reason = "admin_read"    // an admin confirmed this definition
	VendorWrites  Reason = "vendor_writes" // readOnlyHint false
	VendorSilent  Reason = "vendor_silent" // no annotation: fail closed
	Unconfirmed   Reason = "unconfirmed"   // a custom remote's hint nobody confirmed
	Contradictory Reason = "contradictory" // read only and destructive at once
	Unreadable    Reason = "unreadable"    // an annotation that is not a JSON boolean
)

// Sentence explains the reason to a person.
func (r Reason) Sentence() string {
	switch r {
	case Reviewed:
		return "Reviewed for the catalog."
	case VendorSaysSo:
		return "The vendor marks it as read only."
	case AdminSaysSo:
		return "An admin confirmed this definition as a read."
	case VendorWrites:
		return "The vendor says it writes."
	case VendorSilent:
		return "The vendor says nothing, so we assume it writes."
	case Unconfirmed:
		return "The server says read only; no admin has confirmed that."
	case Contradictory:
		return "The vendor marks it read only and destructive at once, so we assume it writes."
	case Unreadable:
		return "Its annotation is not a true or false, so we assume it writes."
	}
	return ""
}

// Class is a tool's effect, with the reason. Destructive is only ever set on a consequential tool.
type Class struct {
	Effect      Effect
	Destructive bool
	Reason      Reason
}

// Classify decides a tool's effect and fails closed: without a review or a trustworthy read-only annotation it is consequential.
func Classify(e Evidence) Class {
	if e.Review != nil {
		effect := Consequential
		if e.Review.Effect == Read {
			effect = Read
		}
		return Class{Effect: effect, Destructive: effect == Consequential && e.Review.Destructive, Reason: Reviewed}
	}
	write := func(why Reason) Class {
		return Class{Effect: Consequential, Destructive: e.Annotations.Destructive == HintTrue, Reason: why}
	}
	a := e.Annotations
	switch {
	case a.ReadOnly == HintMalformed || a.Destructive == HintMalformed:
		return write(Unreadable)
	case a.ReadOnly == HintTrue && a.Destructive == HintTrue:
		return write(Contradictory)
	case a.ReadOnly == HintFalse:
		return write(VendorWrites)
	case a.ReadOnly == HintTrue && e.Origin == CatalogVendor:
		return Class{Effect: Read, Reason: VendorSaysSo}
	case a.ReadOnly == HintTrue && e.Origin == CustomRemote && e.ConfirmedRead:
		return Class{Effect: Read, Reason: AdminSaysSo}
	case a.ReadOnly == HintTrue && e.Origin == CustomRemote:
		return write(Unconfirmed)
	}
	return write(VendorSilent)
}
