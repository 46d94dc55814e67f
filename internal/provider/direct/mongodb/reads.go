package mongodb

import (
	"cmp"
	"context"
	"encoding/json"

	"go.mongodb.org/mongo-driver/v2/bson"

	"countersign/internal/provider"
	"countersign/internal/provider/direct"
)

var (
	database   = direct.Field{Type: "string", Description: "The database.", Pattern: `^[A-Za-z0-9_-]{1,63}$`}
	collection = direct.Field{Type: "string", Description: "The collection.", Pattern: `^[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}$`}
	filter     = direct.Free("Which documents, as in MongoDB's find, in extended JSON: {\"status\": \"open\", \"_id\": {\"$oid\": \"…\"}}. All of them when it is left out.")
	stageList  = direct.ListOf("The stages, in extended JSON. Those that only read are taken, 200 documents a page at most.", direct.Free("One stage."), 40)
	limit      = direct.Number("How many documents a page, 20 when left out.", 1, mostPage)
	cursor     = direct.Text("next_cursor of the page before, with the same other arguments.")
	sortBy     = direct.Free("The order, like {\"created\": -1}. By _id when it is left out.")
	projection = direct.Free("Which fields, like {\"name\": 1}. All of them when it is left out.")
)

var pageOutput = direct.Object{Fields: map[string]direct.Field{
	"documents": {Type: "array", Items: &direct.Field{Type: "object"}}, "count": {Type: "integer"}, "next_cursor": {Type: "string", Description: "There where more follows."},
}, Required: []string{"documents", "count"}}

// on is the input of a tool for one collection.
func on(more map[string]direct.Field, required ...string) direct.Object {
	return direct.Object{Fields: map[string]direct.Field{"database": database, "collection": collection}, Required: []string{"database", "collection"}}.With(more, required...)
}

func reads() []direct.Tool {
	return []direct.Tool{
		{
			Name: "list_databases", Title: "List databases", Description: "Lists the databases that this connection reaches.", Role: role, Read: listDatabases,
		},
		{
			Name: "list_collections", Title: "List collections", Description: "Lists the collections of a database.", Role: role, Resource: "database",
			Input: direct.Object{Fields: map[string]direct.Field{"database": database}, Required: []string{"database"}}, Read: listCollections,
		},
		{
			Name: "list_indexes", Title: "List indexes", Description: "Lists the indexes of a collection.", Role: role, Resource: "database", Input: on(nil), Read: listIndexes,
		},
		{
			Name: "find", Title: "Find documents", Role: role, Resource: "database", Output: pageOutput,
			Description: "Finds documents by a filter, page by page, as relaxed extended JSON.",
			Input:       on(map[string]direct.Field{"filter": filter, "sort": sortBy, "projection": projection, "limit": limit, "cursor": cursor}), Read: find,
		},
		{
			Name: "aggregate", Title: "Aggregate documents", Role: role, Resource: "database", Output: pageOutput,
			Description: "Runs a pipeline that only reads, page by page. Give a $sort where the order matters between pages.",
			Input:       on(map[string]direct.Field{"pipeline": stageList, "limit": limit, "cursor": cursor}, "pipeline"), Read: aggregate,
		},
		{
			Name: "count", Title: "Count documents", Description: "Counts the documents that a filter matches.", Role: role, Resource: "database",
			Input: on(map[string]direct.Field{"filter": filter}), Read: count,
		},
		{
			Name: "distinct", Title: "Distinct values", Description: "Lists the different values of a field.", Role: role, Resource: "database",
			Input: on(map[string]direct.Field{"field": {Type: "string", Description: "The field, with dots for fields inside others.", Pattern: `^[^$\s][^\s]{0,199}$`}, "filter": filter}, "field"), Read: distinct,
		},
		{
			Name: "explain", Title: "Explain a query", Role: role, Resource: "database",
			Description: "Shows how the server would find or aggregate documents, without running it. Give a filter or a pipeline.",
			Input:       on(map[string]direct.Field{"filter": filter, "sort": sortBy, "pipeline": stageList}), Read: explain,
		},
	}
}

// answered runs a command and shows what picks makes of the reply, without the password.
func answered(ctx context.Context, l *direct.Link, in string, command bson.D, picks func(bson.Raw) (any, error)) (direct.Answer, error) {
	raw, err := ask(ctx, l, in, command)
	if err != nil {
		return direct.Answer{}, err
	}
	v, err := picks(raw)
	if err != nil {
		return direct.Answer{}, provider.Upstream("The database's answer cannot be read.", quiet(err))
	}
	return scrubbed(l, v)
}

// scrubbed takes the password out of an answer.
func scrubbed(l *direct.Link, v any) (direct.Answer, error) {
	e, err := l.Conn.Endpoint(role)
	if err != nil {
		return direct.Answer{}, err
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return direct.Answer{}, err
	}
	return direct.Answer{Structured: json.RawMessage(e.Login.Redact(raw))}, nil
}

func listDatabases(ctx context.Context, l *direct.Link, _ direct.Arguments) (direct.Answer, error) {
	command := bson.D{{Key: "listDatabases", Value: 1}, {Key: "nameOnly", Value: true}, {Key: "authorizedDatabases", Value: true}}
	return answered(ctx, l, "admin", command, func(raw bson.Raw) (any, error) {
		var reply struct{ Databases []struct{ Name string } }
		err := bson.Unmarshal(raw, &reply)
		names := []string{}
		for _, d := range reply.Databases {
			if withinDatabase(l, d.Name) == nil {
				names = append(names, d.Name)
			}
		}
		return map[string]any{"databases": names}, err
	})
}

func listCollections(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
	if err := withinDatabase(l, a.Text("database")); err != nil {
		return direct.Answer{}, err
	}
	command := bson.D{{Key: "listCollections", Value: 1}, {Key: "nameOnly", Value: true}, {Key: "authorizedCollections", Value: true}, {Key: "cursor", Value: bson.D{{Key: "batchSize", Value: 1000}}}}
	return answered(ctx, l, a.Text("database"), command, func(raw bson.Raw) (any, error) {
		docs, _, err := batch(raw)
		found := []map[string]string{}
		for _, d := range docs {
			name, _ := d.Lookup("name").StringValueOK()
			kind, _ := d.Lookup("type").StringValueOK()
			if withinCollection(l, name) == nil {
				found = append(found, map[string]string{"name": name, "type": cmp.Or(kind, "collection")})
			}
		}
		return map[string]any{"collections": found}, err
	})
}

func listIndexes(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
	p, err := placeOf(l, a)
	if err != nil {
		return direct.Answer{}, err
	}
	return answered(ctx, l, p.database, bson.D{{Key: "listIndexes", Value: p.collection}}, func(raw bson.Raw) (any, error) {
		docs, _, err := batch(raw)
		return map[string]any{"indexes": shownAll(docs)}, err
	})
}

func shownAll(docs []bson.Raw) []json.RawMessage {
	out := []json.RawMessage{}
	for _, d := range docs {
		if raw, err := shown(d); err == nil {
			out = append(out, raw)
		}
	}
	return out
}

// matched is the checked filter of a call.
func matched(a direct.Arguments) (bson.D, error) {
	f, err := objectArgument(a, "filter")
	if err != nil {
		return nil, err
	}
	return f, harmless(f)
}

func find(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
	p, err := placeOf(l, a)
	if err != nil {
		return direct.Answer{}, err
	}
	command, err := findCommand(p, a)
	if err != nil {
		return direct.Answer{}, err
	}
	fields, err := objectArgument(a, "projection")
	if err != nil {
		return direct.Answer{}, err
	}
	if err := harmless(fields); err != nil {
		return direct.Answer{}, err
	}
	if len(fields) > 0 {
		command = append(command, bson.E{Key: "projection", Value: fields})
	}
	skip, err := skipOf("find", a)
	if err != nil {
		return direct.Answer{}, err
	}
	n := a.Int("limit", usualPage)
	// One more tells whether another page follows; a single batch leaves no cursor at the server.
	command = append(command, bson.E{Key: "skip", Value: skip}, bson.E{Key: "limit", Value: n + 1}, bson.E{Key: "batchSize", Value: n + 1}, bson.E{Key: "singleBatch", Value: true})
	return paged(ctx, l, p, "find", a, command, skip, n)
}

// findCommand orders by _id after whatever else, so that pages do not overlap.
func findCommand(p place, a direct.Arguments) (bson.D, error) {
	f, err := matched(a)
	if err != nil {
		return nil, err
	}
	order, err := objectArgument(a, "sort")
	if err != nil {
		return nil, err
	}
	if err := harmless(order); err != nil {
		return nil, err
	}
	if !has(order, "_id") {
		order = append(order, bson.E{Key: "_id", Value: 1})
	}
	return bson.D{{Key: "find", Value: p.collection}, {Key: "filter", Value: f}, {Key: "sort", Value: order}}, nil
}

func has(d bson.D, key string) bool {
	for _, e := range d {
		if e.Key == key {
			return true
		}
	}
	return false
}

func paged(ctx context.Context, l *direct.Link, p place, tool string, a direct.Arguments, command bson.D, skip, n int64) (direct.Answer, error) {
	e, err := l.Conn.Endpoint(role)
	if err != nil {
		return direct.Answer{}, err
	}
	raw, err := ask(ctx, l, p.database, command)
	if err != nil {
		return direct.Answer{}, err
	}
	docs, open, err := batch(raw)
	if err != nil {
		return direct.Answer{}, provider.Upstream("The database's answer cannot be read.", quiet(err))
	}
	if open != 0 { // the batch was full before the limit was reached: nothing is left open at the server
		_, _ = ask(ctx, l, p.database, bson.D{{Key: "killCursors", Value: p.collection}, {Key: "cursors", Value: bson.A{open}}})
	}
	return page(l, e.Login, tool, a, docs, skip, n)
}

func aggregate(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
	p, err := placeOf(l, a)
	if err != nil {
		return direct.Answer{}, err
	}
	list, err := stagesOf(l, a)
	if err != nil {
		return direct.Answer{}, err
	}
	skip, err := skipOf("aggregate", a)
	if err != nil {
		return direct.Answer{}, err
	}
	n := a.Int("limit", usualPage)
	if skip > 0 {
		list = append(list, bson.D{{Key: "$skip", Value: skip}})
	}
	list = append(list, bson.D{{Key: "$limit", Value: n + 1}})
	command := bson.D{{Key: "aggregate", Value: p.collection}, {Key: "pipeline", Value: list}, {Key: "cursor", Value: bson.D{{Key: "batchSize", Value: n + 2}}}}
	return paged(ctx, l, p, "aggregate", a, command, skip, n)
}

func stagesOf(l *direct.Link, a direct.Arguments) (bson.A, error) {
	list, err := listArgument(a, "pipeline")
	if err != nil {
		return nil, err
	}
	return list, pipeline(l, list)
}

func count(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
	p, err := placeOf(l, a)
	if err != nil {
		return direct.Answer{}, err
	}
	f, err := matched(a)
	if err != nil {
		return direct.Answer{}, err
	}
	// The count command may count wrongly on a sharded cluster; the same as a pipeline does not.
	list := bson.A{bson.D{{Key: "$match", Value: f}}, bson.D{{Key: "$group", Value: bson.D{{Key: "_id", Value: nil}, {Key: "n", Value: bson.D{{Key: "$sum", Value: 1}}}}}}}
	command := bson.D{{Key: "aggregate", Value: p.collection}, {Key: "pipeline", Value: list}, {Key: "cursor", Value: bson.D{}}}
	return answered(ctx, l, p.database, command, func(raw bson.Raw) (any, error) {
		docs, _, err := batch(raw)
		n := int64(0)
		if len(docs) > 0 {
			n, _ = docs[0].Lookup("n").AsInt64OK()
		}
		return map[string]any{"count": n}, err
	})
}

func distinct(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
	p, err := placeOf(l, a)
	if err != nil {
		return direct.Answer{}, err
	}
	f, err := matched(a)
	if err != nil {
		return direct.Answer{}, err
	}
	command := bson.D{{Key: "distinct", Value: p.collection}, {Key: "key", Value: a.Text("field")}, {Key: "query", Value: f}}
	return answered(ctx, l, p.database, command, func(raw bson.Raw) (any, error) {
		var reply struct{ Values bson.A }
		if err := bson.Unmarshal(raw, &reply); err != nil {
			return nil, err
		}
		const most = 1000
		all := len(reply.Values)
		values, err := shown(bson.D{{Key: "values", Value: reply.Values[:min(all, most)]}, {Key: "count", Value: all}})
		return values, err
	})
}

// explain asks how, and never to run it: with another verbosity the server would.
func explain(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
	p, err := placeOf(l, a)
	if err != nil {
		return direct.Answer{}, err
	}
	var inner bson.D
	if a.Has("pipeline") {
		list, err := stagesOf(l, a)
		if err != nil {
			return direct.Answer{}, err
		}
		inner = bson.D{{Key: "aggregate", Value: p.collection}, {Key: "pipeline", Value: list}, {Key: "cursor", Value: bson.D{}}}
	} else if inner, err = findCommand(p, a); err != nil {
		return direct.Answer{}, err
	}
	return answered(ctx, l, p.database, bson.D{{Key: "explain", Value: inner}, {Key: "verbosity", Value: "queryPlanner"}}, func(raw bson.Raw) (any, error) { return shown(raw) })
}
