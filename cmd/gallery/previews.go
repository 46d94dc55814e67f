package main

import "countersign/views"

// previewPages are cards whose provider shows what the action would meet: a change, an end with hostile words in it, nothing, and a service
// that does not answer.
func previewPages() []Entry {
	meets := func(p views.PreviewView) views.ActionView {
		v := cardOf(refunded())
		v.Preview = &p
		return v
	}
	return []Entry{
		card("shown as it is now", meets(views.PreviewView{
			Sentence: "This document will be changed as marked.",
			Before:   "{\n  \"_id\": \"c_1\",\n  \"city\": \"Bergn\",\n  \"name\": \"Ada\"\n}", After: "{\n  \"_id\": \"c_1\",\n  \"city\": \"Bergen\",\n  \"name\": \"Ada\"\n}",
		})),
		card("shown, hostile, about to be gone", meets(views.PreviewView{Sentence: "This document will be gone.", Before: "{\n  \"name\": \"\u202eeverything is fine <b>really</b>\"\n}"})),
		card("shown, with nothing there", meets(views.PreviewView{Sentence: "No document has this _id and is as the call demands. As it is now, nothing would be changed."})),
		card("shown, not read", meets(views.PreviewView{Problem: "The service did not answer in time.", Next: "It can be decided on without; what will be sent stands below."})),
	}
}
