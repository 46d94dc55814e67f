package preferences_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"countersign/internal/fault"
	"countersign/internal/preferences"
)

func TestAFormGivesBackTheSameWordsOrSaysThatItCannot(t *testing.T) {
	full := parsed(t, file(t, "good/full.toml")).Connector(crm)
	f, fits := preferences.FormOf(full)
	if !fits || f.Vocabulary != "deal = A quote that was sent\nwon deal = A quote somebody has paid" || f.Avoid != "Refunds over 500 EUR\nDeleting contacts" {
		t.Errorf("%t, %+v", fits, f)
	}
	for name, c := range map[string]preferences.Connector{
		"a line too many": {Key: crm, Avoid: []string{"a\nb"}},
		"a term of two":   {Key: crm, Defaults: []preferences.Term{{Name: "a", Means: "b\nc = d"}}},
		"a sign in names": {Key: crm, Vocabulary: []preferences.Term{{Name: "a = b", Means: "c"}}},
		"blanks around":   {Key: crm, Purpose: " x "},
	} {
		if _, fits := preferences.FormOf(c); fits {
			t.Errorf("%s: the form would change it", name)
		}
	}
	if _, fits := preferences.FormOf(preferences.Connector{Key: crm}); !fits {
		t.Error("nothing does not fit")
	}
}

func TestAFormIsReadLineByLine(t *testing.T) {
	c, err := preferences.Form{Purpose: " one\r\ntwo ", Vocabulary: "\r\n a=b = c\r\n\r\n", Avoid: " x \n\n\ny"}.Connector(crm)
	want := preferences.Connector{Key: crm, Purpose: "one\ntwo", Vocabulary: []preferences.Term{{Name: "a", Means: "b = c"}}, Avoid: []string{"x", "y"}}
	if diff := cmp.Diff(want, c); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	_, err = preferences.Form{Vocabulary: "a = b\na = c", Defaults: "x\n= y\nz ="}.Connector(crm)
	var list fault.List
	if !errors.As(err, &list) || len(list) != 4 || list[0].Field != "vocabulary" || list[3].Field != "defaults" {
		t.Errorf("%v", err)
	}
}
