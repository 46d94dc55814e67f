package views

import (
	"strings"
	"testing"

	"countersign/internal/policy"
	"countersign/internal/provider"
)

func TestADefinitionReadsInOrder(t *testing.T) {
	got := definitionText([]byte(`{"inputSchema":{"required":["a"],"type":"object","properties":{"b":{"enum":[1,2.50,{"x":null}]},"a b":{}}},"annotations":{"readOnlyHint":true},"_meta":{"x":1},"icons":[],"zeta":[],"description":"Two\nlines <b>","name":"x"}`))
	want := `name: "x"
description: "Two\nlines <b>"
annotations:
  readOnlyHint: true
inputSchema:
  type: "object"
  properties:
    "a b": {}
    b:
      enum:
        - 1
        - 2.50
        -
          x: null
  required: ["a"]
zeta: []
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A text of the service must not be able to draw a line that looks like one of the definition.
func TestATextCannotForgeALine(t *testing.T) {
	got := definitionText([]byte(`{"name":"x","description":"Fine.\nannotations:\n  readOnlyHint: true","a\nname":"y"}`))
	if strings.Count(got, "\n") != 3 || strings.Contains(got, "\nannotations") || strings.Contains(got, "\nname:") {
		t.Errorf("forged:\n%s", got)
	}
}

func TestWhatIsNoObjectIsShownAsItIs(t *testing.T) {
	for _, raw := range []string{"", "nothing", `["x"]`, `{"name":`} {
		if got := definitionText([]byte(raw)); got != raw {
			t.Errorf("%q became %q", raw, got)
		}
	}
}

func TestADeepDefinitionStaysSmall(t *testing.T) {
	raw := `{"x":` + strings.Repeat(`{"a":[`, 4000) + strings.Repeat(`]}`, 4000) + `}`
	if got := definitionText([]byte(raw)); len(got) > 20*len(raw) {
		t.Errorf("%d bytes became %d", len(raw), len(got))
	}
}

// Whatever changes the digest changes a line: nothing can be accepted that was not shown.
func FuzzEveryChangeIsSeen(f *testing.F) {
	f.Add(`{"name":"a","inputSchema":{}}`, `{"name":"a","inputSchema":{"x":1}}`)
	f.Add(`{"name":"a","d":"x"}`, `{"name":"a","d":["x"]}`)
	f.Add(`{"name":"a","d":{}}`, `{"name":"a","d":[]}`)
	f.Add(`{"name":"a","d":[[1],2]}`, `{"name":"a","d":[[1,2]]}`)
	f.Add(`{"name":"a","d":["- 1"]}`, `{"name":"a","d":["-",1]}`)
	f.Add(`{"d":[{"a":1,"b":2}]}`, `{"d":[{"a":1},{"b":2}]}`)
	f.Add(`{"d":[{}]}`, `{"d":[[]]}`)
	f.Add(`{"d":{"e":{"f":1},"g":1}}`, `{"d":{"e":{"f":1,"g":1}}}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := provider.Define([]byte(a)), provider.Define([]byte(b))
		if x.Digest != "" && y.Digest != "" && x.Digest != y.Digest && definitionText([]byte(a)) == definitionText([]byte(b)) {
			t.Errorf("%s and %s both read\n%s", a, b, definitionText([]byte(a)))
		}
	})
}

func TestAnEffectThatMovedIsSaid(t *testing.T) {
	read, write := policy.Read, policy.Consequential
	for _, c := range []struct {
		before policy.Pinned
		now    policy.Class
		want   string
	}{
		{policy.Pinned{Effect: read}, policy.Class{Effect: write}, "now counts as consequential"},
		{policy.Pinned{Effect: write}, policy.Class{Effect: read}, "without anybody deciding"},
		{policy.Pinned{Effect: write}, policy.Class{Effect: write, Destructive: true}, "cannot be undone"},
		{policy.Pinned{Effect: write, Destructive: true}, policy.Class{Effect: write}, "no longer marked"},
		{policy.Pinned{Effect: write}, policy.Class{Effect: write}, ""},
	} {
		if got := effectShift(c.before, c.now); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%+v to %+v: %q", c.before, c.now, got)
		}
	}
}
