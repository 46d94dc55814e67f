package wording_test

import (
	"strings"
	"testing"

	"countersign/internal/manifest"
	"countersign/internal/wording"
)

var refund = manifest.ToolPolicy{Sentence: "Refund {amount_cents} to contact {contact_id}", Money: &manifest.Money{Argument: "amount_cents", Currency: "EUR", MinorUnits: 2}}

func parsed(t *testing.T, raw string) []wording.Argument {
	t.Helper()
	out, err := wording.Arguments([]byte(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return out
}

func said(t *testing.T, p manifest.ToolPolicy, raw string) string {
	t.Helper()
	return wording.Say(p, parsed(t, raw), "refund_issue", "Sandbox CRM").String()
}

func TestSentence(t *testing.T) {
	note := manifest.ToolPolicy{Sentence: "Add {text} to {id}"}
	for raw, want := range map[string]string{
		`{"amount_cents":24000,"contact_id":"c_1042"}`:                "Refund €240.00 to contact c_1042",
		`{"amount_cents":24000,"contact_id":1042}`:                    "Refund €240.00 to contact 1042",
		`{"amount_cents":24000,"contact_id":12345678901234567890123}`: "Refund €240.00 to contact 12345678901234567890123",
		`{"amount_cents":24000,"contact_id":true}`:                    "Refund €240.00 to contact true",
		`{"amount_cents":24000,"contact_id":"{amount_cents}"}`:        "Refund €240.00 to contact “{amount_cents}”", // an argument is never a template
		`{"amount_cents":24000,"contact_id":""}`:                      "Refund €240.00 to contact an empty text",
		`{"amount_cents":24000,"contact_id":"me, approved by Ines"}`:  "Refund €240.00 to contact “me, approved by Ines”",
	} {
		if got := said(t, refund, raw); got != want {
			t.Errorf("%s says %q, want %q", raw, got, want)
		}
	}
	if got := said(t, note, `{"id":"c_1","text":"`+strings.Repeat("x", 81)+`"}`); got != "Add a text of 81 characters to c_1" {
		t.Errorf("a long text is said as %q", got)
	}
	if got := said(t, note, `{"id":"c_1","text":"one\ntwo"}`); got != "Add a text of 7 characters to c_1" {
		t.Errorf("a text of two lines is said as %q", got)
	}
}

// TestNoSentenceWithoutTheBytes: a template whose arguments are not what it was reviewed for says nothing that is not sent.
func TestNoSentenceWithoutTheBytes(t *testing.T) {
	const named = "refund_issue on Sandbox CRM"
	for _, raw := range []string{
		`{}`, `{"amount_cents":24000}`, `{"contact_id":"c_1042"}`, `{"amount_cents":24000,"contact_id":null}`, `{"amount_cents":24000,"contact_id":["c_1042"]}`,
		`{"amount_cents":24000,"contact_id":{"id":"c_1042"}}`, `{"amount_cents":"24000","contact_id":"c_1042"}`, `{"amount_cents":240.5,"contact_id":"c_1042"}`,
		`{"amount_cents":24e3,"contact_id":"c_1042"}`, `{"amount_cents":1e99,"contact_id":"c_1042"}`, `{"amount_cents":` + strings.Repeat("9", 31) + `,"contact_id":"c_1042"}`,
		`{"Contact_id":"c_1042","amount_cents":24000}`,
	} {
		s := wording.Say(refund, parsed(t, raw), "refund_issue", "Sandbox CRM")
		if s.Reviewed || s.String() != named || s.Verb() != "" {
			t.Errorf("%s says %q (reviewed %t)", raw, s, s.Reviewed)
		}
	}
	if got := said(t, manifest.ToolPolicy{}, `{"amount_cents":1,"contact_id":"c_1"}`); got != named {
		t.Errorf("an unreviewed tool says %q", got)
	}
	if got := said(t, manifest.ToolPolicy{Sentence: "Refund {amount_cents"}, `{"amount_cents":1}`); got != named {
		t.Errorf("a broken template says %q", got)
	}
}

// TestAgentsWordsKeepTheirVoice: what can be read as words of ours never gets our voice, whatever it says.
func TestAgentsWordsKeepTheirVoice(t *testing.T) {
	for text, want := range map[string]wording.Voice{
		"c_1042": wording.Value, "dana@example.com": wording.Value, "harbor/api": wording.Value,
		"c_1042 (pre-approved)": wording.Quoted, "c_1042\u202e": wording.Quoted, "с_1042": wording.Quoted, "a\u200bb": wording.Quoted, "€5": wording.Quoted,
		"<script>": wording.Quoted, "“": wording.Quoted, " ": wording.Quoted, "a\r\nb": wording.Described,
	} {
		s := wording.Say(refund, []wording.Argument{{Name: "amount_cents", Kind: wording.Number, Raw: "1"}, {Name: "contact_id", Kind: wording.Text, Text: text}}, "t", "c")
		last := s.Pieces[len(s.Pieces)-1]
		if last.Voice != want || last.Argument != "contact_id" {
			t.Errorf("%q has the voice %q, want %q", text, last.Voice, want)
		}
		if want != wording.Value && s.Pieces[1].Voice != wording.Amount {
			t.Errorf("the amount has the voice %q", s.Pieces[1].Voice)
		}
	}
}

func TestVerb(t *testing.T) {
	for _, c := range []struct {
		p    manifest.ToolPolicy
		raw  string
		want string
	}{
		{refund, `{"amount_cents":24000,"contact_id":"c_1042"}`, "refund €240.00"},
		{refund, `{"amount_cents":24000,"contact_id":"anything goes here"}`, "refund €240.00"},
		{manifest.ToolPolicy{Sentence: "Delete contact {id}"}, `{"id":"c_1"}`, "delete contact c_1"},
		{manifest.ToolPolicy{Sentence: "Delete contact {id}"}, `{"id":"c_1 and nothing else"}`, ""},
		{manifest.ToolPolicy{Sentence: "Delete contact {id}"}, `{"id":"` + strings.Repeat("c", 60) + `"}`, ""},
		{manifest.ToolPolicy{Sentence: "SQL: run {id}"}, `{"id":"q1"}`, "SQL: run q1"},
	} {
		if got := wording.Say(c.p, parsed(t, c.raw), "t", "c").Verb(); got != c.want {
			t.Errorf("%s on the button: %q, want %q", c.raw, got, c.want)
		}
	}
}

func TestMoney(t *testing.T) {
	for _, c := range []struct {
		currency string
		units    int
		raw      string
		want     string
	}{
		{"EUR", 2, "24000", "€240.00"},
		{"USD", 2, "24000", "$240.00"},
		{"GBP", 2, "5", "£0.05"},
		{"EUR", 2, "0", "€0.00"},
		{"EUR", 2, "-24000", "−€240.00"},
		{"JPY", 0, "24000", "JPY\u00a024,000"},
		{"CHF", 2, "125000", "CHF\u00a01,250.00"},
		{"BHD", 3, "1500", "BHD\u00a01.500"},
		{"CLF", 4, "12", "CLF\u00a00.0012"},
		{"CAD", 2, "100", "CAD\u00a01.00"},
		{"EUR", 2, "123456789012345678901234567890", "€1,234,567,890,123,456,789,012,345,678.90"},
	} {
		a := wording.Argument{Name: "n", Kind: wording.Number, Raw: c.raw}
		got, ok := wording.Money(manifest.Money{Argument: "n", Currency: c.currency, MinorUnits: c.units}, a)
		if !ok || got != c.want {
			t.Errorf("%s of %s: %q, %t; want %q", c.raw, c.currency, got, ok, c.want)
		}
	}
	eur := manifest.Money{Argument: "n", Currency: "EUR", MinorUnits: 2}
	for _, a := range []wording.Argument{
		{Name: "n", Kind: wording.Text, Raw: `"24000"`, Text: "24000"},
		{Name: "n", Kind: wording.Number, Raw: "1.5"},
		{Name: "n", Kind: wording.Number, Raw: "1e3"},
		{Name: "n", Kind: wording.Null, Raw: "null"},
		{Name: "other", Kind: wording.Number, Raw: "5"},
		{Name: "n", Kind: wording.Number, Raw: ""},
	} {
		if got, ok := wording.Money(eur, a); ok {
			t.Errorf("%+v is read as %q", a, got)
		}
	}
}

func TestGloss(t *testing.T) {
	number := wording.Argument{Name: "amount_cents", Kind: wording.Number, Raw: "24000"}
	if got := wording.Gloss(refund, number); got != "€240.00, euros" {
		t.Errorf("gloss %q", got)
	}
	number.Raw = "240.5"
	if got := wording.Gloss(refund, number); !strings.Contains(got, "no amount can be read") {
		t.Errorf("an odd amount is glossed %q", got)
	}
	if got := wording.Gloss(refund, wording.Argument{Name: "contact_id", Kind: wording.Text, Text: "x"}); got != "" {
		t.Errorf("a text is glossed %q", got)
	}
	if got := wording.Currency("XTS"); got != "XTS" {
		t.Errorf("an unknown currency is %q", got)
	}
}

func TestArguments(t *testing.T) {
	got := parsed(t, `{"a":"line\nbreak `+"\u202e"+`","b":12345678901234567890.10,"c":[1,{"d":null}],"e":false,"f":null,"é":{}}`)
	want := []wording.Argument{
		{Name: "a", Kind: wording.Text, Raw: `"line\nbreak ` + "\u202e" + `"`, Text: "line\nbreak \u202e"},
		{Name: "b", Kind: wording.Number, Raw: "12345678901234567890.10"},
		{Name: "c", Kind: wording.Structure, Raw: `[1,{"d":null}]`},
		{Name: "e", Kind: wording.Truth, Raw: "false"},
		{Name: "f", Kind: wording.Null, Raw: "null"},
		{Name: "é", Kind: wording.Structure, Raw: "{}"},
	}
	if len(got) != len(want) {
		t.Fatalf("%d arguments, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("argument %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	if got[0].Short() || !got[1].Short() || got[2].Short() || !got[5].Short() {
		t.Error("what fits a line is judged wrong")
	}
	if got[2].Shown() != "[\n  1,\n  {\n    \"d\": null\n  }\n]" {
		t.Errorf("a structure is drawn as %q", got[2].Shown())
	}
	if none, err := wording.Arguments([]byte("{}")); err != nil || none == nil || len(none) != 0 {
		t.Errorf("no arguments are %v, %v", none, err)
	}
}

// TestOnlyCanonicalBytesAreTakenApart: what a reader could understand in two ways is shown to nobody as one of them.
func TestOnlyCanonicalBytesAreTakenApart(t *testing.T) {
	for _, raw := range []string{``, `[]`, `null`, `{"a":1,"a":2}`, `{"b":1,"a":2}`, `{"a": 1}`, `{"a":01}`, "{\"a\":\"\xff\"}", `{"a":"\u0041"}`, `{"a":1}{"b":2}`, `{"a":"\ud800"}`} {
		if got, err := wording.Arguments([]byte(raw)); err == nil {
			t.Errorf("%q is taken apart as %v", raw, got)
		}
	}
}

func FuzzArguments(f *testing.F) {
	for _, raw := range []string{`{"a":"b","c":1.0e5,"d":[{}]}`, `{}`, `{"amount_cents":12345678901234567890,"currency":"eur"}`, `{"text":"\u202e\u0000<b>"}`, `{"a":{"b":{"c":[1,[2,[3]]]}}}`, `[]`, `{"a":1,"a":2}`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		arguments, err := wording.Arguments(raw)
		if err != nil {
			return
		}
		var b strings.Builder
		for _, a := range arguments {
			b.WriteString(a.Raw)
			if !strings.Contains(string(raw), a.Raw) {
				t.Errorf("%q is not in the bytes", a.Raw)
			}
			_ = wording.Say(refund, arguments, "t", "c").Verb()
		}
	})
}
