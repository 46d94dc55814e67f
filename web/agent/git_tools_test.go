package agent_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"countersign/internal/action"
	"countersign/internal/capability"
	"countersign/internal/gateway"
	"countersign/internal/policy"
	"countersign/internal/provider/github/githubtest"
)

// call calls a tool of GitHub as an agent does.
func (g *gitWorld) call(tool, arguments string) string {
	g.T.Helper()
	out, err := g.gateway.Call(g.T.Context(), g.run.Live, "", gateway.Call{Name: capability.Name(g.connection.Key, tool), Arguments: json.RawMessage(arguments)})
	check(g.T, err)
	return string(out)
}

func TestGitHubIsReadByTools(t *testing.T) {
	g := newGitWorld(t, policy.ReadOnly, policy.Chat)
	for _, c := range []struct{ tool, arguments, want string }{
		{"get_file", `{"repository":"acme/site","path":"README.md"}`, `"text":"hello\n"`},
		{"list_branches", `{"repository":"acme/site"}`, `\"name\":\"main\"`},
		{"get_file", `{"repository":"acme/site","path":"../../../secrets"}`, "knows no such thing"},
		{"get_file", `{"repository":"acme/other","path":"README.md"}`, "outside_resource"},
		{"get_file", `{"repository":"acme/site"}`, "invalid_arguments"},
		{"open_pull_request", `{"repository":"acme/site","title":"t","body":"b","head":"h","base":"main"}`, `"isError":true`},
	} {
		if got := g.call(c.tool, c.arguments); !strings.Contains(got, c.want) {
			t.Errorf("%s %s answers %s", c.tool, c.arguments, got)
		}
	}
	if got := g.call("list_branches", `{"repository":"acme/site"}`); strings.Contains(got, "left/out") {
		t.Errorf("an agent reads more than was chosen: %s", got)
	}
}

// TestWhatGitHubDocumentsIsRead answers each read in GitHub's published shape, and looks at what of it reaches an agent.
func TestWhatGitHubDocumentsIsRead(t *testing.T) {
	t.Parallel()
	g := newGitWorld(t, policy.Autonomous, policy.Task)
	tip := g.clone()
	g.must("site", "push", "-q", "origin", "agent/fix-1")
	for _, title := range []string{"Fix it", "Fix it more"} {
		g.call("open_pull_request", `{"repository":"acme/site","title":"`+title+`","body":"b","head":"agent/fix-1","base":"main"}`)
	}
	const one = `{"repository":"acme/site","number":2}`
	for _, c := range []struct{ tool, arguments, want string }{
		{"compare", `{"repository":"acme/site","base":"main","head":"agent/fix-1"}`, `{"status":"ahead","ahead_by":1,"behind_by":0,"files":[{"filename":"work.txt","status":"added","additions":1,"deletions":0,"patch":"diff --git`},
		{"compare", `{"repository":"acme/site","base":"agent/fix-1","head":"main"}`, `{"status":"behind","ahead_by":0,"behind_by":1,"files":[]}`},
		{"compare", `{"repository":"acme/site","base":"main","head":"main"}`, `"status":"identical"`},
		{"compare", `{"repository":"acme/site","base":"main","head":"none"}`, "knows no such thing"},
		{"list_branches", `{"repository":"acme/site"}`, `[{"name":"agent/fix-1","protected":false,"commit":{"sha":"` + tip + `"}},{"name":"main","protected":true,`},
		{"list_pull_requests", `{"repository":"acme/site","state":"all"}`, `[{"number":1,"state":"open","draft":false,"title":"Fix it","body":`},
		{"get_file", `{"repository":"acme/site","path":""}`, "invalid_arguments"},
		{"get_pull_request", one, `"mergeable":true,"checks_unknown":"The token of the connection lacks a permission that GitHub asks for here: checks=read."}`},
		{"get_pull_request", `{"repository":"acme/site","number":3}`, "knows no such thing"},
		{"list_checks", `{"repository":"acme/site","ref":"agent/fix-1"}`, "lacks a permission that GitHub asks for here: checks=read."},
	} {
		g.answers(c.tool, c.arguments, c.want)
	}
	g.github.Classic("repo")
	const runs = `{"total_count":2,"check_runs":[{"name":"build","status":"completed","conclusion":"failure"},{"name":"lint","status":"in_progress","conclusion":""}]}`
	g.answers("get_pull_request", one, `"head":{"ref":"agent/fix-1","sha":"`+tip+`"}`)
	g.answers("get_pull_request", one, `"checks":`+runs+`}`)
	g.answers("list_checks", `{"repository":"acme/site","ref":"agent/fix-1"}`, runs)
}

// answers fails unless the text that an agent reads holds the words, and nothing of what was left out of GitHub's document.
func (g *gitWorld) answers(tool, arguments, want string) {
	g.T.Helper()
	raw := g.call(tool, arguments)
	var r struct {
		Content []struct{ Text string }
	}
	check(g.T, json.Unmarshal([]byte(raw), &r))
	if len(r.Content) != 1 || !strings.Contains(r.Content[0].Text, want) || strings.Contains(raw, "left") || strings.Contains(raw, "octocat") {
		g.T.Errorf("%s %s: no %s in %s", tool, arguments, want, raw)
	}
}

// TestHostileAnswersOfGitHub lets GitHub answer reads with what it documents nowhere.
func TestHostileAnswersOfGitHub(t *testing.T) {
	t.Parallel()
	g := newGitWorld(t, policy.ReadOnly, policy.Chat)
	g.github.Classic("repo")
	const site = `{"repository":"acme/site"`
	sha := strings.Repeat("a", 40)
	base64Of := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, c := range []struct {
		tool, arguments, rest string
		status                int
		body, want            string
	}{
		{"get_file", `,"path":"x"}`, "contents/x", 200, `{"type":"file","encoding":"base64","size":0,"content":""}`, `"text":""`},
		{"get_file", `,"path":"x"}`, "contents/x", 200, `{"type":"file","encoding":"none","size":5000000,"content":""}`, "has 5000000 bytes"},
		{"get_file", `,"path":"x"}`, "contents/x", 200, `{"type":"file","encoding":"base64","name":"a\\nb","content":"` + base64Of("fine") + `\n"}`, `"text":"fine"`},
		{"get_file", `,"path":"x"}`, "contents/x", 200, `{"type":"file","encoding":"base64","content":"` + base64Of("\xff\xfe\x00") + `"}`, "is no text; it has 3 bytes"},
		{"get_file", `,"path":"x"}`, "contents/x", 200, `{"type":"file","encoding":"base64","content":"%%%"}`, "does not have the form"},
		{"get_file", `,"path":"x"}`, "contents/x", 200, `{"type":"symlink","target":"/etc/passwd"}`, "symbolic link to /etc/passwd"},
		{"get_file", `,"path":"x"}`, "contents/x", 200, `{"type":"submodule","submodule_git_url":"git://evil"}`, "is a submodule"},
		{"get_file", `,"path":"x"}`, "contents/x", 200, `"words"`, "does not have the form"},
		{"get_file", `,"path":"x"}`, "contents/x", 200, `{"type":"file","encoding":"base64","content":"` + base64Of(strings.Repeat("long", 300_000)) + `"}`, "result_too_large"},
		{"list_branches", `}`, "branches", 200, `{"name":"no list"}`, "does not have the form"},
		{"list_branches", `}`, "branches", 200, `[{"name":7}]`, "does not have the form"},
		{"list_branches", `}`, "branches", 200, `<html>login</html>`, "is not the JSON"},
		{"list_branches", `}`, "branches", 302, `elsewhere`, "under another name"},
		{"list_branches", `}`, "branches", 500, `<html>`, "answered with an error"},
		{"list_pull_requests", `}`, "pulls", 429, `slow down`, "rate limit"},
		{"list_pull_requests", `}`, "pulls", 200, strings.Repeat("[", 100_000), "is not the JSON"},
		{"get_pull_request", `,"number":1}`, "pulls/1", 200, `{"number":1,"head":{"sha":"../../../user"}}`, `"number\":1`},
		{"get_pull_request", `,"number":1}`, "pulls/1", 200, `{"number":1,"head":{"sha":"` + sha + `"}}`, `\"checks\":{\"total_count\":2`},
		{"compare", `,"base":"main","head":"../../../../user"}`, "compare/none", 200, `{}`, "knows no such thing"},
		{"compare", `,"base":"main","head":"x"}`, "compare/main...x", 200, `{"status":"ahead","ahead_by":"many"}`, "does not have the form"},
	} {
		g.github.Answer(c.rest, c.status, c.body)
		if got := g.call(c.tool, site+c.arguments); !strings.Contains(got, c.want) {
			t.Errorf("%s answered with %.80s: no %s in %.400s", c.tool, c.body, c.want, got)
		}
		g.github.Answer(c.rest, 0, "")
	}
	for _, e := range g.github.Journal() {
		if strings.Contains(e.Path, "..") && !strings.Contains(e.Path, "...") || strings.HasPrefix(e.Path, "/user") {
			t.Errorf("GitHub was asked for %s", e.Path)
		}
	}
}

func TestAPullRequestIsAnActionThatIsFoundAgain(t *testing.T) {
	g := newGitWorld(t, policy.AskUserOnWrite, policy.Task)
	const arguments = `{"repository":"acme/site","title":"Fix","body":"It was broken.","head":"agent/fix-1","base":"main"}`
	said := g.call("open_pull_request", arguments)
	if !strings.Contains(said, "NOT EXECUTED") || g.github.PullRequests() != 0 {
		t.Fatalf("it was not staged: %s", said)
	}
	a := g.pushed(said)
	g.Approve(a.ID)
	g.github.Break(githubtest.CutAfter)
	g.dispatch(a.ID)
	if now := g.Action(a.ID); now.State != action.StateUncertain || g.github.PullRequests() != 1 {
		t.Fatalf("%s with %d pull requests", now.State, g.github.PullRequests())
	}
	if now := g.settle(a.ID); now.State != action.StateSucceeded || now.Resolution != action.Reconciler || g.github.PullRequests() != 1 {
		t.Errorf("%s by %s", now.State, now.Resolution)
	}
	b := g.pushed(g.call("comment", `{"repository":"acme/site","number":1,"body":"done <!-- countersign: act_x -->"}`))
	g.Approve(b.ID)
	g.dispatch(b.ID)
	if now := g.Action(b.ID); now.State != action.StateFailed || !strings.Contains(now.ErrorSentence, "marks its own actions") {
		t.Errorf("a forged mark: %s %s", now.State, now.ErrorSentence)
	}
}

// A request for a review whose answer was lost is settled where GitHub lists everybody as asked, and left to a person where somebody is missing.
func TestARequestForAReviewIsLookedFor(t *testing.T) {
	t.Parallel()
	for names, want := range map[string]action.State{`["ada"]`: action.StateSucceeded, `["ada","eve"]`: action.StateUncertain} {
		g := newGitWorld(t, policy.AskUserOnWrite, policy.Task)
		a := g.pushed(g.call("request_review", `{"repository":"acme/site","number":1,"reviewers":`+names+`}`))
		g.Approve(a.ID)
		g.github.Break(githubtest.CutAfter)
		g.dispatch(a.ID)
		if now := g.Action(a.ID); now.State != action.StateUncertain {
			t.Fatalf("%s: the lost answer is %s", names, now.State)
		}
		g.github.Reviewed("eve")
		if now := g.settle(a.ID); now.State != want {
			t.Errorf("%s: %s by %s", names, now.State, now.Resolution)
		}
	}
}
