package db

import (
	"regexp"
	"slices"
	"testing"
)

// A table that a capability is read from and that changes must end what is remembered. Those not listed here have a trigger, or the
// memory would lie.
var neverChange = []string{
	"orgs",                // its row is its name, which is for display
	"run_connections",     // written with the run
	"run_grants",          // written with the run
	"connection_settings", // written with the connection
}

func TestEveryTableOfACapabilityEndsMemories(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	table := regexp.MustCompile(`\b(?:FROM|JOIN)\s+(\w+)`)
	seen := 0
	for _, statement := range []string{liveRun, liveConnections, liveSettings, liveMinted, livePinned} {
		for _, m := range table.FindAllStringSubmatch(statement, -1) {
			seen++
			if slices.Contains(neverChange, m[1]) {
				if n := w.count(t, `SELECT count(*) FROM information_schema.column_privileges WHERE grantee = 'countersign_app' AND privilege_type = 'UPDATE' AND table_name = $1`, m[1]); n > 0 {
					t.Errorf("%s is said never to change, but the server may change it", m[1])
				}
				continue
			}
			if n := w.count(t, `SELECT count(*) FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid
				WHERE g.tgrelid = $1::regclass AND p.proname IN ('capability_changed', 'capabilities_changed')`, m[1]); n == 0 {
				t.Errorf("a capability is read from %s, and no trigger says when it changes", m[1])
			}
		}
	}
	if seen < 8 {
		t.Errorf("only %d tables were found", seen)
	}
}
