package agent_test

import (
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
