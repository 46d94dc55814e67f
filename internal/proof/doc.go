// Package proof holds the proof of the action lifecycle: random operations against the stores and a model of a page, and crashes of real
// processes with the Sandbox CRM's journal as the truth. It is tests only. docs/proof.md says which test falls when a guard is removed;
// `make soak` runs them for as long as you like. Nothing of the product imports it, and no production code has a hook for it: whatever
// goes wrong here is done from outside, with signals, sockets and the database's own triggers.
package proof
