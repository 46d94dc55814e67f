package github

import (
	"context"
	"encoding/json"
	"net/url"

	"countersign/internal/fault"
	"countersign/internal/gitgateway"
	"countersign/internal/provider"
)

// checks are what ran for a commit (https://docs.github.com/en/rest/checks/runs#list-check-runs-for-a-git-reference).
type checks struct {
	Total int `json:"total_count"`
	Runs  []struct {
		Name       string `json:"name"`
		Status     string `json:"status"`
		Conclusion string `json:"conclusion"`
	} `json:"check_runs"`
}

func checksPath(ref string) string {
	return "/commits/" + url.PathEscape(ref) + "/check-runs?per_page=100"
}

// checkedPull is a pull request with the checks of its newest commit, or why they are not known: GitHub gives no fine-grained token the
// right to read checks of a private repository.
type checkedPull struct {
	pull
	Checks  *checks `json:"checks,omitempty"`
	Unknown string  `json:"checks_unknown,omitempty"`
}

// withChecks adds the checks to a pull request, whose text is answered without them where there is no commit to ask about.
func (p *Provider) withChecks(ctx context.Context, c *provider.Conn, r Repository, raw json.RawMessage, text string) string {
	var out checkedPull
	if json.Unmarshal(raw, &out.pull) != nil || !gitgateway.IsCommit(out.Head.SHA) {
		return text
	}
	var found checks
	if _, err := p.get(ctx, c, "/repos/"+r.Now+checksPath(out.Head.SHA), &found); err != nil {
		out.Unknown = fault.Of(err).What
	} else {
		out.Checks = &found
	}
	whole, _ := json.Marshal(out) // texts and numbers always marshal
	return string(whole)
}
