package reachtest

import (
	"context"
	"sync"

	"countersign/internal/credential"
	"countersign/internal/fault"
	"countersign/internal/secret"
)

// Shelf is the store of one connection's credential.
type Shelf struct {
	mu      sync.Mutex
	records []credential.Record
}

// Current implements credential.Store.
func (s *Shelf) Current(_ context.Context, p credential.Place) ([]credential.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.records) == 0 || s.records[0].Place != p {
		return nil, nil
	}
	return s.records, nil
}

// Put implements credential.Store.
func (s *Shelf) Put(_ context.Context, _ credential.Place, _ int64, records []credential.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = records
	return nil
}

// Reseal implements credential.Store; no key is rotated here.
func (s *Shelf) Reseal(context.Context, credential.Record, secret.Sealed) error {
	return fault.Stale("Nothing is sealed again here.")
}

// Shred implements credential.Store.
func (s *Shelf) Shred(context.Context, credential.Place) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = nil
	return nil
}
