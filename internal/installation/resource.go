package installation

import "countersign/internal/manifest"

// Outside says why a call leaves the resource that the connection is bound to, narrowed by what the profile allows of each setting;
// empty when it stays inside or its tool policy names no bound. An argument that is missing or not the very text of the setting is
// outside: fail closed.
func Outside(m manifest.Manifest, c Connection, allowed map[string][]string, tool string, arguments []byte) string {
	t := m.Touches(tool, arguments)
	return t.Outside(c.Settings[t.Setting], allowed[t.Setting])
}
