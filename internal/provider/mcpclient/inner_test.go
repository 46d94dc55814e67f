package mcpclient

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"countersign/internal/provider"
)

func parsed(t *testing.T, raw string) toolResult {
	t.Helper()
	r, err := parseResult([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func parseResult(raw []byte) (toolResult, error) {
	a := answer{status: 200}
	text := append(append([]byte(`{"id":1,"result":`), raw...), '}')
	if err := a.parse(text, 1); err != nil {
		return toolResult{}, err
	}
	return a.checked()
}

func records(n int) string {
	var b strings.Builder
	b.WriteString(`[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"Zoë \"Z\" %d"}`, i, i)
	}
	return b.String() + `]`
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestALargeResultKeepsWholeItemsAndSaysWhatIsMissing(t *testing.T) {
	const limit = 8 << 10
	list := records(2000)
	for name, test := range map[string]struct{ raw, note string }{
		"records as text":        {`{"content":[{"type":"text","text":` + quoted(list) + `}]}`, "of 2000 are shown"},
		"records in an object":   {`{"content":[{"type":"text","text":` + quoted(`{"total":2000,"rows":`+list+`,"next":"c"}`) + `}]}`, "of “rows” the first"},
		"structured and text":    {`{"content":[{"type":"text","text":` + quoted(list) + `}],"structuredContent":{"rows":` + list + `}}`, "structured content: of “rows” the first"},
		"structured alone":       {`{"structuredContent":{"rows":` + list + `}}`, "structured content"},
		"lines":                  {`{"content":[{"type":"text","text":` + quoted(strings.Repeat("a line of a log file\n", 2000)) + `}]}`, "bytes of a text are shown"},
		"one long line":          {`{"content":[{"type":"text","text":` + quoted(strings.Repeat("ü", 20000)) + `}]}`, "bytes of a text are shown"},
		"a text of quotes":       {`{"content":[{"type":"text","text":` + quoted(strings.Repeat(`"`, 20000)) + `}]}`, "bytes of a text are shown"},
		"many items":             {`{"content":[` + strings.Repeat(`{"type":"text","text":"small"},`, 999) + `{"type":"text","text":"last"}]}`, "of 1000 items left out"},
		"an image":               {`{"content":[{"type":"text","text":"see"},{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("A", 20000) + `"}]}`, "1 of 2 items left out"},
		"structured of one blob": {`{"content":[{"type":"text","text":"see"}],"structuredContent":{"blob":"` + strings.Repeat("A", 20000) + `"}}`, "left out"},
		"an error":               {`{"isError":true,"content":[{"type":"text","text":` + quoted(strings.Repeat("trace\n", 5000)) + `}]}`, "bytes of a text are shown"},
	} {
		t.Run(name, func(t *testing.T) {
			if !json.Valid([]byte(test.raw)) {
				t.Fatal("the test is wrong")
			}
			out, err := parsed(t, test.raw).deliver(limit)
			if err != nil {
				t.Fatal(err)
			}
			if !out.Bounded || len(out.Raw) > limit || out.Size != len(test.raw) || out.IsError != strings.Contains(test.raw, `"isError":true`) {
				t.Errorf("bounded %v, %d bytes, size %d of %d", out.Bounded, len(out.Raw), out.Size, len(test.raw))
			}
			var got struct {
				Content           []struct{ Type, Text string }
				StructuredContent json.RawMessage
			}
			if err := json.Unmarshal(out.Raw, &got); err != nil {
				t.Fatal(err)
			}
			marker := got.Content[len(got.Content)-1].Text
			if !strings.HasPrefix(marker, "[Countersign: this result was ") || !strings.Contains(marker, test.note) {
				t.Errorf("marker %q, want %q in it", marker, test.note)
			}
			for _, item := range got.Content[:len(got.Content)-1] {
				whole := strings.HasPrefix(item.Text, "[") || strings.HasPrefix(item.Text, "{")
				if whole && !json.Valid([]byte(item.Text)) {
					t.Errorf("a record was cut: …%q", item.Text[len(item.Text)-40:])
				}
			}
		})
	}
	if out, err := parsed(t, `{"content":[{"type":"text","text":"small"}]}`).deliver(limit); err != nil || out.Bounded {
		t.Error(out, err)
	}
	if _, err := parsed(t, `{"content":[{"type":"text","text":`+quoted(list)+`}]}`).deliver(100); err == nil {
		t.Error("a bound too small for anything useful")
	}
}

func TestBindingsThatCannotBeHonouredMakeAToolUnusable(t *testing.T) {
	for schema, part := range map[string]string{
		`{"properties":{"a":{"type":"string","x-mcp-header":"A B"}}}`:                                                             "invalid name",
		`{"properties":{"a":{"type":"string","x-mcp-header":""}}}`:                                                                "invalid name",
		`{"properties":{"a":{"type":"string","x-mcp-header":5}}}`:                                                                 "invalid name",
		`{"properties":{"a":{"type":"string","x-mcp-header":"A\r\nHost"}}}`:                                                       "invalid name",
		`{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`:                                                               "neither",
		`{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`:                                                               "neither",
		`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"properties":{"c":{"type":"string","x-mcp-header":"a"}}}}}`: "two arguments",
		`{"properties":"x-mcp-header"}`:                                                                                           "cannot be read",
	} {
		if _, problem := bindingsOf([]byte(`{"name":"t","inputSchema":` + schema + `}`)); !strings.Contains(problem, part) {
			t.Errorf("%s: %q, want %q", schema, problem, part)
		}
	}
	list, problem := bindingsOf([]byte(`{"inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},"c":{"type":"boolean","x-mcp-header":"C"}}}}`))
	if problem != "" || len(list) != 3 {
		t.Fatal(list, problem)
	}
	got := headersFor(list, json.RawMessage(`{"a":"x\r\ny","b":{"n":42},"c":true}`))
	want := map[string]string{"Mcp-Param-A": "=?base64?eA0KeQ==?=", "Mcp-Param-N": "42", "Mcp-Param-C": "true"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("headers %v", got)
	}
	if got := headersFor(list, json.RawMessage(`{"a":null,"b":{"n":9007199254740993},"c":[]}`)); len(got) != 0 {
		t.Errorf("headers %v", got)
	}
}

func TestTwinsAreUnusable(t *testing.T) {
	var list []provider.Definition
	for _, name := range []string{"a", "b", "a"} {
		list = append(list, provider.Define(json.RawMessage(`{"name":"`+name+`","inputSchema":{}}`)))
	}
	markTwins(list)
	if list[0].Problem == "" || list[1].Problem != "" || list[2].Problem == "" {
		t.Errorf("%+v", list)
	}
}

func FuzzScanner(f *testing.F) {
	for _, s := range []string{`{"a":[1,-0.5e+3,"x\u0041\"",true,null]}`, `[[[]],{}]`, `"\ud800"`, `{"a":1,"a":2}`, `01`, `1.`, `"` + "\xff" + `"`, `{"a"`, ` [ ] `, `-`, `tru`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := scanner{b: b}
		ok := s.skip() == nil && s.end()
		if ok && !json.Valid(b) {
			t.Fatalf("%q is not JSON", b)
		}
		if !ok && json.Valid(b) && bytes.Equal(bytes.ToValidUTF8(b, nil), b) && bytes.Count(b, []byte("["))+bytes.Count(b, []byte("{")) < maxDepth {
			t.Fatalf("%q is JSON", b)
		}
		if ok { // what was checked once is walked the same way with less care
			trusting := scanner{b: b, trusted: true}
			if trusting.skip() != nil || !trusting.end() {
				t.Fatalf("%q is walked differently", b)
			}
		}
	})
}

func FuzzResult(f *testing.F) {
	for _, s := range []string{`{"content":[{"type":"text","text":"a","_meta":{}}],"isError":true}`, `{"structuredContent":{"a":[1,2]}}`, `{"content":[{"type":"resource","resource":{"icons":[]}}]}`} {
		f.Add([]byte(s), 2048)
	}
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		s := scanner{b: b}
		if s.skip() != nil || !s.end() {
			return
		}
		r, err := parseResult(b)
		if err != nil {
			return
		}
		limit = leastLimit + limit&0xffff
		out, err := r.deliver(limit)
		if err != nil {
			return
		}
		if !json.Valid(out.Raw) || len(out.Raw) > limit+markerRoom/2 || out.Bounded != (r.length() > limit) {
			t.Fatalf("%q became %q (%d within %d)", b, out.Raw, len(out.Raw), limit)
		}
		var got struct{ Content []map[string]json.RawMessage }
		if err := json.Unmarshal(out.Raw, &got); err != nil {
			t.Fatal(err)
		}
		for _, item := range got.Content {
			if item["_meta"] != nil || item["icons"] != nil {
				t.Fatalf("%q became %q", b, out.Raw)
			}
		}
	})
}

func BenchmarkParse64KB(b *testing.B) {
	list := records(1600)
	text := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":` + quoted(list) + `}]}}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		a := answer{status: 200}
		if err := a.parse(text, 1); err != nil {
			b.Fatal(err)
		}
		r, err := a.checked()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.deliver(1 << 20); err != nil {
			b.Fatal(err)
		}
	}
}
