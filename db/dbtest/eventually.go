package dbtest

import (
	"testing"
	"time"
)

// patience bounds every wait; nothing waits this long when all is well.
const patience = time.Minute

// Eventually asks until the condition holds, for what can be observed and tells nobody when it changes. Whatever does tell is waited for
// by its signal instead.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	over, again := time.NewTimer(patience), time.NewTicker(10*time.Millisecond)
	defer over.Stop()
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-over.C:
			t.Fatalf("waited %v in vain: %s", patience, what)
		}
	}
}
