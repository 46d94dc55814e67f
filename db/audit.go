package db

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"countersign/internal/audit"
)

// insertAudit writes the trail's entry about a change into the transaction of that change: if it cannot be written, nothing is done.
func insertAudit(ctx context.Context, tx pgx.Tx, e audit.Entry) error {
	names, values := split(e.Facts)
	_, err := tx.Exec(ctx, `INSERT INTO audit_entries (org_id, actor_kind, actor_id, actor_name, event, object_kind, object_id, digest, fact_names, fact_values)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		string(e.Org), string(e.Actor.Kind), storable(e.Actor.ID), storable(e.Actor.Name), string(e.Event), e.Object.Kind, storable(e.Object.ID), e.Digest, names, values)
	return err
}

// split parts facts into the two arrays they are stored as.
func split(facts []audit.Fact) (names, values []string) {
	names, values = make([]string, len(facts)), make([]string, len(facts))
	for i, f := range facts {
		names[i], values[i] = storable(f.Name), storable(f.Value)
	}
	return names, values
}

// storable replaces what PostgreSQL text cannot hold. A tool name with a zero byte in it must not make the trail unwritable, since
// an unwritable trail stops all work.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
