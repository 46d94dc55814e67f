package mongodb

import (
	"context"
	"strings"

	"countersign/internal/action"
	"countersign/internal/provider"
	"countersign/internal/provider/direct"
)

// look reads the document with the _id of the call and compares it with what was noted before the write. A state that is as the call
// makes it tells only together with another one before; what somebody else changed meanwhile tells nothing.
func look(ctx context.Context, l *direct.Link, a direct.Arguments, e action.Evidence, m maker) (provider.Sighting, error) {
	c, err := m(l, a)
	if err != nil {
		return provider.Sighting{}, err
	}
	if _, given := idOf(a); c.insert && !given && l.Action == "" {
		return provider.Sighting{Sight: provider.Unseen, Sentence: "The call has no marker to look for."}, nil
	}
	doc, err := c.standing(ctx, l, false)
	if err != nil {
		return provider.Sighting{}, err
	}
	now := "none"
	if doc != nil {
		now = digestOf(doc)
	}
	was, will, noted := strings.Cut(e.Before, " ")
	if _, given := idOf(a); c.insert && !given && doc != nil { // nothing else draws this _id
		return provider.Sighting{Sight: provider.Applied, Sentence: "A document with the _id that this action alone would give it is there."}, nil
	}
	s, words := compare(c, noted, was, will, now)
	return provider.Sighting{Sight: s, Sentence: words}, nil
}

// idOf is the _id that the document of a call brings along.
func idOf(a direct.Arguments) (any, bool) {
	doc, err := document(a)
	if err != nil {
		return nil, false
	}
	return member(doc, "_id")
}

func compare(c change, noted bool, was, will, now string) (provider.Sight, string) {
	switch {
	case c.insert && now == "none":
		return provider.Absent, "No document with the call's _id is there."
	case !noted:
		return provider.Unseen, "The document can be read, but nothing is known of how it was before."
	case was == will:
		return provider.Unseen, "The document was already as the call would leave it, so it tells nothing."
	case now == will && now == "none":
		return provider.Applied, "The document was there before the call and is gone."
	case now == will:
		return provider.Applied, "The document is exactly as the call was to leave it, and was not before."
	case now == was:
		return provider.Absent, "The document is exactly as it was before the call."
	}
	return provider.Unseen, "The document changed since, but not to what the call alone would have made of it."
}
