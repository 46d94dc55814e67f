package gateway

import "testing"

func TestTheTrailNamesArgumentsAndNoValues(t *testing.T) {
	for arguments, want := range map[string]string{
		`{}`:              "",
		`{"a":1,"b":"x"}`: "a, b",
		`{"b":{"inner":1},"a":["deep",{"er":"v:"}]}`: "a, b",
		`{"quote\"d":"\\","v":"\":","w":"a\":b"}`:    `quote"d, v, w`,
		`{"emoji 😀":null,"z":"{\"not\":1}"}`:         "emoji 😀, z",
	} {
		if got := keysOf([]byte(arguments)); got != want {
			t.Errorf("%s: %q, want %q", arguments, got, want)
		}
	}
}
