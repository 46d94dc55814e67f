package agent

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"countersign/internal/canonical"
)

var texts = []string{
	`{}`, `[]`, `7`, `"x"`, `null`, ` { "a" : [ 1 , true , null ] } `, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":{"b":1,"b":2}}`, `{"":1,"":2}`,
	`{"a":"\ud83d\ude00"}`, `{"a":"\ud83d"}`, `{"a":"\ude00"}`, `{"a":"\ud83d\ud83d"}`, `{"a":"\ud83dx"}`, `{"a":"\\ud83d"}`, `{"a":"\u12"}`, `{"a":"\q"}`, `{"a":"\`, `{"a":"\"`, `{"a":"x`,
	"{\"a\":\"\xff\"}", "{\"a\":\"\xed\xa0\x80\"}", "{\"a\":\"\x01\"}", "{\"\xff\":1}", `{"a":01}`, `{"a":1.}`, `{"a":-}`, `{"a":1e}`, `{"a":1e+5}`, `{"a":-0.10E-2}`, `{"a":1}x`, `{"a":1,}`, `{,}`, `{"a"}`, `{a:1}`, `[1,]`, `[1 2]`, `tru`, `nullx`, ``, ` `, `{`, `"\u0000"`,
	strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 65) + strings.Repeat("]", 65), strings.Repeat(`{"a":`, 64) + `1` + strings.Repeat(`}`, 64), strings.Repeat("[", 10_000),
	`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1,"o":1,"p":1,"q":1,"a":1}`,
}

// sameVerdict holds the walk to the careful reader, and to what a decoder finds.
func sameVerdict(t *testing.T, raw []byte) {
	members, ok, err := object(raw)
	if careful := canonical.Check(raw); (err == nil) != (careful == nil) {
		t.Fatalf("%.200q: %v, the careful reader says %v", raw, err, careful)
	}
	if isObject := err == nil && bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")); ok != isObject {
		t.Fatalf("%.200q: object %t", raw, ok)
	}
	if !ok {
		return
	}
	var decoded map[string]json.RawMessage
	if err := json.Unmarshal(raw, &decoded); err != nil || len(decoded) != len(members) {
		t.Fatalf("%.200q: %d members, the decoder finds %d: %v", raw, len(members), len(decoded), err)
	}
	for name, want := range decoded {
		if got, ok := members.get(name); !ok || !bytes.Equal(got, want) {
			t.Fatalf("%.200q: %q is %q, the decoder says %q", raw, name, got, want)
		}
		var text string
		isText := want[0] == '"' && json.Unmarshal(want, &text) == nil
		if got, ok := members.text(name); ok != isText || got != text {
			t.Fatalf("%.200q: the text %q is %q, the decoder says %q", raw, name, got, text)
		}
	}
}

func TestTheWalkAcceptsWhatTheCarefulReaderAccepts(t *testing.T) {
	for _, raw := range texts {
		sameVerdict(t, []byte(raw))
		sameVerdict(t, []byte(`{"x":`+raw+`}`))
	}
}

func FuzzObject(f *testing.F) {
	for _, raw := range texts {
		f.Add([]byte(raw))
	}
	f.Fuzz(sameVerdict)
}
