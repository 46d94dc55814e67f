// Package checkout owns where the source tree is that a test or a tool of this repository runs in. It never asks the compiler, which
// forgets it with -trimpath, and the server never asks at all.
package checkout

import (
	"errors"
	"os"
	"path/filepath"
)

// Root is the nearest folder with a go.mod, from the working directory upwards; a test's is its package's folder.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working directory: run this inside the repository")
		}
		dir = up
	}
}
