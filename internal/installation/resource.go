package installation

import (
	"encoding/json"

	"countersign/internal/manifest"
)

// Outside says why a call leaves the resource that the connection is bound to; empty when it stays inside or its tool policy names no
// bound. An argument that is missing or not the very text of the setting is outside: fail closed.
func Outside(m manifest.Manifest, c Connection, tool string, arguments []byte) string {
	p, ok := m.Policy(tool)
	if !ok || p.Resource == nil || p.Resource.Setting == "" {
		return ""
	}
	allowed := c.Settings[p.Resource.Setting]
	if allowed == "" {
		return ""
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &members); err != nil {
		return "The arguments name no " + p.Resource.Setting + "."
	}
	var given string
	raw := members[p.Resource.Argument]
	if json.Unmarshal(raw, &given) != nil {
		given = string(raw) // a number is compared as written
	}
	if given != allowed {
		return "This connection is limited to one " + p.Resource.Setting + ", and the call names another."
	}
	return ""
}
