package capability_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"countersign/internal/capability"
	"countersign/internal/connector"
)

const (
	short = connector.Key("crm-abcdef")
	long  = connector.Key("a2345678901234567890-abcdef")
)

var allowed = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func TestAToolNameIsKeptWhereItFits(t *testing.T) {
	for _, tool := range []string{"contacts_get", "Get-It", "a", "x__y", strings.Repeat("n", 64-len(long)-2)} {
		if got := capability.ShortName(long, tool); got != tool {
			t.Errorf("%q became %q", tool, got)
		}
	}
}

func TestAToolNameThatDoesNotFitIsShortenedAndClosedWithItsHash(t *testing.T) {
	for _, tool := range []string{
		"a.b", "with space", "naïve", "😀", "", "a/b", strings.Repeat("n", 36), strings.Repeat("n", 200),
		"ends_like_abcdef22", // would pass for a shortened one
	} {
		got := capability.Name(long, tool)
		if !allowed.MatchString(got) {
			t.Errorf("%q became %q, which a model's API refuses", tool, got)
		}
		if !regexp.MustCompile(`_[a-z2-7]{8}$`).MatchString(got) {
			t.Errorf("%q became %q without a hash", tool, got)
		}
	}
}

func TestNamesThatLookAlikeStayApart(t *testing.T) {
	seen := map[string]string{}
	for _, tool := range []string{"a.b", "a_b", "a b", "a/b", "A.b", "a..b", "a-b", strings.Repeat("n", 80), strings.Repeat("n", 81), capability.ShortName(short, "a.b")} {
		name := capability.Name(short, tool)
		if other, taken := seen[name]; taken {
			t.Errorf("%q and %q are both called %q", tool, other, name)
		}
		seen[name] = tool
	}
}

func TestBothEndpointsAgreeAndANameSplitsAtItsFirstSeparator(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	letters := []rune("abcXYZ019_-. /é")
	for range 5000 {
		tool := make([]rune, r.IntN(90))
		for i := range tool {
			tool[i] = letters[r.IntN(len(letters))]
		}
		for _, key := range []connector.Key{short, long, connector.NewKey("firecrawl")} {
			name := capability.Name(key, string(tool))
			if len(name) > capability.MaxName || !allowed.MatchString(name) {
				t.Fatalf("%q became %q", string(tool), name)
			}
			gotKey, rest, ok := capability.Split(name)
			if !ok || gotKey != key || rest != capability.ShortName(key, string(tool)) {
				t.Fatalf("%q split into %q and %q", name, gotKey, rest)
			}
		}
	}
}

func TestOurOwnPrefixIsNoKey(t *testing.T) {
	if _, _, ok := capability.Split(capability.Companion + "actions_get"); ok {
		t.Error("a companion tool was taken for a connection's")
	}
	for _, name := range []string{"", "__", "nothing", "UPPER-abcdef__x", "crm-abcdef_x"} {
		if _, _, ok := capability.Split(name); ok {
			t.Errorf("%q was split", name)
		}
	}
}

func FuzzName(f *testing.F) {
	for _, tool := range []string{
		"contacts_get", "a.b", "x_abcdef22", "", "__", "a__b", "get-sum", "Ünïcode", "a\x00b", "\xff", "admin/tools.list", strings.Repeat("a", 41), strings.Repeat("a", 300),
		"countersign__actions_get", "x_ABCDEF22", "x_abcdef2", "_abcdefgh", " spaces ", "a\u202eb",
	} {
		f.Add(tool)
	}
	f.Fuzz(func(t *testing.T, tool string) {
		name := capability.Name(long, tool)
		if !allowed.MatchString(name) {
			t.Errorf("%q became %q", tool, name)
		}
		if short := capability.ShortName(long, tool); short == tool && regexp.MustCompile(`_[a-z2-7]{8}$`).MatchString(tool) {
			t.Errorf("%q is verbatim but looks shortened", tool)
		}
	})
}
