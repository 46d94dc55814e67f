package mongodb

import (
	"context"
	"crypto/sha256"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"countersign/internal/action"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/provider"
	"countersign/internal/provider/direct"
)

var (
	theID  = direct.Field{Type: "string", Description: "The _id of the one document: the 24 digits of an object id, a text, or what id_type says.", MinLength: 1, MaxLength: 2000}
	idKind = direct.OneOf("What id is, where it is neither an object id of 24 hexadecimal digits nor a text.", idObject, idText, idNumber, idExtended)
	onlyIf = direct.Free("What else must hold of the document when the change arrives, as a filter in extended JSON: {\"status\": \"open\"}. If it does not, nothing is changed.")
)

// Every write names one document by its _id. The forms for many are not offered: they can be applied in part, and nobody could approve
// what a filter will match later.
func writes() []direct.Tool {
	one := map[string]direct.Field{"id": theID, "id_type": idKind, "only_if": onlyIf}
	return []direct.Tool{
		{
			Name: "insert_one", Title: "Insert a document", Role: role, Resource: "database",
			Description: "Adds one document to a collection. Without an _id of its own it gets an object id.",
			Input:       on(map[string]direct.Field{"document": direct.Free("The document, in extended JSON.")}, "document"), Write: effect(inserts),
		},
		{
			Name: "update_one", Title: "Change a document", Role: role, Resource: "database",
			Description: "Changes named fields of one document with update operators. It never inserts.",
			Input:       on(one, "id").With(map[string]direct.Field{"update": direct.Free("The operators, in extended JSON: {\"$set\": {\"city\": \"Bergen\"}}.")}, "update"), Write: effect(updates),
		},
		{
			Name: "replace_one", Title: "Replace a document", Role: role, Resource: "database", Destructive: true,
			Description: "Puts another document in the place of one, which keeps its _id. It never inserts.",
			Input:       on(one, "id").With(map[string]direct.Field{"document": direct.Free("The whole new document, in extended JSON.")}, "document"), Write: effect(replaces),
		},
		{
			Name: "delete_one", Title: "Delete a document", Role: role, Resource: "database", Destructive: true,
			Description: "Deletes one document for good.", Input: on(one, "id"), Write: effect(deletes),
		},
	}
}

// change is one write, ready to be sent.
type change struct {
	place
	id      any
	only    bson.D // what else must hold; not of an insert
	command bson.D // without the write concern
	after   func(before bson.D) (after bson.D, known bool)
	verb    string // "inserted"
	insert  bool
}

// maker makes the change of a call. It asks nobody.
type maker func(l *direct.Link, a direct.Arguments) (change, error)

func effect(m maker) *direct.Write {
	return &direct.Write{
		Send: func(ctx context.Context, l *direct.Link, a direct.Arguments) action.Outcome {
			return send(ctx, l, a, m)
		},
		Preview: func(ctx context.Context, l *direct.Link, a direct.Arguments) (provider.Preview, error) {
			return preview(ctx, l, a, m)
		},
		Look: func(ctx context.Context, l *direct.Link, a direct.Arguments, e action.Evidence) (provider.Sighting, error) {
			return look(ctx, l, a, e, m)
		},
	}
}

func inserts(l *direct.Link, a direct.Arguments) (change, error) {
	p, err := placeOf(l, a)
	if err != nil {
		return change{}, err
	}
	doc, err := document(a)
	if err != nil {
		return change{}, err
	}
	id, given := member(doc, "_id")
	if !given {
		id = markerOf(l.Action)
		doc = append(bson.D{{Key: "_id", Value: id}}, doc...)
	}
	if hasOperator(id) {
		return change{}, invalid("The _id of the document is no plain value.", "Leave it out, or give a text, a number or an object id.")
	}
	return change{
		place: p, id: id, verb: "inserted", insert: true, after: func(bson.D) (bson.D, bool) { return doc, true },
		command: bson.D{{Key: "insert", Value: p.collection}, {Key: "documents", Value: bson.A{doc}}},
	}, nil
}

// markerOf is the _id of a document that an action inserts. It follows from the action, so that a look finds the document whenever the
// answer was lost, and the same action could not insert it a second time.
func markerOf(action string) bson.ObjectID {
	if action == "" {
		return bson.NewObjectID()
	}
	sum := sha256.Sum256([]byte("countersign insert " + action))
	return bson.ObjectID(sum[:12])
}

func document(a direct.Arguments) (bson.D, error) {
	doc, err := objectArgument(a, "document")
	if err != nil {
		return nil, err
	}
	for _, e := range doc {
		if len(e.Key) > 0 && e.Key[0] == '$' {
			return nil, invalid("The document has a field “"+e.Key+"” that begins like an operator.", "To change named fields, use update_one.")
		}
	}
	return doc, nil
}

// named begins a change of one document.
func named(l *direct.Link, a direct.Arguments) (c change, err error) {
	if c.place, err = placeOf(l, a); err != nil {
		return c, err
	}
	if c.id, err = idArgument(a); err != nil {
		return c, err
	}
	if c.only, err = objectArgument(a, "only_if"); err != nil {
		return c, err
	}
	return c, harmless(c.only)
}

// query matches the one document, if it is still as the call demands.
func (c change) query() bson.D {
	q := bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: c.id}}}}
	if len(c.only) > 0 {
		q = bson.D{{Key: "$and", Value: bson.A{q, c.only}}}
	}
	return q
}

func (c change) update(u any) bson.D {
	return bson.D{{Key: "update", Value: c.collection}, {Key: "updates", Value: bson.A{bson.D{{Key: "q", Value: c.query()}, {Key: "u", Value: u}, {Key: "upsert", Value: false}, {Key: "multi", Value: false}}}}}
}

func updates(l *direct.Link, a direct.Arguments) (change, error) {
	c, err := named(l, a)
	if err != nil {
		return c, err
	}
	u, err := objectArgument(a, "update")
	if err != nil {
		return c, err
	}
	c.verb, c.command = "changed", c.update(u)
	c.after = func(before bson.D) (bson.D, bool) { return applied(before, u) }
	return c, update(u)
}

func replaces(l *direct.Link, a direct.Arguments) (change, error) {
	c, err := named(l, a)
	if err != nil {
		return c, err
	}
	doc, err := document(a)
	if err != nil {
		return c, err
	}
	if has(doc, "_id") {
		return c, invalid("The new document keeps the _id of the old one, so it has none of its own.", "Leave _id out.")
	}
	c.verb, c.command = "replaced", c.update(doc)
	c.after = func(bson.D) (bson.D, bool) { return append(bson.D{{Key: "_id", Value: c.id}}, doc...), true }
	return c, nil
}

func deletes(l *direct.Link, a direct.Arguments) (change, error) {
	c, err := named(l, a)
	c.verb = "deleted"
	c.command = bson.D{{Key: "delete", Value: c.collection}, {Key: "deletes", Value: bson.A{bson.D{{Key: "q", Value: c.query()}, {Key: "limit", Value: 1}}}}}
	c.after = func(bson.D) (bson.D, bool) { return nil, true }
	return c, err
}

// standing is the document with the _id of a change; nil where there is none. Only with matching it has to be as the call demands.
func (c change) standing(ctx context.Context, l *direct.Link, matching bool) (bson.D, error) {
	q := bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: c.id}}}}
	if matching {
		q = c.query()
	}
	raw, err := ask(ctx, l, c.database, bson.D{{Key: "find", Value: c.collection}, {Key: "filter", Value: q}, {Key: "limit", Value: 1}, {Key: "singleBatch", Value: true}})
	if err != nil {
		return nil, err
	}
	docs, _, err := batch(raw)
	if err != nil || len(docs) == 0 {
		return nil, err
	}
	var d bson.D
	return d, bson.Unmarshal(docs[0], &d)
}

// send looks at the document, sends the command once on a connection of its own, and judges.
func send(ctx context.Context, l *direct.Link, a direct.Arguments, m maker) action.Outcome {
	c, err := m(l, a)
	if err != nil {
		return direct.Unsent(err)
	}
	before, err := c.standing(ctx, l, true)
	if err != nil {
		return direct.Unsent(err)
	}
	if !c.insert && before == nil {
		return direct.Unsent(&direct.Refused{Words: nothingMatches})
	}
	e, err := l.Conn.Endpoint(role)
	if err != nil {
		return direct.Unsent(err)
	}
	w := &watch{raw: e.Raw}
	w.deadline, _ = egress.SendDeadline(ctx)
	reply, err := c.once(ctx, l, e, w)
	return c.judge(l, e.Login, w, reply, err, noteOf(c, before))
}

const nothingMatches = "No document has this _id and is as the call demands."

// once sends the command.
func (c change) once(ctx context.Context, l *direct.Link, e provider.Endpoint, w *watch) (bson.Raw, error) {
	ctx, cancel := within(ctx, l)
	defer cancel()
	client, err := connect(ctx, e, w, 1)
	if err != nil {
		return nil, err
	}
	defer func() { go disconnect(client) }()
	command := append(c.command[:len(c.command):len(c.command)], bson.E{Key: "writeConcern", Value: concern(e.Login)})
	return client.Database(c.database).RunCommand(ctx, command, options.RunCmd()).Raw()
}

// noteOf is what is kept of the document before the write, for the look afterwards: digests, no content. An _id that was drawn for the
// occasion follows from the action and needs no keeping.
func noteOf(c change, before bson.D) string {
	was, will := "none", "unknown"
	if before != nil {
		was = digestOf(before)
	}
	if after, known := c.after(before); known && after == nil {
		will = "none"
	} else if known {
		will = digestOf(after)
	}
	return was + " " + will
}

// preview is the document as it is, and as the write would leave it now.
func preview(ctx context.Context, l *direct.Link, a direct.Arguments, m maker) (provider.Preview, error) {
	c, err := m(l, a)
	if f, ok := fault.As(err); ok {
		return provider.Preview{Sentence: f.What + " It will be refused, and nothing will be sent."}, nil
	}
	if err != nil {
		return provider.Preview{}, err
	}
	before, err := c.standing(ctx, l, true)
	if err != nil {
		return provider.Preview{}, err
	}
	switch {
	case c.insert && before != nil:
		return provider.Preview{Sentence: "A document with this _id is there already. The database will refuse another.", Before: redacted(l, before)}, nil
	case !c.insert && before == nil:
		return provider.Preview{Sentence: nothingMatches + " As it is now, nothing would be changed."}, nil
	}
	v := provider.Preview{}
	if before != nil {
		v.Before = redacted(l, before)
	}
	after, known := c.after(before)
	if v.Computed = known; known && after != nil {
		v.After = redacted(l, after)
	}
	v.Sentence = c.foresees(known, v.Before != "" && v.Before == v.After)
	return v, nil
}

func (c change) foresees(known, same bool) string {
	switch {
	case c.insert:
		return "No document with this _id is there. This one will be added."
	case c.verb == "deleted":
		return "This document will be gone."
	case !known:
		return "This document will be changed by the operators above; what they make of it is not worked out here."
	case same:
		return "This document is already as the call would leave it."
	}
	return "This document will be changed as marked."
}

// mostDrawn bounds what a page draws of one document, which may have 16 MiB.
const mostDrawn = 64 << 10

func redacted(l *direct.Link, doc bson.D) string {
	e, err := l.Conn.Endpoint(role)
	if err != nil {
		return ""
	}
	text := string(e.Login.Redact([]byte(drawn(doc))))
	if len(text) > mostDrawn {
		text = strings.ToValidUTF8(text[:mostDrawn], "") + "\n[The rest of the document is not drawn: it has " + strconv.Itoa(len(text)) + " bytes.]"
	}
	return text
}
