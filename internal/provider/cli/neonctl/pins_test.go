package neonctl

import (
	"flag"
	"os"
	"testing"

	"countersign/internal/provider/cli"
)

var update = flag.Bool("update", false, "write pins.txt anew from what npm ci installed")

// What is pinned is what the lock file installs.
func TestThePins(t *testing.T) {
	now, err := cli.Pinned("../../../../node_modules", script)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("pins.txt", []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if now != pins {
		t.Error("what is installed is not what is pinned; after reading what changed, run with -update")
	}
}
