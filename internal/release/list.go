package release

import (
	"strings"

	"countersign/internal/manifest"
)

// Entry is one line of `catalog list`.
type Entry struct {
	Key      string `json:"key"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Auth     string `json:"auth"` // the contracts, joined with "|" where the person chooses
	Category string `json:"category"`
	Runtime  string `json:"runtime"`
}

// List is the release as `catalog list` shows it, sorted by name.
func (r Release) List() []Entry {
	manifests := r.all().manifests
	out := make([]Entry, 0, len(manifests))
	for _, m := range manifests {
		out = append(out, Entry{Key: m.Key, Name: m.Name, Kind: string(m.Kind), Auth: contracts(m), Category: string(m.Category), Runtime: string(m.Runtime)})
	}
	return out
}

func contracts(m manifest.Manifest) string {
	var out []string
	for _, a := range m.Auth {
		out = append(out, string(a.Contract))
	}
	return strings.Join(out, "|")
}
