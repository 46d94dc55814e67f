// Package db owns the PostgreSQL side of every store: the migrations, the queries, the translation between rows and the values of
// internal/, the organization fence of each transaction, and the audit row that belongs to each change. It decides nothing that a
// fence, a role or a policy decides, calls nobody but PostgreSQL, and never runs a statement as somebody who could step around
// row-level security.
//
// A change whose commit could not be confirmed is returned as an error and never tried again here: only the caller knows whether
// doing it twice is harmless.
package db
