package mongodb

import (
	"regexp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"countersign/internal/provider/direct"
)

// inner are databases of the server itself: users, replication, settings.
var inner = []string{"admin", "local", "config", "$external"}

// place is the collection a call names, inside the connection's bounds.
type place struct{ database, collection string }

func placeOf(l *direct.Link, a direct.Arguments) (place, error) {
	p := place{a.Text("database"), a.Text("collection")}
	if err := withinDatabase(l, p.database); err != nil {
		return p, err
	}
	return p, withinCollection(l, p.collection)
}

func withinDatabase(l *direct.Link, name string) error {
	if bound := l.Setting(DatabaseSetting); bound != "" && name != bound || slices.Contains(inner, name) {
		return outside("databases")
	}
	return nil
}

// withinCollection holds a name to the connection's own collections. The system's are nobody's: users and views are kept there.
func withinCollection(l *direct.Link, name string) error {
	if strings.HasPrefix(name, "system.") || !bounded(l, name) {
		return outside("collections")
	}
	return nil
}

func bounded(l *direct.Link, name string) bool {
	bound := l.Setting(CollectionsSetting)
	return bound == "" || slices.Contains(strings.FieldsFunc(bound, func(r rune) bool { return r == ',' || r == ' ' }), name)
}

// stages are all that a pipeline may hold. $out and $merge write; $currentOp, $listSessions, $changeStream and their like show or hold
// what belongs to the server.
var stages = []string{
	"$addFields", "$bucket", "$bucketAuto", "$count", "$densify", "$facet", "$fill", "$geoNear", "$graphLookup", "$group", "$limit", "$lookup", "$match",
	"$project", "$redact", "$replaceRoot", "$replaceWith", "$sample", "$search", "$searchMeta", "$set", "$setWindowFields", "$skip", "$sort", "$sortByCount",
	"$unionWith", "$unset", "$unwind", "$vectorSearch",
}

// never is refused wherever it stands: what writes, and what runs JavaScript at the server.
var never = []string{"$out", "$merge", "$where", "$function", "$accumulator", "mapReduce", "mapreduce", "$code", "$scope"}

// harmless looks through a filter, an update or a pipeline, to whatever depth.
func harmless(v any) error {
	switch x := v.(type) {
	case bson.D:
		for _, e := range x {
			if slices.Contains(never, e.Key) {
				return invalid("“"+e.Key+"” is not taken: it writes, or runs a program at the server.", "Use other operators.")
			}
			if err := harmless(e.Value); err != nil {
				return err
			}
		}
	case bson.A:
		for _, e := range x {
			if err := harmless(e); err != nil {
				return err
			}
		}
	case bson.JavaScript, bson.CodeWithScope:
		return invalid("JavaScript is not taken: it would run at the server.", "Use operators.")
	}
	return nil
}

// pipeline holds every stage to the list, and every collection that a stage reads to the connection's bounds.
func pipeline(l *direct.Link, list bson.A) error {
	if err := harmless(list); err != nil {
		return err
	}
	for _, s := range list {
		stage, ok := s.(bson.D)
		if !ok || len(stage) != 1 {
			return invalid("Each stage of a pipeline is an object with one member.", "Write it like {\"$match\": {…}}.")
		}
		if !slices.Contains(stages, stage[0].Key) {
			return invalid("The stage “"+stage[0].Key+"” is not taken.", "Use "+strings.Join(stages[:6], ", ")+" or another stage that only reads this database.")
		}
		if err := stageReads(l, stage[0].Key, stage[0].Value); err != nil {
			return err
		}
	}
	return nil
}

// stageReads looks at what a stage reads besides the collection of the call.
func stageReads(l *direct.Link, name string, value any) error {
	if text, ok := value.(string); ok && name == "$unionWith" {
		return withinCollection(l, text)
	}
	inside, _ := value.(bson.D)
	switch name {
	case "$facet":
		for _, e := range inside {
			if err := nested(l, e.Value); err != nil {
				return err
			}
		}
	case "$lookup", "$graphLookup", "$unionWith":
		for _, e := range inside {
			switch e.Key {
			case "from", "coll":
				from, ok := e.Value.(string) // an object would name another database
				if !ok {
					return outside("databases")
				}
				if err := withinCollection(l, from); err != nil {
					return err
				}
			case "pipeline":
				if err := nested(l, e.Value); err != nil {
					return err
				}
			case "db":
				return outside("databases")
			}
		}
	}
	return nil
}

func nested(l *direct.Link, v any) error {
	list, ok := v.(bson.A)
	if !ok {
		return invalid("A pipeline inside a stage is a list.", "Write it like [{\"$match\": {…}}].")
	}
	return pipeline(l, list)
}

// operators of an update. Each changes named fields of one document; a pipeline as an update is not offered.
var operators = []string{"$addToSet", "$bit", "$currentDate", "$inc", "$max", "$min", "$mul", "$pop", "$pull", "$pullAll", "$push", "$rename", "$set", "$unset"}

func update(u bson.D) error {
	if err := harmless(u); err != nil {
		return err
	}
	if len(u) == 0 {
		return invalid("The update changes nothing.", "Give at least one operator, like {\"$set\": {…}}.")
	}
	for _, e := range u {
		fields, ok := e.Value.(bson.D)
		switch {
		case !slices.Contains(operators, e.Key):
			return invalid("“"+e.Key+"” is no operator that an update takes.", "Use "+strings.Join(operators, ", ")+"; to write a whole document, replace it.")
		case !ok || len(fields) == 0:
			return invalid("“"+e.Key+"” names no fields.", "Write it like {\"$set\": {\"city\": \"Bergen\"}}.")
		}
		for _, f := range fields {
			if f.Key == "_id" || strings.HasPrefix(f.Key, "_id.") {
				return invalid("The _id of a document cannot change.", "Insert another document.")
			}
		}
	}
	return nil
}

var objectID = regexp.MustCompile(`^[0-9a-f]{24}$`)
