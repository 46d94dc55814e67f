package dbtest

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Rows is whoever answers a query: a connection or a pool.
type Rows interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// Holds runs every query of a file of invariants and complains of each that counts something. A query is introduced by a comment
// "-- holds: " with the sentence to complain with, and ends with a semicolon. It reports whether all of them hold.
func Holds(t testing.TB, db Rows, file string) bool {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(raw), "-- holds: ")[1:]
	if len(parts) < 10 {
		t.Fatalf("%s holds only %d invariants", file, len(parts))
	}
	good := true
	for _, part := range parts {
		sentence, query, _ := strings.Cut(part, "\n")
		var n int
		if err := db.QueryRow(context.Background(), strings.TrimSuffix(strings.TrimSpace(query), ";")).Scan(&n); err != nil {
			t.Fatalf("%s: %v", sentence, err)
		}
		if n != 0 {
			good = false
			t.Errorf("the database holds %s (%d)", sentence, n)
		}
	}
	return good
}
