package mcpclient

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"countersign/internal/provider"
)

// A result over the bound is not refused: the agent gets fewer whole items and is told so, with what to do about it.

// markerRoom is kept free for the sentence that says what was left out.
const markerRoom = 512

// Bounded brings a tool result that our own code made into at most limit bytes, as the result of a server would be.
func Bounded(result json.RawMessage, limit int) (provider.Result, error) {
	s, r := scanner{b: result}, toolResult{}
	if _, err := s.result(&r); err != nil || r.odd {
		return provider.Result{}, provider.Upstream("The result cannot be read.", err)
	}
	r.size = len(result)
	return r.deliver(limit)
}

// leastLimit is the smallest bound under which a useful answer is possible.
const leastLimit = 2 * markerRoom

const cutMark = "\n[cut here by Countersign]"

// within returns the result with as many whole items as fit into limit, and a last item that says what is missing.
func (r toolResult) within(limit int) (toolResult, error) {
	if limit < leastLimit {
		return r, provider.TooLarge(nil)
	}
	out := toolResult{size: r.size, errorFlag: r.errorFlag}
	room := limit - markerRoom - frame
	var notes []string
	if s := r.structured; s != nil {
		share := room
		if len(r.items) > 0 {
			share = room / 2
		}
		if len(s) > share {
			var note string
			s, note = shrink(s, share)
			notes = append(notes, "structured content: "+note)
		}
		out.structured = s
		room -= len(s)
	}
	for _, item := range r.items {
		if len(item)+1 > room {
			item, note := shrinkItem(item, room-1)
			if item != nil {
				out.items = append(out.items, item)
				notes = append(notes, note)
			}
			if rest := len(r.items) - len(out.items); rest > 0 {
				notes = append(notes, fmt.Sprintf("%d of %d items left out", rest, len(r.items)))
			}
			break
		}
		out.items = append(out.items, item)
		room -= len(item) + 1
	}
	marker, err := textItem(fmt.Sprintf("[Countersign: this result was %d bytes, over the limit of %d. %s. To see the rest, ask for less at once: a filter, a smaller page, fewer fields.]",
		r.size, limit, strings.Join(notes, "; ")))
	if err != nil {
		return r, err
	}
	out.items = append(out.items, marker)
	return out, nil
}

func textItem(s string) ([]byte, error) {
	quoted, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return []byte(`{"type":"text","text":` + string(quoted) + `}`), nil
}

// shrinkItem makes a text item fit; other kinds have no meaningful part and go.
func shrinkItem(item []byte, room int) (smaller []byte, note string) {
	s, ok := textOf(item)
	room -= len(`{"type":"text","text":}`)
	if !ok || room < markerRoom {
		return nil, ""
	}
	// The text of many tools is JSON: fewer whole records are worth more than a text that ends in the middle of one.
	if t := []byte(s); isContainer(t) {
		// Quoted inside the item every quote takes two bytes, so the room is found by trying.
		for share := room; share > markerRoom; share = share * 3 / 4 {
			part, note := shrink(t, share)
			if part == nil {
				break
			}
			if quoted, err := textItem(string(part)); err == nil && len(quoted) <= room {
				return quoted, note
			}
		}
	}
	for keep := min(room, len(s)); keep > 0; keep = keep * 3 / 4 {
		part := cutText(s, keep)
		if quoted, err := textItem(part + cutMark); err == nil && len(quoted) <= room {
			return quoted, fmt.Sprintf("the first %d of %d bytes of a text are shown", len(part), len(s))
		}
	}
	return nil, ""
}

func isContainer(b []byte) bool {
	s := scanner{b: b}
	c := s.next()
	return (c == '{' || c == '[') && s.skip() == nil && s.end()
}

// cutText cuts after the last whole line, or character where lines are long.
func cutText(s string, keep int) string {
	s = s[:keep]
	if i := strings.LastIndexByte(s, '\n'); i > keep/2 {
		return s[:i]
	}
	for len(s) > 0 && !utf8.ValidString(s[max(0, len(s)-utf8.UTFMax):]) {
		s = s[:len(s)-1]
	}
	return s
}

// shrink makes a JSON array or object fit by keeping fewer whole elements of its largest array. Nil means that there is none.
func shrink(b []byte, room int) (smaller []byte, note string) {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) <= room:
		return b, "complete"
	case len(b) > 0 && b[0] == '[':
		return shrinkArray(b, room)
	case len(b) > 0 && b[0] == '{':
		return shrinkObject(b, room)
	}
	return nil, "left out"
}

func shrinkArray(b []byte, room int) ([]byte, string) {
	out := append(make([]byte, 0, room), '[')
	kept, total := 0, 0
	full := false
	err := elements(b, func(value []byte) error {
		total++
		if full = full || len(out)+len(value)+2 > room; full {
			return nil
		}
		if kept > 0 {
			out = append(out, ',')
		}
		out = append(out, value...)
		kept++
		return nil
	})
	if err != nil || kept == 0 {
		return nil, "left out"
	}
	return append(out, ']'), fmt.Sprintf("the first %d of %d are shown", kept, total)
}

func shrinkObject(b []byte, room int) ([]byte, string) {
	var largest, name []byte
	err := members(b, func(key, value []byte) error {
		if len(value) > len(largest) {
			largest, name = value, key
		}
		return nil
	})
	if err != nil || largest == nil {
		return nil, "left out"
	}
	part, note := shrink(largest, room-(len(b)-len(largest)))
	if part == nil {
		return nil, "left out"
	}
	out, err := rebuild(b, func(key, value []byte) ([]byte, error) {
		if bytes.Equal(key, name) {
			return part, nil
		}
		return value, nil
	})
	if err != nil || len(out) > room {
		return nil, "left out"
	}
	return out, fmt.Sprintf("of “%s” %s", clip(string(name), 40), note)
}
