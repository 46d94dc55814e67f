package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"

	"countersign/internal/fault"
	"countersign/internal/policy"
	"countersign/internal/provider/direct"
)

// hostile are texts that some program, shell, terminal or reader takes for more than a value.
var hostile = []string{
	"", "-", "--", "-x", "--help", "--output=/tmp/x", "-h=1", "@/etc/passwd", "@response-file", "a\x00b", "a\nb", "a\r--help", "a\tb", "\u0085a", "a\u2028b", "a\u202eb", "a\u200bb",
	"\ufeffa", "\U000e0041a", " a", "a ", "\u00a0a", "\u2010x", "−x", "﹣x", "－x", "＠file", "ａ", "а", "%2d%2dhelp", "../a", "a/../../b", "~/a", "$HOME", "`id`", "$(id)", "a;id", "a|id",
	"a&id", "<a", ">a", "*", "{relay}", "{home}", "{ticket}", "=a", "a=b", "'a'", `"a"`, `\`, "file:///etc/passwd", "http://198.51.100.7/", "\xff\xfe", "a\x1b[2Jb", strings.Repeat("a", 5000), strings.Repeat("é", 3000),
}

var everyKind = Invocation{
	Tool: "toy", Words: []string{"do", "it"}, Fixed: []string{"--json"}, Effect: policy.Read, Asks: []string{"GET /x"},
	Flags: []Flag{
		{Argument: "word", Name: "--word", Value: Word("A word.")},
		{Argument: "line", Name: "--line", Value: Line("A line.", 10_000)},
		{Argument: "shape", Name: "--shape", Value: Shaped("A shape.", `^[^-@][^\n]*$`)}, // as wide as a declaration may be
		{Argument: "one", Name: "--one", Value: OneOf("One.", "a", "b")},
	},
	Operands: []Flag{{Argument: "last", Value: Line("The last.", 10_000), Required: true}},
}

// Whatever a value is, it is refused, or it is itself and nothing else in the one place it has. Refused is what a program could take for a flag
// or a file, and what a person would not see as it is.
func TestAValueStaysInItsPlace(t *testing.T) {
	t.Parallel()
	c := Command{Name: "toy", Ahead: []string{"--quiet"}, Closed: true, Tools: []Invocation{everyKind}}
	c.check()
	for _, value := range hostile {
		for _, f := range slices.Concat(everyKind.Flags, everyKind.Operands) {
			raw, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			a := direct.Arguments{"last": json.RawMessage(`"end"`)}
			a[f.Argument] = raw
			got, err := c.argv(everyKind, a)
			if err != nil {
				if !fault.Is(err, fault.InvalidArguments) {
					t.Errorf("%s %q: %v", f.Argument, value, err)
				}
				continue
			}
			want := []string{"--quiet", "do", "it", "--json", f.Name + "=" + value, "--", "end"}
			if f.Name == "" {
				want = []string{"--quiet", "do", "it", "--json", "--", value}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s %q became %q", f.Argument, value, got)
			}
			hidden := strings.IndexFunc(value, func(r rune) bool { return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) }) >= 0
			if hidden || strings.HasPrefix(value, "-") || strings.HasPrefix(value, "@") || len(value) > maxValue || strings.TrimSpace(value) != value {
				t.Errorf("%s took %q", f.Argument, value)
			}
			if (f.Argument == "word" || f.Argument == "one") && strings.ContainsFunc(value, func(r rune) bool { return r > unicode.MaxASCII || strings.ContainsRune("/$`;|&<>*{}=\\'\"~% ", r) }) {
				t.Errorf("%s took %q", f.Argument, value)
			}
		}
	}
}

func TestEachOfSeveralWordsIsAnOperand(t *testing.T) {
	t.Parallel()
	i := Invocation{
		Tool: "toy", Words: []string{"search"}, Effect: policy.Read, Asks: []string{"GET /x"},
		Operands: []Flag{{Argument: "words", Value: Several("Words.", 200), Required: true}},
	}
	c := Command{Name: "toy", Closed: true, Tools: []Invocation{i}}
	c.check()
	for in, want := range map[string][]string{
		"is:open  author:@me": {"search", "--", "is:open", "author:@me"}, "one": {"search", "--", "one"}, "one --help": nil, "one @/etc/passwd": nil, "one\n--help": nil,
	} {
		raw, _ := json.Marshal(in)
		got, err := c.argv(i, direct.Arguments{"words": raw})
		if !slices.Equal(got, want) || (err != nil) != (want == nil) {
			t.Errorf("%q became %q, %v", in, got, err)
		}
	}
}

// What is written anew is what was meant, not what was sent: another notation of a number, a type that is none, an argument nobody declared.
func TestArgumentsAreWrittenAnew(t *testing.T) {
	t.Parallel()
	i := Invocation{
		Tool: "toy", Words: []string{"list"}, Effect: policy.Read, Asks: []string{"GET /x"},
		Flags: []Flag{{Argument: "limit", Name: "--limit", Value: Number("How many.", 1, 100)}, {Argument: "all", Name: "--all", Value: Switch("All.")}, {Argument: "name", Name: "--name", Value: Word("A name.")}},
	}
	c := Command{Name: "toy", Tools: []Invocation{i}}
	c.check()
	for in, want := range map[string]string{
		`{"limit":7,"all":true}`:              "list --limit=7 --all",
		`{"all":false}`:                       "list",
		`{"limit":0}`:                         "",
		`{"limit":101}`:                       "",
		`{"limit":"7"}`:                       "",
		`{"limit":1e1}`:                       "",
		`{"limit":7.0}`:                       "",
		`{"limit":99999999999999999999}`:      "",
		`{"name":["--x"]}`:                    "",
		`{"name":{"a":"--x"}}`:                "",
		`{"name":7}`:                          "",
		`{"all":"--x"}`:                       "list",
		`{"--help":"yes","name\u0000":"--x"}`: "list",
	} {
		a := direct.Arguments{}
		if err := json.Unmarshal([]byte(in), &a); err != nil {
			t.Fatal(err)
		}
		got, err := c.argv(i, a)
		if strings.Join(got, " ") != want || (err != nil) != (want == "") {
			t.Errorf("%s became %q, %v", in, got, err)
		}
	}
}
