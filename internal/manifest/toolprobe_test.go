package manifest_test

import (
	"testing"

	"countersign/internal/manifest"
)

var deleted = manifest.ToolProbe{
	Call:    manifest.Call{Tool: "contacts_get", Arguments: map[string]any{"contact_id": "{contact_id}", "limit": int64(3), "deep": []any{"{contact_id}", "as is"}}},
	Applied: `^There is no contact "{contact_id}"\.`,
	Absent:  `"id":\s*"{contact_id}"`,
}

func TestAProbeTellsOnlyWhatItsAnswerSays(t *testing.T) {
	q, err := deleted.For([]byte(`{"contact_id":"c_1"}`))
	if err != nil || string(q.Arguments) != `{"contact_id":"c_1","deep":["c_1","as is"],"limit":3}` || q.Tool != "contacts_get" {
		t.Fatalf("%+v, %v", q, err)
	}
	for text, want := range map[string][2]bool{
		`There is no contact "c_1". Find its id with contacts_search.`: {true, false},
		`{"contact":{"id":"c_1","name":"Ada"}}`:                        {false, true},
		`There is no contact "c_12".`:                                  {false, false},
		`{"contact":{"id":"c_12"}}`:                                    {false, false},
		`{"contact":{"id":"xc_1"}}`:                                    {false, false},
		`Internal error`:                                               {false, false},
		``:                                                             {false, false},
		`There is no contact "c_1". {"id":"c_1"}`:                      {false, false},
		`{"notes":[{"text":"There is no contact \"c_1\". \"id\":\"c_1\""}]}`: {false, false},
		"The service is busy.\nThere is no contact \"c_1\".":                 {false, false},
	} {
		if applied, absent := q.Sees(text); [2]bool{applied, absent} != want {
			t.Errorf("%s: applied %t, absent %t", text, applied, absent)
		}
	}
}

// A value the agent chose is matched as itself, whatever it looks like.
func TestAValueIsNeverAnExpression(t *testing.T) {
	for value, text := range map[string]string{`.*`: "c_1", `c_1|c_2`: "c_2", `\\d`: "1", `(`: "x", `{contact_id}`: "c_1", `$`: ""} {
		q, err := deleted.For([]byte(`{"contact_id":"` + value + `"}`))
		if err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		if applied, absent := q.Sees(`There is no contact "` + text + `".`); applied || absent {
			t.Errorf("%s acts as an expression", value)
		}
	}
}

func TestAProbeWithoutAPlainValueCannotTell(t *testing.T) {
	for _, arguments := range []string{`{}`, `{"contact_id":null}`, `{"contact_id":{"a":1}}`, `{"contact_id":["c_1"]}`, `{"contact_id":""}`, `[]`, `nonsense`} {
		if _, err := deleted.For([]byte(arguments)); err == nil {
			t.Errorf("%s: a question was made", arguments)
		}
	}
	if q, err := deleted.For([]byte(`{"contact_id":12}`)); err != nil {
		t.Error(err)
	} else if applied, _ := q.Sees(`There is no contact "12".`); !applied {
		t.Error("a number does not match as it is written")
	}
}

func TestALookUpIsFilledWithTheActionsOwnBytes(t *testing.T) {
	c := manifest.Call{Tool: "search", Arguments: map[string]any{"query": "{q}", "limit": int64(2)}}
	if got, err := c.Filled([]byte(`{"q":{"b":[1,2],"a":"{limit}"}}`)); err != nil || string(got) != `{"limit":2,"query":{"a":"{limit}","b":[1,2]}}` {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := (manifest.Call{Tool: "all"}).Filled([]byte(`{"q":1}`)); err != nil || string(got) != `{}` {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := c.Filled([]byte(`{}`)); err == nil {
		t.Error("a missing value was left out")
	}
}
