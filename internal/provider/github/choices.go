package github

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"countersign/internal/fault"
	"countersign/internal/gitgateway"
	"countersign/internal/installation"
	"countersign/internal/provider"
)

// choicePage is how many repositories are listed at once.
const choicePage = 50

// Choices is a page of the repositories that a token sees, by name. GitHub says by a Link header whether there are more; its address is not
// followed (https://docs.github.com/en/rest/using-the-rest-api/using-pagination-in-the-rest-api).
func (p *Provider) Choices(ctx context.Context, c *provider.Conn, page int) (installation.Choices, error) {
	var seen []described
	header, err := p.get(ctx, c, "/user/repos?sort=full_name&per_page="+strconv.Itoa(choicePage)+"&page="+strconv.Itoa(page), &seen)
	if errors.Is(err, provider.ErrUnauthorized) { // nobody has stored it yet, so there is nothing to renew
		return installation.Choices{}, fault.New(fault.Invalid, fault.CodeInvalid, "GitHub does not accept this token.", "Check that it was copied whole, has not expired and was not revoked.").Wrap(err)
	}
	if err != nil {
		return installation.Choices{}, err
	}
	out := installation.Choices{Page: page, More: strings.Contains(strings.Join(header.Values("Link"), ","), `rel="next"`)}
	// https://docs.github.com/en/rest/authentication/authenticating-to-the-rest-api#personal-access-tokens-and-saml-sso
	out.Hidden = strings.HasPrefix(header.Get("X-GitHub-SSO"), "partial-results")
	for _, r := range seen[:min(len(seen), choicePage)] {
		if gitgateway.IsRepository(r.FullName) { // a name of another form could not be fetched either
			out.Listed = append(out.Listed, installation.Choice{Name: r.FullName, Private: r.Private, Archived: r.Archived, Writable: r.Permissions.Push && !r.Archived})
		}
	}
	return out, nil
}
