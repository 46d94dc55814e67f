package mongodb

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"countersign/internal/egress"
	"countersign/internal/provider/direct"
)

// Bounds of one page.
const (
	usualPage = 20
	mostPage  = 200
	mostSkip  = 1_000_000
)

// A cursor says where the next page begins and which call it belongs to. Nothing is kept at the server between pages; what is inserted or
// deleted meanwhile may move the border by as much.

// question is the digest of what a call asks, without where in it.
func question(tool string, a direct.Arguments) [8]byte {
	h := sha256.New()
	h.Write([]byte(tool))
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if name != "cursor" && name != "limit" {
			h.Write([]byte("\x00" + name + "\x00"))
			h.Write(a[name])
		}
	}
	return [8]byte(h.Sum(nil)[:8])
}

func cursorAt(tool string, a direct.Arguments, skip int64) string {
	q := question(tool, a)
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(q[:], uint64(skip)))
}

// skipOf is where the page of a call begins.
func skipOf(tool string, a direct.Arguments) (int64, error) {
	if !a.Has("cursor") {
		return 0, nil
	}
	q := question(tool, a)
	raw, err := base64.RawURLEncoding.DecodeString(a.Text("cursor"))
	if err != nil || len(raw) != 16 || [8]byte(raw[:8]) != q {
		return 0, invalid("The cursor belongs to another call.", "Give next_cursor of a page together with the very same other arguments.")
	}
	skip := binary.BigEndian.Uint64(raw[8:])
	if skip > mostSkip {
		return 0, invalid("The page lies too deep.", "Narrow the filter.")
	}
	return int64(skip), nil
}

// page brings documents within the bounds of an answer. The first is always there; the bound of the connection deals with one that is too
// large by itself.
func page(l *direct.Link, login egress.Login, tool string, a direct.Arguments, docs []bson.Raw, skip, limit int64) (direct.Answer, error) {
	room := l.Conn.Settings.MaxResult/2 - 4<<10 // an answer stands twice in a result: as a structure and as text
	kept := []json.RawMessage{}
	more := false
	for i, d := range docs {
		raw, err := shown(d)
		if err != nil {
			return direct.Answer{}, err
		}
		if room -= len(raw) + 1; int64(i) == limit || room < 0 && i > 0 {
			more = true
			break
		}
		kept = append(kept, login.Redact(raw))
	}
	out := map[string]any{"documents": kept, "count": len(kept)}
	if more {
		out["next_cursor"] = cursorAt(tool, a, skip+int64(len(kept)))
	}
	return direct.Answer{Structured: out}, nil
}

// batch is the first batch of a command's cursor.
func batch(raw bson.Raw) ([]bson.Raw, int64, error) {
	var reply struct {
		Cursor struct {
			ID         int64      `bson:"id"`
			FirstBatch []bson.Raw `bson:"firstBatch"`
		} `bson:"cursor"`
	}
	err := bson.Unmarshal(raw, &reply)
	return reply.Cursor.FirstBatch, reply.Cursor.ID, err
}
