package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"countersign/internal/fault"
)

// cases are schemas with values that fit and values that do not.
var cases = []struct {
	name, schema string
	fits, breaks []string
}{
	{"empty", `{}`, []string{`{}`, `{"a":null}`}, nil},
	{
		"types", `{"properties":{"a":{"type":"integer"},"b":{"type":["string","null"]},"c":{"type":"boolean"},"d":{"type":"array"},"e":{"type":"object"},"f":{"type":"number"}}}`,
		[]string{`{"a":1}`, `{"a":1.0}`, `{"a":12345678901234567890}`, `{"b":null}`, `{"c":false,"d":[],"e":{},"f":1.5}`},
		[]string{`{"a":1.5}`, `{"a":"1"}`, `{"a":null}`, `{"b":1}`, `{"c":0}`, `{"d":{}}`, `{"e":[]}`, `{"f":"1"}`, `{"f":true}`},
	},
	{"required", `{"type":"object","required":["a","b"]}`, []string{`{"a":1,"b":null}`}, []string{`{}`, `{"a":1}`}},
	{
		"closed", `{"properties":{"a":{}},"patternProperties":{"^x-":{"type":"string"}},"additionalProperties":false}`,
		[]string{`{}`, `{"a":1,"x-b":"s"}`},
		[]string{`{"b":1}`, `{"x-b":1}`, `{"A":1}`},
	},
	{"additional", `{"properties":{"a":{"type":"string"}},"additionalProperties":{"type":"integer"}}`, []string{`{"a":"s","b":1}`}, []string{`{"a":1}`, `{"b":"s"}`}},
	{
		"numbers", `{"properties":{"a":{"minimum":1,"maximum":10,"multipleOf":0.5},"b":{"exclusiveMinimum":0,"exclusiveMaximum":1}}}`,
		[]string{`{"a":1}`, `{"a":10,"b":0.5}`, `{"a":1.5}`, `{"a":"text"}`},
		[]string{`{"a":0.5}`, `{"a":10.5}`, `{"a":1.2}`, `{"b":0}`, `{"b":1}`},
	},
	{"texts", `{"properties":{"a":{"minLength":2,"maxLength":3},"b":{"pattern":"^c_[0-9]+$"}}}`, []string{`{"a":"äö"}`, `{"a":"日本語","b":"c_1"}`, `{"a":7}`}, []string{`{"a":"x"}`, `{"a":"four"}`, `{"b":"c_"}`}},
	{"choices", `{"properties":{"a":{"enum":["x",1,null,{"k":[1]}]},"b":{"const":2}}}`, []string{`{"a":"x"}`, `{"a":1.0}`, `{"a":null}`, `{"a":{"k":[1]}}`, `{"b":2.0}`}, []string{`{"a":"y"}`, `{"a":{"k":[2]}}`, `{"a":true}`, `{"b":"2"}`}},
	{
		"arrays", `{"properties":{"a":{"prefixItems":[{"type":"string"}],"items":{"type":"integer"},"minItems":1,"maxItems":3,"uniqueItems":true},"b":{"contains":{"const":1},"maxContains":2}}}`,
		[]string{`{"a":["s"]}`, `{"a":["s",1,2]}`, `{"b":[1,2]}`, `{"b":[1,1]}`},
		[]string{`{"a":[]}`, `{"a":[1]}`, `{"a":["s","t"]}`, `{"a":["s",1,1.0]}`, `{"a":["s",1,2,3]}`, `{"b":[]}`, `{"b":[1,1,1]}`},
	},
	{"combined", `{"allOf":[{"required":["a"]}],"anyOf":[{"required":["b"]},{"required":["c"]}],"not":{"required":["d"]}}`, []string{`{"a":1,"b":1}`, `{"a":1,"b":1,"c":1}`}, []string{`{"a":1}`, `{"b":1}`, `{"a":1,"b":1,"d":1}`}},
	{"exactly one", `{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, []string{`{"a":1}`, `{"b":1}`}, []string{`{}`, `{"a":1,"b":1}`}},
	{"conditions", `{"if":{"properties":{"kind":{"const":"x"}},"required":["kind"]},"then":{"required":["x"]},"else":{"required":["y"]}}`, []string{`{"kind":"x","x":1}`, `{"y":1}`}, []string{`{"kind":"x"}`, `{}`, `{"kind":"z","x":1}`}},
	{"names", `{"propertyNames":{"maxLength":3},"minProperties":1,"maxProperties":2}`, []string{`{"abc":1}`}, []string{`{}`, `{"abcd":1}`, `{"a":1,"b":1,"c":1}`}},
	{"dependent", `{"dependentRequired":{"a":["b"]},"dependentSchemas":{"c":{"required":["d"]}}}`, []string{`{}`, `{"a":1,"b":1}`, `{"c":1,"d":1}`}, []string{`{"a":1}`, `{"c":1}`}},
	{
		"references", `{"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"},"v":{"type":"integer"}},"required":["v"]}},"properties":{"list":{"$ref":"#/$defs/n"},"again":{"$ref":"#/properties/list"}}}`,
		[]string{`{"list":{"v":1,"next":{"v":2}}}`},
		[]string{`{"list":{}}`, `{"list":{"v":1,"next":{"v":"2"}}}`, `{"again":{}}`},
	},
	{"itself", `{"type":"object","properties":{"child":{"$ref":"#"}},"additionalProperties":false}`, []string{`{"child":{"child":{}}}`}, []string{`{"child":{"x":1}}`}},
	{"yes and no", `{"properties":{"a":true,"b":false}}`, []string{`{"a":1}`}, []string{`{"b":1}`}},
	{"escaped", `{"$defs":{"a/b~c":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/a~1b~0c"},"y":{"$ref":"#/$defs/a~1b%7E0c"}}}`, []string{`{"x":"s"}`}, []string{`{"x":1}`, `{"y":1}`}},
}

func TestValuesFitAsTheyShould(t *testing.T) {
	for _, tt := range cases {
		s, err := Compile([]byte(tt.schema))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		for _, v := range tt.fits {
			if err := s.Check([]byte(v)); err != nil {
				t.Errorf("%s: %s: %v", tt.name, v, err)
			}
		}
		for _, v := range tt.breaks {
			if err := s.Check([]byte(v)); !fault.Is(err, fault.InvalidArguments) {
				t.Errorf("%s: %s is accepted: %v", tt.name, v, err)
			}
		}
	}
}

// TestAnIndependentReaderAgrees holds the same cases to another implementation.
func TestAnIndependentReaderAgrees(t *testing.T) {
	for _, tt := range cases {
		var parsed jsonschema.Schema
		if err := json.Unmarshal([]byte(tt.schema), &parsed); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		resolved, err := parsed.Resolve(nil)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		for i, list := range [][]string{tt.fits, tt.breaks} {
			for _, v := range list {
				var value any
				if err := json.Unmarshal([]byte(v), &value); err != nil {
					t.Fatal(err)
				}
				if err := resolved.Validate(value); (err == nil) != (i == 0) {
					t.Errorf("%s: %s: the other says %v", tt.name, v, err)
				}
			}
		}
	}
}

func TestWordsOfOlderDrafts(t *testing.T) {
	s, err := Compile([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"s":{"type":"string"}},
		"properties":{"a":{"$ref":"#/definitions/s","maxLength":1},"b":{"items":[{"type":"string"}],"additionalItems":false},"c":{"minimum":1,"exclusiveMinimum":true}},"dependencies":{"b":["a"],"c":{"required":["b"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for v, fits := range map[string]bool{`{"a":"long"}`: true, `{"a":1}`: false, `{"a":"x","b":["s"]}`: true, `{"a":"x","b":["s",1]}`: false, `{"b":["s"]}`: false, `{"a":"x","b":[],"c":1}`: false, `{"a":"x","b":[],"c":2}`: true, `{"c":2}`: false} {
		if err := s.Check([]byte(v)); (err == nil) != fits {
			t.Errorf("%s: %v", v, err)
		}
	}
}

func TestSchemasThatCannotBeUsedSayWhy(t *testing.T) {
	for schema, why := range map[string]string{
		`{"$ref":"https://evil.example/s.json"}`: "never fetched", `{"$ref":"other.json#/a"}`: "never fetched", `{"$ref":7}`: "never fetched",
		`{"$ref":"#/nowhere"}`: "not there", `{"$ref":"#name"}`: "named anchor", `{"$dynamicRef":"#a"}`: "$dynamicRef", `{"properties":{"a":{"$id":"https://x.example/a"}}}`: "another schema document",
		`{"$ref":"#"}`: "without end", `{"anyOf":[{"$ref":"#"},{}]}`: "without end", `{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"not":{"$ref":"#/$defs/a"}}},"properties":{"x":{"$ref":"#/$defs/a"}}}`: "without end",
		`{"type":"text"}`: "cannot be read", `{"type":7}`: "cannot be read", `{"required":true}`: "cannot be read", `{"properties":[]}`: "cannot be read", `{"properties":{"a":7}}`: "cannot be read",
		`{"enum":1}`: "cannot be read", `{"minimum":"1"}`: "cannot be read", `{"minimum":1e999999999}`: "cannot be read", `{"multipleOf":0}`: "cannot be read", `{"minLength":-1}`: "cannot be read",
		`{"allOf":{}}`: "cannot be read", `{"pattern":7}`: "cannot be read", `{"dependencies":7}`: "cannot be read", `7`: "cannot be read", `{`: "not one JSON value", `{} {}`: "not one JSON value",
		`{"description":"` + strings.Repeat("x", maxSource) + `"}`: "larger than", `{"anyOf":[` + strings.Repeat("{},", maxNodes) + `{}]}`: "too large",
	} {
		if _, err := Compile([]byte(schema)); err == nil || !strings.Contains(err.Error(), why) || !strings.HasSuffix(err.Error(), ".") {
			t.Errorf("%.80s: %v, want “%s”", schema, err, why)
		}
	}
}

func TestAPatternThatGoCannotReadIsNoRule(t *testing.T) {
	s, err := Compile([]byte(`{"properties":{"mail":{"type":"string","pattern":"^(?!\\.)x"}},"patternProperties":{"(?=a)":{"type":"string"}},"additionalProperties":false}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check([]byte(`{"mail":"anything","a":1}`)); err != nil {
		t.Error(err)
	}
	if err := s.Check([]byte(`{"mail":7}`)); err == nil {
		t.Error("the type is no rule either")
	}
}

// TestHostileWorkIsBounded feeds what would take a processor for ever, or all of the stack.
func TestHostileWorkIsBounded(t *testing.T) {
	deep := strings.Repeat(`{"x":`, 60) + `1` + strings.Repeat(`}`, 60)
	wide := make([]string, 20_000)
	for i := range wide {
		wide[i] = fmt.Sprint(i)
	}
	many := "[" + strings.Join(wide, ",") + "]"
	double := `{"$defs":{"d0":{"not":{}}`
	for i := 1; i <= 40; i++ {
		double += fmt.Sprintf(`,"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i-1, i-1)
	}
	double += `},"$ref":"#/$defs/d40"}`
	tests := map[string][2]string{
		"both branches go down":      {`{"anyOf":[{"properties":{"x":{"$ref":"#"}},"required":["y"]},{"properties":{"x":{"$ref":"#"}},"required":["z"]}]}`, deep},
		"doubled forty times":        {double, `{}`},
		"everything with everything": {`{"properties":{"a":{"uniqueItems":true}}}`, `{"a":` + many + `}`},
		"a large pattern many times": {`{"additionalProperties":{"items":{"pattern":"(a|b|ab)*c{1,900}$"}}}`, `{"a":[` + strings.Repeat(`"`+strings.Repeat("ab", 2000)+`",`, 100) + `"a"]}`},
		"a huge exponent":            {`{"properties":{"a":{"minimum":1}}}`, `{"a":1e999999999}`},
		"a huge integer":             {`{"properties":{"a":{"type":"integer"}}}`, `{"a":1e-999999999}`},
	}
	for name, tt := range tests { // without its bound, none of them would end within a day
		s, err := Compile([]byte(tt[0]))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := s.Check([]byte(tt[1])); !fault.Is(err, fault.InvalidArguments) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSentencesNamePlacesAndNoValues(t *testing.T) {
	s, err := Compile([]byte(`{"type":"object","properties":{"a":{"type":"array","items":{"properties":{"b":{"enum":["x"]}}}}},"required":["a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range map[string]string{
		`{"a":[{},{"b":"hunter2"}]}`: "The argument “a.1.b” is not one of the values that are allowed.",
		`{"hunter2":1}`:              "The arguments must have the member “a”.",
		`[]`:                         "The arguments are not a JSON object.",
		`{`:                          "The arguments are not one JSON value.",
	} {
		err := s.Check([]byte(v))
		if f, ok := fault.As(err); !ok || f.What != want || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", v, err)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, tt := range cases {
		f.Add([]byte(tt.schema), []byte(`{"a":1}`))
	}
	f.Fuzz(func(_ *testing.T, schema, value []byte) {
		if s, err := Compile(schema); err == nil {
			_ = s.Check(value) // must end, without a panic
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	s, err := Compile([]byte(`{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":200},"limit":{"type":"integer","minimum":1,"maximum":100}},"required":["query"],"additionalProperties":false}`))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := s.Check([]byte(`{"limit":20,"query":"something to look for"}`)); err != nil {
			b.Fatal(err)
		}
	}
}
