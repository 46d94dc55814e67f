package provider

import (
	"strings"
	"testing"

	"countersign/internal/policy"
)

func tool(members string) string {
	return `{"name":"a","description":"d","inputSchema":{"type":"object"}` + members + `}`
}

func TestTheDigestCoversWhatAPersonReviewed(t *testing.T) {
	base := Define([]byte(tool("")))
	if base.Problem != "" || len(base.Digest) != 64 || base.Recipe != 1 {
		t.Fatalf("%+v", base)
	}
	for name, same := range map[string]string{
		"order and space":  `{ "inputSchema" : {"type":"object"}, "description":"d", "name":"a" }`,
		"escapes":          `{"name":"\u0061","description":"d","inputSchema":{"type":"object"}}`,
		"_meta":            tool(`,"_meta":{"v":2}`),
		"icons":            tool(`,"icons":[{"src":"https://x.example/i.png"}]`),
		"an escaped _meta": tool(`,"\u005fmeta":{"v":2}`),
	} {
		if d := Define([]byte(same)); d.Digest != base.Digest {
			t.Errorf("%s changes the digest", name)
		}
	}
	for name, other := range map[string]string{
		"a space in the description": strings.Replace(tool(""), `"d"`, `"d "`, 1),
		"a vendor extension":         tool(`,"x-vendor":1`),
		"execution":                  tool(`,"execution":{"taskSupport":"required"}`),
		"outputSchema":               tool(`,"outputSchema":{"type":"object"}`),
		"an annotation":              tool(`,"annotations":{"readOnlyHint":true}`),
		"a nested _meta":             strings.Replace(tool(""), `{"type":"object"}`, `{"type":"object","_meta":1}`, 1),
		"a number written otherwise": tool(`,"n":1.0`),
	} {
		if d := Define([]byte(other)); d.Digest == base.Digest || d.Digest == "" {
			t.Errorf("%s does not change the digest", name)
		}
	}
	one, two := Define([]byte(tool(`,"n":1`))), Define([]byte(tool(`,"n":1.0`)))
	if one.Digest == two.Digest {
		t.Error("numbers are not kept as written")
	}
	if d, ok := DigestOf(base.Raw, 1); !ok || d != base.Digest {
		t.Error("the digest of the raw object differs")
	}
	if _, ok := DigestOf(base.Raw, 2); ok {
		t.Error("an unknown recipe has a digest")
	}
	// Pinned for good: what people approved under recipe 1 must have this digest after every upgrade.
	if base.Digest != recipeOne {
		t.Errorf("recipe 1 has changed: %s", base.Digest)
	}
}

func TestHintsAreReadFromTheRawText(t *testing.T) {
	for annotations, want := range map[string]policy.Annotations{
		``:                                     {},
		`,"annotations":null`:                  {},
		`,"annotations":{}`:                    {},
		`,"annotations":{"readOnlyHint":true}`: {ReadOnly: policy.HintTrue},
		`,"annotations":{"readOnlyHint":false,"destructiveHint":true}`: {ReadOnly: policy.HintFalse, Destructive: policy.HintTrue},
		`,"annotations":{"readOnlyHint":"true"}`:                       {ReadOnly: policy.HintMalformed},
		`,"annotations":{"readOnlyHint":1,"destructiveHint":{}}`:       {ReadOnly: policy.HintMalformed, Destructive: policy.HintMalformed},
		`,"annotations":{"readOnlyHint":null}`:                         {},
		`,"annotations":{"ReadOnlyHint":true,"readonlyhint":true}`:     {},
		`,"annotations":[true]`:                                        {ReadOnly: policy.HintMalformed, Destructive: policy.HintMalformed},
		`,"annotations":"readOnlyHint"`:                                {ReadOnly: policy.HintMalformed, Destructive: policy.HintMalformed},
		`,"readOnlyHint":true`:                                         {},
	} {
		if d := Define([]byte(tool(annotations))); d.Annotations != want {
			t.Errorf("%s: %+v, want %+v", annotations, d.Annotations, want)
		}
	}
}

func TestAnUnusableToolSaysWhy(t *testing.T) {
	for raw, part := range map[string]string{
		`null`:                                                         "unambiguous",
		`"a"`:                                                          "unambiguous",
		`{"name":"a","name":"b"}`:                                      "unambiguous",
		`{"inputSchema":{}}`:                                           "no name",
		`{"name":5,"inputSchema":{}}`:                                  "no name",
		`{"name":"","inputSchema":{}}`:                                 "no name",
		`{"Name":"a","inputSchema":{}}`:                                "no name",
		`{"name":"a\u0000b","inputSchema":{}}`:                         "invisible",
		`{"name":"a\u202eb","inputSchema":{}}`:                         "invisible",
		`{"name":"a\u200bb","inputSchema":{}}`:                         "invisible",
		`{"name":"a"}`:                                                 "no input schema",
		`{"name":"a","inputSchema":null}`:                              "not a JSON object",
		`{"name":"a","inputSchema":true}`:                              "not a JSON object",
		`{"name":"a","inputSchema":{"type":"array"}}`:                  "does not describe an object",
		`{"name":"a","inputSchema":{"type":["object","null"]}}`:        "does not describe an object",
		`{"name":"a","inputSchema":{"type":"object","properties":[]}}`: "properties",
		`{"name":"a","description":{"x":1},"inputSchema":{}}`:          "description",
		`{"name":"` + strings.Repeat("a", 300) + `","inputSchema":{}}`: "longer than 256",
		tool(`,"x":"` + strings.Repeat("a", maxDefinition) + `"`):      "larger than 256 KiB",
	} {
		if d := Define([]byte(raw)); !strings.Contains(d.Problem, part) {
			t.Errorf("%.80s: %q, want %q", raw, d.Problem, part)
		}
	}
	for _, raw := range []string{`{"name":"a","inputSchema":{}}`, tool(""), `{"name":"a.b/c d-é","inputSchema":{"$schema":"x","oneOf":[{}]},"title":"T"}`, tool(`,"outputSchema":17`)} {
		if d := Define([]byte(raw)); d.Problem != "" {
			t.Errorf("%s: %s", raw, d.Problem)
		}
	}
}

// recipeOne is sha256sum of {"description":"d","inputSchema":{"type":"object"},"name":"a"}.
const recipeOne = "38946fac1e4488e2b202262ab109b4a9d3334b95a8c556592567243c9e8b679c"

// With an invisible character two names look the same, and a line break makes two lines of one.
func TestNothingInvisibleIsPrintable(t *testing.T) {
	t.Parallel()
	for _, r := range "\x00\x1b\n\u0085\u00ad\u061c\u200b\u202e\u2028\u2029\u2066\ufeff\ufe0f\U000e0041\U000e0100\ue000" {
		if got := Printable("a" + string(r) + "b"); got != "ab" {
			t.Errorf("U+%04X stayed: %q", r, got)
		}
	}
	if got := Printable("Zoë – 東京 · 12 €"); got != "Zoë – 東京 · 12 €" {
		t.Errorf("%q", got)
	}
}
