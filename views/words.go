// Package views owns the pages: each takes a small value with everything it shows and knows nothing of requests, sessions or storage.
// It never decides what a person may do; it is told. Text that somebody else wrote goes through ui.Text or ui.Raw, never past them.
package views

// effectWords is the icon and the word of an effect. Destructive is a consequential tool that cannot be undone.
func effectWords(effect string, destructive bool) (class, word string) {
	switch {
	case effect == "read" && !destructive:
		return "read", "Read"
	case destructive:
		return "destructive", "Destructive"
	default: // what is not known to be a read is consequential
		return "consequential", "Consequential"
	}
}

// stateWords says the states of an action as people say them.
var stateWords = map[string]string{
	"staged":         "Waiting for approval",
	"approved":       "Approved",
	"executing":      "Being sent",
	"succeeded":      "Done",
	"failed":         "Not done",
	"uncertain":      "Outcome unknown",
	"denied":         "Denied",
	"expired":        "Expired",
	"cancelled":      "Cancelled",
	"closed_unknown": "Closed, may have happened",
}
