package manifest

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"countersign/internal/fault"
)

// decimals is how many decimals of a currency's unit an Amount counts: the finest that Money can name, so that every sum is exact.
const decimals = 4

// MostUnits bounds one amount and one limit: a hundred billion of the currency. The sum of a day then stays far within 64 bits.
const MostUnits = 1_000_000_000_000_000

// Amount is money, in ten-thousandths of the currency's unit. The zero value is none.
type Amount struct {
	Currency string // ISO 4217, three letters; empty for none
	Units    int64  // never negative
}

// None reports whether there is no amount at all; an amount of zero is one.
func (a Amount) None() bool { return a.Currency == "" }

var (
	wholeAmount = regexp.MustCompile(`^(0|[1-9][0-9]{0,18})$`)
	plainAmount = regexp.MustCompile(`^(0|[1-9][0-9]{0,11})(?:\.([0-9]{1,4}))?$`)
	isoCurrency = regexp.MustCompile(`^[A-Z]{3}$`)
)

// In reads the amount that a call's canonical arguments spend. It fails closed: an argument that is missing, negative, fractional, in
// another notation, a text, or beyond MostUnits cannot be counted, and what cannot be counted is not spent.
func (m Money) In(arguments []byte) (Amount, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &members); err != nil {
		return Amount{}, m.unreadable()
	}
	if m = m.For(members); !isoCurrency.MatchString(m.Currency) {
		return Amount{}, m.unreadable()
	}
	raw := string(members[m.Argument])
	if !wholeAmount.MatchString(raw) || m.MinorUnits < 0 || m.MinorUnits > decimals {
		return Amount{}, m.unreadable()
	}
	n, err := strconv.ParseInt(raw+strings.Repeat("0", decimals-m.MinorUnits), 10, 64)
	if err != nil || n > MostUnits {
		return Amount{}, m.unreadable()
	}
	return Amount{Currency: m.Currency, Units: n}, nil
}

// currencyArgument is the argument that names the currency, where one does.
func (m Money) currencyArgument() (string, bool) {
	name, ok := strings.CutPrefix(m.Currency, "{")
	return strings.TrimSuffix(name, "}"), ok && strings.HasSuffix(name, "}")
}

// For is the money of one call: its currency is fixed, or what the call's arguments name. What they name badly stays unresolved.
func (m Money) For(arguments map[string]json.RawMessage) Money {
	name, ok := m.currencyArgument()
	if !ok {
		return m
	}
	var code string
	if json.Unmarshal(arguments[name], &code) == nil && isoCurrency.MatchString(code) {
		m.Currency = code
	}
	return m
}

func (m Money) unreadable() error {
	return fault.New(fault.Invalid, fault.InvalidArguments, "The argument “"+m.Argument+"” is not an amount that can be counted; nothing was staged.",
		"Give “"+m.Argument+"” as a whole number, not negative, at most a hundred billion of the currency.")
}

// ParseAmount reads what a person typed: "500", "500.00", "1250.5". An empty text is none.
func ParseAmount(text, currency string) (Amount, error) {
	text, currency = strings.TrimSpace(text), strings.ToUpper(strings.TrimSpace(currency))
	if text == "" || text == "0" {
		return Amount{}, nil
	}
	parts := plainAmount.FindStringSubmatch(text)
	if parts == nil {
		return Amount{}, fault.Field("amount", "An amount is digits with at most four decimals after a point, such as 500 or 500.00.")
	}
	if !isoCurrency.MatchString(currency) {
		return Amount{}, fault.Field("currency", "A currency is its three letters, such as EUR.")
	}
	n, err := strconv.ParseInt(parts[1]+parts[2]+strings.Repeat("0", decimals-len(parts[2])), 10, 64)
	if err != nil || n > MostUnits {
		return Amount{}, fault.Field("amount", "An amount is at most a hundred billion of the currency.")
	}
	if n == 0 {
		return Amount{}, nil
	}
	return Amount{Currency: currency, Units: n}, nil
}

// String is the amount as it is typed: "500", "500.25", without its currency.
func (a Amount) String() string {
	if a.None() {
		return ""
	}
	whole, rest := strconv.FormatInt(a.Units/10000, 10), a.Units%10000
	if rest == 0 {
		return whole
	}
	fraction := strconv.FormatInt(10000+rest, 10)[1:]
	if short := strings.TrimRight(fraction, "0"); len(short) > 2 {
		return whole + "." + short
	}
	return whole + "." + fraction[:2]
}
