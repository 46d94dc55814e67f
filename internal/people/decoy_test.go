package people

import (
	"testing"

	"github.com/alexedwards/argon2id"
)

func TestTheDecoyCostsWhatAPasswordCosts(t *testing.T) {
	costs, _, _, err := argon2id.DecodeHash(decoy)
	if err != nil || *costs != *params {
		t.Errorf("the decoy costs %+v, a password %+v, %v", costs, params, err)
	}
}
