package wording

import (
	"encoding/json"
	"regexp"
	"strings"

	"countersign/internal/manifest"
)

// whole is what an amount in minor units looks like. 24e3 and 240.5 are numbers too, but a provider may read them otherwise than we do.
var whole = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,29})$`)

// Money is an amount as people write it, made from the exact digits of the argument: "€240.00", "CHF 1,250.00", "JPY 24,000". It is
// false where the argument is not a whole number, so that nobody reads an amount that nobody sends.
func Money(m manifest.Money, a Argument) (string, bool) {
	if strings.HasPrefix(m.Currency, "{") || a.Name != m.Argument || a.Kind != Number || !whole.MatchString(a.Raw) || m.MinorUnits < 0 || m.MinorUnits > 4 {
		return "", false
	}
	digits, sign := a.Raw, ""
	if rest, negative := strings.CutPrefix(digits, "-"); negative {
		digits, sign = rest, "−"
	}
	if short := m.MinorUnits + 1 - len(digits); short > 0 {
		digits = strings.Repeat("0", short) + digits
	}
	at := len(digits) - m.MinorUnits
	amount := grouped(digits[:at])
	if m.MinorUnits > 0 {
		amount += "." + digits[at:]
	}
	return sign + prefix(m.Currency) + amount, true
}

// signs are currency signs that stand for one currency alone here. A bare $ is the US dollar's; every other dollar keeps its letters.
var signs = map[string]string{"EUR": "€", "USD": "$", "GBP": "£"}

func prefix(currency string) string {
	if sign, ok := signs[currency]; ok {
		return sign
	}
	return currency + "\u00a0"
}

var currencies = map[string]string{
	"EUR": "euros", "USD": "US dollars", "GBP": "pounds sterling", "CHF": "Swiss francs", "JPY": "Japanese yen", "CAD": "Canadian dollars",
	"AUD": "Australian dollars", "NZD": "New Zealand dollars", "SEK": "Swedish kronor", "NOK": "Norwegian kroner", "DKK": "Danish kroner", "PLN": "Polish złoty",
	"CZK": "Czech koruny", "HUF": "Hungarian forints", "CNY": "Chinese yuan", "INR": "Indian rupees", "BRL": "Brazilian reais", "MXN": "Mexican pesos",
	"SGD": "Singapore dollars", "HKD": "Hong Kong dollars", "ZAR": "South African rand",
}

// Currency is a currency in words; its three letters where we know none.
func Currency(code string) string {
	if words, ok := currencies[code]; ok {
		return words
	}
	return code
}

// For is the policy for one call: where an argument names the currency, its money is in that one.
func For(p manifest.ToolPolicy, arguments []Argument) manifest.ToolPolicy {
	if p.Money == nil {
		return p
	}
	raws := make(map[string]json.RawMessage, len(arguments))
	for _, a := range arguments {
		raws[a.Name] = json.RawMessage(a.Raw)
	}
	m := p.Money.For(raws)
	p.Money = &m
	return p
}

// Gloss says what an argument means beside its raw value; empty where it needs no words.
func Gloss(p manifest.ToolPolicy, a Argument) string {
	if p.Money == nil || p.Money.Argument != a.Name {
		return ""
	}
	amount, ok := Money(*p.Money, a)
	if !ok {
		if strings.HasPrefix(p.Money.Currency, "{") {
			return "no amount can be read from it: the call names no currency"
		}
		return "not a whole number of " + Currency(p.Money.Currency) + " units: no amount can be read from it"
	}
	return amount + ", " + Currency(p.Money.Currency)
}

// grouped puts commas between thousands of digits.
func grouped(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
