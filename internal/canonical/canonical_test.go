package canonical

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"countersign/internal/fault"
)

func TestCanonicalForms(t *testing.T) {
	for src, want := range map[string]string{
		` { "b" : 1 , "a" : [ ] , "c" : { } } `:                         `{"a":[],"b":1,"c":{}}`,
		`{"big":12345678901234567890,"f":1.0,"e":1E+2,"z":-0,"s":0.10}`: `{"big":12345678901234567890,"e":1E+2,"f":1.0,"s":0.10,"z":-0}`,
		`"\u0041\u00e9\/\b\f\n\r\t\"\\\u0000\u001F"`:                    `"Aé/\b\f\n\r\t\"\\\u0000\u001f"`,
		`"\uD83D\uDE00"`:    `"😀"`,
		`"<&>\u2028\u007f"`: "\"<&>\u2028\u007f\"",
		// RFC 8785, 3.2.3: names are ordered by UTF-16 code units, which puts U+1F600 before U+FB33.
		`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`: "{\"\\r\":2,\"1\":4,\"\u0080\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\ufb33\":3}",
		`{"a":null,"A":true,"":false}`: `{"":false,"A":true,"a":null}`,
		`[[[]],{"x":{"y":[1,2 ,3]}}]`:  `[[[]],{"x":{"y":[1,2,3]}}]`,
	} {
		got, err := Canonicalize([]byte(src))
		if err != nil || string(got) != want {
			t.Errorf("%s\n got %s %v\nwant %s", src, got, err, want)
		}
	}
}

func TestWhatTwoReadersCouldReadDifferentlyIsRefused(t *testing.T) {
	for _, src := range []string{
		"", " ", "{", "[", `"`, `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `[,1]`, `{a:1}`, `{'a':1}`, "tru", "nul", "True", "NaN", "Infinity", "-Infinity", "-", "+1", "01", "-01",
		"1.", ".1", "1e", "1e+", "0x1", "1 2", `{} {}`, `{}x`, "// c\n1", "[1 2]", `{"a" 1}`, "\ufeff1",
		`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"x":[{"b":1,"c":2,"b":1}]}`,
		"\"\xff\"", "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "{\"\xff\":1}", `"\ud800"`, `"\udc00"`, `"\ud800x"`, `"\ud800\u0041"`, `"\ude00\ud83d"`,
		"\"\n\"", "\"\x00\"", `"\x41"`, `"\u12"`, `"\u12g4"`, `"\`, "1\x00",
	} {
		if got, err := Canonicalize([]byte(src)); !fault.Is(err, fault.InvalidArguments) {
			t.Errorf("%q became %q, %v", src, got, err)
		}
	}
}

func TestBounds(t *testing.T) {
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if err := Check(deep(DefaultDepth)); err != nil {
		t.Error(err)
	}
	if err := Check(deep(DefaultDepth + 1)); err == nil {
		t.Error("too deep a text was accepted")
	}
	if _, err := (Limits{Depth: 2}).Canonicalize([]byte(`{"a":{"b":1}}`)); err != nil {
		t.Error(err)
	}
	if _, err := (Limits{Depth: 2}).Canonicalize([]byte(`{"a":[{}]}`)); err == nil {
		t.Error("too deep a text was accepted")
	}
	if _, err := (Limits{Bytes: 4}).Canonicalize([]byte(`[1,2]`)); !fault.Is(err, fault.CodeTooLarge) {
		t.Error(err)
	}
	if err := Check(bytes.Repeat([]byte("["), 1<<20)); err == nil {
		t.Error("a million brackets were accepted")
	}
}

func TestObjectLeavesTopLevelMembersOut(t *testing.T) {
	got, err := Object([]byte(`{"_meta":{"x":1},"name":"a","icons":[],"deep":{"_meta":2}}`), "_meta", "icons")
	if err != nil || string(got) != `{"deep":{"_meta":2},"name":"a"}` {
		t.Errorf("%s %v", got, err)
	}
	for _, src := range []string{`[]`, `"a"`, `1`, `null`} {
		if _, err := Object([]byte(src)); err == nil {
			t.Errorf("%s is an object", src)
		}
	}
	if got, err := Object([]byte(`{}`)); err != nil || string(got) != `{}` {
		t.Errorf("%s %v", got, err)
	}
}

func TestAFaultQuotesNothing(t *testing.T) {
	_, err := Canonicalize([]byte(`{"password":"hunter2","password":"hunter3"}`))
	if err == nil || strings.Contains(err.Error(), "hunter") || strings.Contains(err.Error(), "password") {
		t.Error(err)
	}
}

func FuzzCanonicalize(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":[true,null,"x\u0041"]}`, `{"é":1,"e\n":{"\ud83d\ude00":[],"\ufb33":{}},"eé":false,"e":"é\"","":"\\"}`, `[1e9,-0.0,12345678901234567890]`, `"\ud83d\ude00"`, `{"a":1,"a":2}`, "\xff", `[[[[]]]]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		form, err := Canonicalize(src)
		if err != nil {
			return
		}
		if !json.Valid(src) {
			t.Fatalf("%q is not JSON and became %q", src, form)
		}
		again, err := Canonicalize(form)
		if err != nil || !bytes.Equal(again, form) {
			t.Fatalf("%q is not stable: %q %v", form, again, err)
		}
		var a, b any
		if decode(src, &a) != nil || decode(form, &b) != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%q and %q mean different things", src, form)
		}
		for _, text := range [][]byte{src, form} {
			if said, err := Decode(text); err != nil || !reflect.DeepEqual(said, a) {
				t.Fatalf("%q says %v, and was read as %v, %v", text, a, said, err)
			}
		}
	})
}

// decode keeps numbers as written, so that equal values mean equal texts.
func decode(b []byte, into *any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(into)
}
