package manifest_test

import (
	"testing"

	"countersign/internal/manifest"
)

func TestTheCurrencyMayBeAnArgument(t *testing.T) {
	m := manifest.Money{Argument: "amount", Currency: "{currency}", MinorUnits: 2}
	got, err := m.In([]byte(`{"amount":1250,"currency":"EUR"}`))
	if want := (manifest.Amount{Currency: "EUR", Units: 125_000}); err != nil || got != want {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	for _, arguments := range []string{`{"amount":1250}`, `{"amount":1250,"currency":"euro"}`, `{"amount":1250,"currency":978}`, `{"amount":1250,"currency":"{currency}"}`} {
		if got, err := m.In([]byte(arguments)); err == nil {
			t.Errorf("%s is counted as %v", arguments, got)
		}
	}
}
