package github

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"countersign/internal/action"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/gitgateway"
	"countersign/internal/provider"
	"countersign/internal/registry"
)

// apiArguments are the arguments of every tool that is an API call; each tool's schema says which of them it takes.
type apiArguments struct {
	Repository string   `json:"repository"`
	Path       string   `json:"path"`
	Ref        string   `json:"ref"`
	Base       string   `json:"base"`
	Head       string   `json:"head"`
	Number     int      `json:"number"`
	State      string   `json:"state"`
	Page       int      `json:"page"`
	Title      string   `json:"title"`
	Body       string   `json:"body"`
	Draft      bool     `json:"draft"`
	Reviewers  []string `json:"reviewers"`
}

// apiTool is one API call with fixed parts: what an agent chooses is escaped into one segment, a query value or a JSON value.
type apiTool struct {
	path func(apiArguments) string
	body func(apiArguments, string) any // of an effect: what is sent; the action's id marks what can be found again
	keep func(json.RawMessage) any      // what of the answer reaches an agent
}

var apiTools = map[string]apiTool{
	"get_file": {path: func(a apiArguments) string {
		return "/contents/" + segments(a.Path) + query("ref", a.Ref)
	}},
	"list_branches": {path: func(a apiArguments) string { return "/branches?per_page=100&page=" + strconv.Itoa(max(1, a.Page)) }, keep: keeping([]branch{})},
	"compare": {path: func(a apiArguments) string {
		return "/compare/" + url.PathEscape(a.Base) + "..." + url.PathEscape(a.Head) + "?per_page=50"
	}, keep: keeping(comparison{})},
	"list_pull_requests": {path: func(a apiArguments) string {
		return "/pulls?per_page=50&page=" + strconv.Itoa(max(1, a.Page)) + "&state=" + url.QueryEscape(orElse(a.State, "open"))
	}, keep: keeping([]pull{})},
	"get_pull_request": {path: func(a apiArguments) string { return "/pulls/" + strconv.Itoa(a.Number) }, keep: keeping(pull{})},
	"list_checks":      {path: func(a apiArguments) string { return checksPath(a.Ref) }, keep: keeping(checks{})},
	"open_pull_request": {path: func(apiArguments) string { return "/pulls" }, body: func(a apiArguments, id string) any {
		return map[string]any{"title": a.Title, "head": a.Head, "base": a.Base, "draft": a.Draft, "body": a.Body + marker(id)}
	}, keep: keeping(pull{})},
	"comment": {path: func(a apiArguments) string { return "/issues/" + strconv.Itoa(a.Number) + "/comments" }, body: func(a apiArguments, id string) any {
		return map[string]any{"body": a.Body + marker(id)}
	}, keep: keeping(comment{})},
	"request_review": {path: func(a apiArguments) string {
		return "/pulls/" + strconv.Itoa(a.Number) + "/requested_reviewers"
	}, body: func(a apiArguments, _ string) any { return map[string]any{"reviewers": a.Reviewers} }, keep: keeping(pull{})},
}

// marker is invisible on GitHub's page, and by it a text whose answer was lost is found again.
func marker(id string) string { return "\n\n" + marked + " " + id + " -->" }

const marked = "<!-- countersign:"

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func query(name, value string) string {
	if value == "" {
		return ""
	}
	return "?" + name + "=" + url.QueryEscape(value)
}

// segments escapes a path of a repository segment by segment; what would leave it becomes a segment that does not exist.
func segments(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i, p := range parts {
		if p == "." || p == ".." {
			p = "-"
		}
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// What of GitHub's documents reaches an agent.
type (
	branch struct {
		Name      string `json:"name"`
		Protected bool   `json:"protected"`
		Commit    struct {
			SHA string `json:"sha"`
		} `json:"commit"`
	}
	end struct {
		Ref string `json:"ref"`
		SHA string `json:"sha"`
	}
	pull struct {
		Number    int    `json:"number"`
		State     string `json:"state"`
		Draft     bool   `json:"draft"`
		Title     string `json:"title"`
		Body      string `json:"body,omitempty"`
		HTMLURL   string `json:"html_url"`
		Head      end    `json:"head"`
		Base      end    `json:"base"`
		Mergeable *bool  `json:"mergeable,omitempty"`
		Merged    bool   `json:"merged,omitempty"`
	}
	comparison struct {
		Status  string `json:"status"`
		AheadBy int    `json:"ahead_by"`
		Behind  int    `json:"behind_by"`
		Files   []struct {
			Name      string `json:"filename"`
			Status    string `json:"status"`
			Additions int    `json:"additions"`
			Deletions int    `json:"deletions"`
			Patch     string `json:"patch,omitempty"`
		} `json:"files"`
	}
	reviewer struct {
		Login string `json:"login"`
	}
	comment struct {
		ID      int64  `json:"id"`
		HTMLURL string `json:"html_url"`
		Body    string `json:"body,omitempty"`
	}
)

// keeping reads a document as T and so drops the rest of it.
func keeping[T any](T) func(json.RawMessage) any {
	return func(raw json.RawMessage) any {
		var t T
		if json.Unmarshal(raw, &t) != nil {
			return nil
		}
		return t
	}
}

// call is one API call of a run: the tool, its arguments and the repository they name, looked at anew where that is wanted.
func (p *Provider) call(ctx context.Context, c *provider.Conn, call provider.Call, fresh bool) (apiTool, apiArguments, Repository, error) {
	tool, ok := apiTools[call.Tool]
	if !ok {
		return tool, apiArguments{}, Repository{}, byGit
	}
	var a apiArguments
	if err := json.Unmarshal(call.Arguments, &a); err != nil {
		return tool, a, Repository{}, fault.New(fault.Invalid, fault.InvalidArguments, "The arguments cannot be read.", "Send them as the tool's input schema describes.").Wrap(err)
	}
	r, err := p.Repository(ctx, c, a.Repository, fresh)
	return tool, a, r, err
}

// Read implements provider.Provider.
func (p *Provider) Read(ctx context.Context, c *provider.Conn, call provider.Call) (provider.Result, error) {
	tool, a, r, err := p.call(ctx, c, call, false)
	if err != nil {
		return provider.Result{}, err
	}
	if tool.body != nil {
		return provider.Result{}, fault.New(fault.Internal, fault.CodeInternal, "An effect was called as a read.", "")
	}
	var raw json.RawMessage
	if _, err := p.get(ctx, c, "/repos/"+r.Now+tool.path(a), &raw); err != nil {
		return provider.Result{}, err
	}
	text, ok := textOf(call.Tool, tool, raw)
	if !ok {
		return provider.Result{}, provider.Upstream("GitHub's answer does not have the form that it documents.", nil)
	}
	if call.Tool == "get_pull_request" {
		text = p.withChecks(ctx, c, r, raw, text)
	}
	out := said(text)
	if len(out) > c.Settings.MaxResult {
		return provider.Result{}, provider.TooLarge(nil)
	}
	return provider.Result{Raw: out, Size: len(raw)}, nil
}

// textOf is what of an answer reaches an agent; false where it has another form than GitHub documents.
func textOf(name string, tool apiTool, raw json.RawMessage) (string, bool) {
	if name == "get_file" {
		return fileText(raw)
	}
	kept := tool.keep(raw)
	if kept == nil {
		return "", false
	}
	text, _ := json.Marshal(kept) // texts and numbers always marshal
	return string(text), true
}

// said is an MCP tool result.
func said(text string) json.RawMessage {
	out, _ := json.Marshal(map[string]any{"content": []map[string]string{{"type": "text", "text": text}}, "isError": false})
	return out
}

// effect sends one API call that changes something, once.
func (p *Provider) effect(ctx context.Context, c *provider.Conn, call provider.Call) action.Outcome {
	tool, a, r, err := p.call(ctx, c, call, true) // what was approved for one repository must not meet another, nor a redirect
	switch {
	case err == nil && tool.body == nil:
		err = byGit
	case err == nil && strings.Contains(a.Body, marked):
		err = fault.New(fault.Invalid, fault.InvalidArguments, "The text holds what the gateway marks its own actions with.", "Write it without.")
	}
	if err != nil {
		return unsent(fault.Of(err).Code, fault.Of(err).What+" Nothing was sent.")
	}
	endpoint, err := c.Endpoint(registry.API)
	if err != nil {
		return unsent(fault.ConnectionUnavailable, fault.Of(err).What)
	}
	body, err := json.Marshal(tool.body(a, call.Action))
	if err != nil {
		return unsent(fault.CodeInternal, "The request could not be made; nothing was sent.")
	}
	ctx, watch := egress.Observe(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(endpoint.URL, "/")+"/repos/"+r.Now+tool.path(a), bytes.NewReader(body))
	if err != nil {
		return unsent(fault.CodeInternal, "The request could not be made; nothing was sent.")
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", userAgent)
	resp, err := endpoint.Writer.Do(req)
	if err != nil {
		o, _ := action.Classify(watch.Record())
		return o
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAPIAnswer)) // the status is the evidence
	o, settled := action.Classify(watch.Record())
	if !settled {
		text, ok := textOf(call.Tool, tool, answer)
		if !ok { // it was applied all the same: the status says so
			text = "GitHub did this; its answer does not have the form that it documents."
		}
		return action.Succeeded(said(text), action.Observed(watch.Record()))
	}
	var refused struct {
		Message string `json:"message"`
		Errors  []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	if o.Kind() != action.OutcomeFailed || json.Unmarshal(answer, &refused) != nil || refused.Message == "" {
		return o
	}
	words := refused.Message
	for _, e := range refused.Errors {
		words += " " + e.Message
	}
	return o.WithAnswer(result("GitHub refused this: "+gitgateway.Clip(words, 500), "", true))
}

// lookFor is the read by which what an effect left behind is found again.
func (p *Provider) lookFor(ctx context.Context, c *provider.Conn, call provider.Call) (provider.Sighting, error) {
	_, a, r, err := p.call(ctx, c, call, true)
	if err != nil {
		return provider.Sighting{}, err
	}
	if call.Tool == "request_review" {
		return p.asked(ctx, c, r, a)
	}
	var there []struct {
		Body string `json:"body"`
	}
	path := "/issues/" + strconv.Itoa(a.Number) + "/comments?per_page=100&sort=created&direction=desc&since=" + url.QueryEscape("2020-01-01T00:00:00Z")
	if call.Tool == "open_pull_request" {
		owner, _, _ := strings.Cut(r.Now, "/")
		path = "/pulls?state=all&per_page=100&head=" + url.QueryEscape(owner+":"+a.Head) + "&base=" + url.QueryEscape(a.Base)
	}
	if _, err := p.get(ctx, c, "/repos/"+r.Now+path, &there); err != nil {
		return provider.Sighting{}, err
	}
	mark := strings.TrimSpace(marker(call.Action))
	found := false
	for _, t := range there {
		found = found || strings.Contains(t.Body, mark)
	}
	switch {
	case found:
		return provider.Sighting{Sight: provider.Applied, Sentence: "What carries the mark of this action is there."}, nil
	case len(there) >= 100: // there may be more than were looked at
		return provider.Sighting{Sight: provider.Unseen, Sentence: "There is more than GitHub lists at once, and the mark of this action is not among it."}, nil
	}
	return provider.Sighting{Sight: provider.Absent, Sentence: "Nothing there carries the mark of this action."}, nil
}

// asked looks whether everybody is asked to review, which is all that the call wanted. Who has reviewed since is listed no longer, so that
// somebody missing proves nothing.
func (p *Provider) asked(ctx context.Context, c *provider.Conn, r Repository, a apiArguments) (provider.Sighting, error) {
	var there struct {
		Users []reviewer `json:"users"`
	}
	if _, err := p.get(ctx, c, "/repos/"+r.Now+"/pulls/"+strconv.Itoa(a.Number)+"/requested_reviewers", &there); err != nil {
		return provider.Sighting{}, err
	}
	for _, wanted := range a.Reviewers {
		if !slices.ContainsFunc(there.Users, func(u reviewer) bool { return strings.EqualFold(u.Login, wanted) }) {
			return provider.Sighting{Sight: provider.Unseen, Sentence: "GitHub does not list " + wanted + " among those who are asked to review; they may have reviewed since."}, nil
		}
	}
	return provider.Sighting{Sight: provider.Applied, Sentence: "GitHub lists everybody as asked to review."}, nil
}

// looked are the effects that can be found again.
func looked(tool string) bool {
	return slices.Contains([]string{"open_pull_request", "comment", "request_review"}, tool)
}
