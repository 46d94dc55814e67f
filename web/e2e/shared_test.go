package e2e

import (
	"os"
	"sync"
	"testing"
)

// shared is one sandbox server for the tests that leave each other alone: they make what they need and break nothing.
var shared struct {
	once sync.Once
	s    *server
}

func sharedServer(t *testing.T) *server {
	t.Helper()
	shared.once.Do(func() {
		dir, err := os.MkdirTemp("", "e2e-data")
		must(t, err)
		s := prepare(t, dir, "COUNTERSIGN_DEMO=1")
		s.start(t)
		shared.s = s
	})
	if shared.s == nil {
		t.Fatal("the shared server did not start")
	}
	return shared.s
}

func stopShared() {
	if shared.s != nil {
		shared.s.end()
		_ = os.RemoveAll(shared.s.dir)
	}
}
