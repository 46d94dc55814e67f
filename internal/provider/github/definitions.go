package github

import (
	"strconv"
	"strings"
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
		apiRead("get_file", "Reads one file of a repository, or lists a folder.", `"path":`+text(500)+`,"ref":`+text(250), "path"),
		apiRead("list_branches", "Lists the branches of a repository, 100 a page.", page),
		apiRead("compare", "Compares two branches or commits: how far they are apart, and which files differ.", `"base":`+text(250)+`,"head":`+text(250), "base", "head"),
		apiRead("list_pull_requests", "Lists the pull requests of a repository, newest first, 50 a page.", `"state":{"enum":["open","closed","all"]},`+page),
		apiRead("get_pull_request", "Reads one pull request, with the checks of its newest commit where the token may see them.", number, "number"),
		apiRead("list_checks", "Lists the checks of a branch or commit with what came of them.", `"ref":`+text(250), "ref"),
		apiEffect("open_pull_request", "Opens a pull request from a branch of the repository.",
			`"title":`+text(250)+`,"body":`+text(60000)+`,"head":{"type":"string","maxLength":250,"pattern":"^[^:]+$"},"base":`+text(250)+`,"draft":{"type":"boolean"}`, "title", "body", "head", "base"),
		apiEffect("comment", "Comments on a pull request or an issue.", number+`,"body":`+text(60000), "number", "body"),
		apiEffect("request_review", "Asks people to review a pull request.", number+`,"reviewers":{"type":"array","minItems":1,"maxItems":15,"items":{"type":"string","pattern":"^[A-Za-z0-9-]{1,39}$"}}`, "number", "reviewers"),
	}
	out := make([]provider.Definition, len(raws))
	for i, raw := range raws {
		out[i] = provider.Define([]byte(raw))
	}
	return out
})

const (
	page   = `"page":{"type":"integer","minimum":1,"maximum":1000}`
	number = `"number":{"type":"integer","minimum":1}`
)

func text(most int) string {
	return `{"type":"string","minLength":1,"maxLength":` + strconv.Itoa(most) + `}`
}

func apiRead(name, description, properties string, required ...string) string {
	return define(name, description, properties, `"readOnlyHint":true`, required)
}

func apiEffect(name, description, properties string, required ...string) string {
	return define(name, description, properties, `"readOnlyHint":false,"destructiveHint":false`, required)
}

// define is the definition of a tool that names one of the connection's repositories. All its parts are literals of this file.
func define(name, description, properties, hints string, required []string) string {
	return `{"name":"` + name + `","description":"` + description + `","inputSchema":{"type":"object","required":["` + strings.Join(append([]string{"repository"}, required...), `","`) +
		`"],"properties":{"repository":{"type":"string","pattern":"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$","description":"owner/name, one of the connection's"},` + properties +
		`},"additionalProperties":false},"annotations":{` + hints + `,"openWorldHint":true}}`
}
