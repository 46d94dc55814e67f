package db

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"countersign/db/rows"
	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
)

// Audit reads the trail, seals it and verifies it.
type Audit struct{ *DB }

var _ audit.Reader = Audit{}

// insertAudit writes the trail's entry about a change into the transaction of that change: if it cannot be written, nothing is done.
func insertAudit(ctx context.Context, tx pgx.Tx, e audit.Entry) error {
	names, values := split(e.Facts)
	return rows.New(tx).AuditEntryInsert(ctx, rows.AuditEntryInsertParams{
		OrgID: string(e.Org), ActorKind: string(e.Actor.Kind), ActorID: short(e.Actor.ID), ActorName: short(e.Actor.Name), Event: string(e.Event),
		ObjectKind: e.Object.Kind, ObjectID: short(e.Object.ID), Digest: short(e.Digest), FactNames: names, FactValues: values,
	})
}

// Record writes an entry about something that changed nothing else, such as a refused sign-in, before it returns.
func (a Audit) Record(ctx context.Context, e audit.Entry) error {
	return a.inOrg(ctx, e.Org, func(tx pgx.Tx) error { return insertAudit(ctx, tx, e) })
}

// split parts facts into the two arrays they are stored as.
func split(facts []audit.Fact) (names, values []string) {
	names, values = make([]string, len(facts)), make([]string, len(facts))
	for i, f := range facts {
		names[i], values[i] = short(f.Name), short(f.Value)
	}
	return names, values
}

// storable replaces what PostgreSQL text cannot hold. A tool name with a zero byte in it must not make the trail unwritable, since
// an unwritable trail stops all work.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// maxText bounds each text of an entry. They are names, numbers and digests; one that is longer came from outside, and an index
// refuses a row with 2.7 kB in one column.
const maxText = 1000

// short is storable text that fits, cut between two characters and marked where it was cut.
func short(s string) string {
	s = storable(s)
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// Bounds of a page of entries.
const (
	defaultEntries = 50
	maxEntries     = 500
)

// Entries lists entries, newest first. Those of the last moment are not sealed yet: their Seq is zero.
func (a Audit) Entries(ctx context.Context, org identity.OrgID, f audit.Filter) (out []audit.Recorded, err error) {
	err = a.readOrg(ctx, org, func(tx pgx.Tx) error {
		found, err := rows.New(tx).AuditEntryList(ctx, wanted(org, f))
		for _, r := range found {
			e := recorded(r.ID, r.OrgID, r.At, r.ActorKind, r.ActorID, r.ActorName, r.Event, r.ObjectKind, r.ObjectID, r.Digest, r.FactNames, r.FactValues)
			if e.MAC = r.Mac; r.Seq != nil {
				e.Seq = *r.Seq
			}
			out = append(out, e)
		}
		return err
	})
	return out, err
}

func wanted(org identity.OrgID, f audit.Filter) rows.AuditEntryListParams {
	p := rows.AuditEntryListParams{OrgID: string(org), Actor: given(f.Actor), Object: given(f.Object), Count: defaultEntries}
	if strings.HasSuffix(f.Event, ".") {
		p.EventPrefix = given(f.Event)
	} else {
		p.Event = given(f.Event)
	}
	if !f.From.IsZero() {
		p.FromTime = &f.From
	}
	if !f.Until.IsZero() {
		p.UntilTime = &f.Until
	}
	if f.Before > 0 {
		p.Before = &f.Before
	}
	if f.Limit > 0 {
		p.Count = int32(min(f.Limit, maxEntries))
	}
	return p
}

// given is a text to filter by, or null.
func given(s string) *string {
	if s == "" {
		return nil
	}
	s = storable(s)
	return &s
}

func recorded(id int64, org string, at time.Time, actorKind, actorID, actorName, event, objectKind, objectID, digest string, names, values []string) audit.Recorded {
	r := audit.Recorded{ID: id, At: at, Entry: audit.Entry{
		Org: identity.OrgID(org), Actor: audit.Actor{Kind: audit.ActorKind(actorKind), ID: actorID, Name: actorName}, Event: audit.Event(event),
		Object: audit.Object{Kind: objectKind, ID: objectID}, Digest: digest,
	}}
	for i := range names {
		value := "" // an array that somebody shortened is what a MAC shows, not a reason to fall over
		if i < len(values) {
			value = values[i]
		}
		r.Facts = append(r.Facts, audit.Fact{Name: names[i], Value: value})
	}
	return r
}

// wellFormed refuses an entry that could never be stored before somebody waits for it to be.
func wellFormed(e audit.Entry) error {
	if !isWord(e.Org) || e.Event == "" {
		return fault.New(fault.Internal, fault.CodeInternal, "An entry of the trail names no organization or no event.", "")
	}
	return nil
}
