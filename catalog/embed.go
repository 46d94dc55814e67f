// Package catalog owns the manifests that Git owns, one TOML file per integration, and carries them inside the binary. It parses
// nothing: internal/release reads it, and internal/manifest says what a file may hold.
package catalog

import "embed"

//go:embed *.toml
var files embed.FS

// Files is the catalog this binary was built with.
func Files() embed.FS { return files }
