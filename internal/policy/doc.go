// Package policy owns the pure decisions: what effect a tool has (Classify), which tools a mode makes eligible and a person may
// select (Select, Snapshot), and what happens to one call (Decide). It does no I/O, reads no clock and knows no provider, so that
// testdata/verdicts.txt can hold every answer it can ever give, to be read aloud.
package policy
