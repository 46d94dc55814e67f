package github

import (
	"sync"

	"countersign/internal/provider"
)

// definitions are the tools, as every connection lists them.
var definitions = sync.OnceValue(func() []provider.Definition {
	raws := []string{
		`{"name":"git_fetch","title":"Clone and fetch","description":"Cloning and fetching the repositories of this connection with git. It is used through the git remote, not called.",` +
			`"inputSchema":{"type":"object","properties":{},"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":true}}`,
		`{"name":"git_push_branch","title":"Push a branch","description":"Pushing one branch with git, as new or continuing what is there. It is used through the git remote, not called.",` +
			`"inputSchema":{"type":"object","required":["repository","repository_id","branch","old","new","kind","pack"],"properties":{` +
			`"repository":{"type":"string"},"repository_id":{"type":"integer"},"branch":{"type":"string"},"old":{"type":"string"},"new":{"type":"string"},` +
			`"kind":{"enum":["create","update"]},"pack":{"type":"string"},"pack_bytes":{"type":"integer"}}},"annotations":{"readOnlyHint":false,"destructiveHint":false,"openWorldHint":true}}`,
	}
	out := make([]provider.Definition, len(raws))
	for i, raw := range raws {
		out[i] = provider.Define([]byte(raw))
	}
	return out
})
