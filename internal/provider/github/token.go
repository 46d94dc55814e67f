package github

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"countersign/internal/gitgateway"
	"countersign/internal/provider"
)

// Token is what an answer of the API says of the token that asked.
type Token struct {
	Classic bool     // it lists scopes, if none; a fine-grained token has permissions, which no answer lists
	Scopes  []string // of a classic one
}

func tokenOf(h http.Header) Token {
	listed, classic := h[http.CanonicalHeaderKey("X-OAuth-Scopes")]
	return Token{Classic: classic, Scopes: strings.FieldsFunc(strings.Join(listed, ","), func(r rune) bool { return r == ',' || r == ' ' })}
}

// judgement is what a token may do, in sentences for the admin who pasted it.
type judgement struct {
	kind          string
	lacks, beyond []string
}

// judge compares what a token may do with what the connection is for. It reads, and changes nothing.
func (p *Provider) judge(ctx context.Context, c *provider.Conn, all []Repository) (j judgement, err error) {
	if len(all) == 0 {
		return j, nil
	}
	if j.kind = "a fine-grained token"; all[0].Token.Classic {
		j.kind = "a classic token"
		j.scopes(all[0].Token.Scopes)
	} else if err := p.permissions(ctx, c, all[0].Now, &j); err != nil {
		return j, err
	}
	var foreign, closed []string
	for _, r := range all {
		switch open, err := p.takesPushes(ctx, c, r); {
		case err != nil:
			return j, err
		case !r.MayPush:
			foreign = append(foreign, r.Name)
		case !open:
			closed = append(closed, r.Name)
		}
	}
	if len(foreign) > 0 {
		j.lacks = append(j.lacks, "Whoever made it may not push to "+strings.Join(foreign, ", ")+".")
	}
	if len(closed) > 0 {
		right := "the permission “Contents: Read and write”"
		if all[0].Token.Classic {
			right = "the scope repo"
		}
		j.lacks = append(j.lacks, "It lacks "+right+" for "+strings.Join(closed, ", ")+": agents can fetch there and not push.")
	}
	return j, nil
}

// takesPushes asks for the advertisement that a push begins with: GitHub refuses it to a token that may only read.
func (p *Provider) takesPushes(ctx context.Context, c *provider.Conn, r Repository) (bool, error) {
	body, err := p.Advertisement(ctx, c, r, gitgateway.ReceivePack, false)
	if err == nil {
		return true, body.Close()
	}
	if errors.Is(err, errBarred) {
		return false, nil
	}
	return false, err
}

// family are the scopes that repo contains. Source: "Scopes for OAuth apps" of GitHub's documentation.
var family = []string{"repo", "repo:status", "repo_deployment", "public_repo", "repo:invite", "security_events"}

func (j *judgement) scopes(held []string) {
	j.beyond = append(j.beyond, "It reaches every repository of the person who made it; a fine-grained token can be held to those named here.")
	var more []string
	for _, s := range held {
		if !slices.Contains(family, s) && s != "workflow" {
			more = append(more, s)
		}
	}
	if len(more) > 0 {
		j.beyond = append(j.beyond, "It also carries "+strings.Join(more, ", ")+", which nothing here needs.")
	}
	if slices.Contains(held, "workflow") {
		j.beyond = append(j.beyond, "With the scope workflow, a push may change what runs with the secrets of a repository.")
	}
}

// reading is a request that GitHub answers to a fine-grained token with one permission, and refuses to one without.
type reading struct {
	path       string // behind the repository
	permission string
	without    string // what agents cannot do then; empty: nothing here needs it
}

// readings are all but Metadata, which every token has. What may only be seen by writing is seen by the first write.
var readings = []reading{
	{"/branches?per_page=1", "Contents: Read", "read files or compare branches"},
	{"/pulls?per_page=1", "Pull requests: Read", "see or open pull requests"},
	{"/hooks?per_page=1", "Webhooks", ""},
	{"/keys?per_page=1", "Administration", ""},
	{"/actions/secrets?per_page=1", "Secrets", ""},
}

// permissions asks about one repository: a fine-grained token has the same permissions for all it was made for.
func (p *Provider) permissions(ctx context.Context, c *provider.Conn, name string, j *judgement) error {
	var more []string
	for _, q := range readings {
		status, header, body, err := p.reply(ctx, c, "/repos/"+name+q.path)
		switch {
		case err != nil:
			return err
		case status == http.StatusForbidden && (header.Get("Retry-After") != "" || header.Get("X-RateLimit-Remaining") == "0"):
			return answered(http.StatusTooManyRequests, nil) // which GitHub says with 403 as well
		case status == http.StatusForbidden || status == http.StatusNotFound:
			if q.without != "" {
				j.lacks = append(j.lacks, "It lacks the permission “"+q.permission+"”: agents cannot "+q.without+".")
			}
		case status != http.StatusOK:
			return answered(status, body)
		case q.without == "":
			more = append(more, q.permission)
		}
	}
	if len(more) > 0 {
		j.beyond = append(j.beyond, "It also has permissions for "+strings.Join(more, ", ")+", which nothing here needs.")
	}
	return nil
}
