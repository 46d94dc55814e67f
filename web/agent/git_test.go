package agent_test

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"countersign/db"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/fault"
	"countersign/internal/gateway"
	"countersign/internal/gitgateway"
	"countersign/internal/policy"
	"countersign/internal/provider/github/githubtest"
	"countersign/web/agent"
)

func TestGitClonesAndFetches(t *testing.T) {
	g := newGitWorld(t, policy.AskUserOnWrite, policy.Task)
	g.must("", "clone", "-q", "https://github.com/acme/site.git", "site")
	g.must("", "clone", "-q", "--depth=1", "https://github.com/acme/site", "shallow")
	g.must("", "clone", "-q", "--filter=blob:none", "https://github.com/acme/site.git", "partial")
	g.must("", "-c", "protocol.version=0", "clone", "-q", "https://github.com/acme/site.git", "old")
	g.github.Git(g.github.Dir("acme/site"), "update-ref", "refs/heads/next", "main")
	g.must("site", "fetch", "-q")
	if refs := g.must("site", "ls-remote"); strings.Contains(refs, "refs/pull/") || !strings.Contains(refs, "refs/heads/next") {
		t.Errorf("an agent sees\n%s", refs)
	}
	if refs := g.must("site", "-c", "protocol.version=0", "ls-remote"); strings.Contains(refs, "refs/pull/") {
		t.Errorf("an agent sees in version 0\n%s", refs)
	}
	if remote := g.must("site", "config", "remote.origin.url"); remote != "https://github.com/acme/site.git" {
		t.Errorf("the remote became %s", remote)
	}
	if entries := g.trail(audit.ToolRead); fact(entries[0], "repository") != "acme/site" {
		t.Errorf("the trail says %+v", entries[0])
	}
	resp, _ := g.get(g.server.URL+agent.GitPrefix+g.connection.Key.String()+"/acme/site.git/info/refs?service=git-upload-pack", g.bearer, "Cookie", "mine=1", "X-Mine", "1", "Git-Protocol", "version=2")
	for _, name := range []string{"Set-Cookie", "Www-Authenticate", "X-Reflected", "Server"} {
		if resp.StatusCode != http.StatusOK || resp.Header.Get(name) != "" {
			t.Errorf("%d: GitHub's %s reaches an agent: %q", resp.StatusCode, name, resp.Header.Get(name))
		}
	}
	for _, e := range g.github.Journal() {
		if strings.Contains(strings.Join(e.Headers.Values("Authorization"), " "), g.bearer) || e.Headers.Get("Cookie")+e.Headers.Get("X-Mine") != "" {
			t.Errorf("what is the agent's reached GitHub: %v", e.Headers)
		}
	}
	g.clean()
}

// TestAHistoryStreams clones more than anybody may hold: what was allocated on the way is a fraction of it.
func TestAHistoryStreams(t *testing.T) {
	g := newGitWorld(t, policy.ReadOnly, policy.Chat)
	const size = 32 << 20
	work := t.TempDir()
	large := make([]byte, size)
	_, _ = rand.Read(large) // it never fails, and cannot be compressed
	check(t, os.WriteFile(filepath.Join(work, "large.bin"), large, 0o600))
	g.github.Git(work, "init", "-q", "-b", "main", ".")
	for _, dir := range []string{work, g.github.Dir("acme/site")} {
		g.github.Git(dir, "config", "core.compression", "0") // which would only take time
	}
	g.github.Git(work, "add", "-A")
	g.github.Git(work, "commit", "-q", "-m", "large")
	g.github.Git(work, "push", "-q", g.github.Dir("acme/site"), "HEAD:refs/heads/large")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	said := g.must("", "clone", "--progress", "https://github.com/acme/site.git", "site")
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > size/2 {
		t.Errorf("%d MiB were allocated for a history of %d MiB", used>>20, size>>20)
	}
	if !strings.Contains(said, "remote: Counting objects: ") || !strings.Contains(said, "Receiving objects: 100%") {
		t.Errorf("git's user sees no progress:\n%s", said)
	}
}

func TestAPushIsStagedApprovedAndDelivered(t *testing.T) {
	g := newGitWorld(t, policy.AskUserOnWrite, policy.Task)
	tip := g.clone()
	said := g.fails("site", "push", "origin", "agent/fix-1")
	a := g.pushed(said)
	if !strings.Contains(said, "remote: staged as action "+string(a.ID)+", NOT pushed: "+publicURL+"/actions/"+string(a.ID)) || !strings.Contains(said, "(staged for approval)") {
		t.Errorf("git's user reads\n%s", said)
	}
	if a.State != action.StateStaged || a.Tool != "git_push_branch" || g.at("agent/fix-1") != "" || len(g.github.Pushes()) != 0 {
		t.Errorf("%s; GitHub saw %q", a.State, g.github.Pushes())
	}
	var args struct {
		Repository string
		Branch     string
		New        string
		Kind       string
		Commits    []gitgateway.Commit
		Files      []gitgateway.File
	}
	check(t, json.Unmarshal(a.Arguments, &args))
	if args.Repository != "acme/site" || args.Branch != "agent/fix-1" || args.New != tip || args.Kind != "create" || len(args.Commits) != 1 || len(args.Files) != 1 || args.Files[0].Path != "work.txt" {
		t.Errorf("a person is shown %+v", args)
	}
	if again := g.pushed(g.fails("site", "push", "origin", "agent/fix-1")); again.ID != a.ID {
		t.Errorf("pushing again made action %s", again.ID)
	}
	g.Approve(a.ID)
	g.dispatch(a.ID)
	if a = g.Action(a.ID); a.State != action.StateSucceeded || g.at("agent/fix-1") != tip {
		t.Errorf("%s (%s), the branch is at %s", a.State, a.ErrorSentence, g.at("agent/fix-1"))
	}
	if pushes := g.github.Pushes(); !slices.Equal(pushes, []string{gitgateway.Zero + " " + tip + " refs/heads/agent/fix-1"}) {
		t.Errorf("GitHub saw %q", pushes)
	}
	g.must("site", "fetch", "-q")
	second := g.commit("more.txt", "more\n")
	b := g.pushed(g.fails("site", "push", "origin", "agent/fix-1"))
	g.Approve(b.ID)
	g.dispatch(b.ID)
	if g.at("agent/fix-1") != second {
		t.Errorf("the branch was not continued: %s", g.Action(b.ID).ErrorSentence)
	}
	g.clean(said, string(a.Result))
}

func TestAnAutonomousPushIsDeliveredAtOnce(t *testing.T) {
	g := newGitWorld(t, policy.Autonomous, policy.Task)
	tip := g.clone()
	said := g.must("site", "push", "origin", "agent/fix-1")
	if g.at("agent/fix-1") != tip || g.pushed(said).State != action.StateSucceeded || !strings.Contains(said, "[new branch]") {
		t.Errorf("git's user reads\n%s", said)
	}
	if out := g.must("site", "status", "-sb"); strings.Contains(out, "ahead") {
		t.Errorf("git does not know that it pushed: %s", out)
	}
}

func TestAChatRunFetchesAndNeverPushes(t *testing.T) {
	g := newGitWorld(t, policy.Autonomous, policy.Chat)
	g.clone()
	said := g.fails("site", "push", "origin", "agent/fix-1")
	if !strings.Contains(said, "remote: ") || !strings.Contains(said, "chat") || len(g.github.Pushes()) != 0 {
		t.Errorf("git's user reads\n%s", said)
	}
}

// TestWhatIsNotOnePlainPushIsRefusedInWords lets real git try everything that is not the push of one allowed branch.
func TestWhatIsNotOnePlainPushIsRefusedInWords(t *testing.T) {
	g := newGitWorld(t, policy.Autonomous, policy.Task)
	tip := g.clone()
	g.must("site", "push", "-q", "origin", "agent/fix-1")
	g.must("site", "tag", "v1")
	before := len(g.github.Pushes())
	g.must("site", "branch", "agent/second")
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"the default branch": {[]string{"HEAD:main"}, "default branch"},
		"another branch":     {[]string{"HEAD:feature"}, "none of these"},
		"a tag":              {[]string{"v1"}, "Tags are not pushed"},
		"a delete":           {[]string{"--delete", "agent/fix-1"}, "Deleting a branch"},
		"two branches":       {[]string{"HEAD~1:refs/heads/agent/a", "HEAD:refs/heads/agent/b"}, "one branch at a time"},
		"a rewrite":          {[]string{"--force", "HEAD~1:agent/fix-1"}, "would rewrite"},
		"notes":              {[]string{"HEAD:refs/notes/x"}, "only branches"},
	} {
		said := g.fails("site", append([]string{"push", "origin"}, c.args...)...)
		if !strings.Contains(said, c.says) || !strings.Contains(said, "remote: ") {
			t.Errorf("%s: git's user reads\n%s", name, said)
		}
	}
	if said := g.fails("site", "push", "-o", "x=y", "origin", "HEAD:agent/second"); !strings.Contains(said, "push options") {
		t.Errorf("push options: %s", said)
	}
	if got := g.github.Pushes()[before:]; len(got) != 0 || g.at("agent/fix-1") != tip {
		t.Errorf("GitHub saw %q", got)
	}
}

func TestABranchThatMovedIsNeverOverwritten(t *testing.T) {
	g := newGitWorld(t, policy.AskUserOnWrite, policy.Task)
	g.clone()
	a := g.pushed(g.fails("site", "push", "origin", "agent/fix-1"))
	dir := g.github.Dir("acme/site")
	g.github.Git(dir, "update-ref", "refs/heads/agent/fix-1", "main")
	moved := g.at("agent/fix-1")
	g.Approve(a.ID)
	g.dispatch(a.ID)
	a = g.Action(a.ID)
	if a.State != action.StateFailed || g.at("agent/fix-1") != moved || !strings.Contains(a.ErrorSentence, "has moved") || a.Evidence.ProviderCode != gitgateway.Stale {
		t.Errorf("%s: %s", a.State, a.ErrorSentence)
	}
	if b := g.pushed(g.fails("site", "push", "origin", "agent/fix-1")); b.ID == a.ID || b.State != action.StateStaged { // from where the branch is now
		t.Errorf("pushed again it is %s, %s", b.ID, b.State)
	}
}

func TestALostAnswerIsFoundOut(t *testing.T) {
	for fault, want := range map[githubtest.Fault]action.State{
		githubtest.CutAfter: action.StateSucceeded, githubtest.Truncated: action.StateSucceeded, githubtest.BadGateway: action.StateSucceeded, githubtest.CutBefore: action.StateFailed,
	} {
		t.Run(string(fault), func(t *testing.T) {
			g := newGitWorld(t, policy.Autonomous, policy.Task)
			tip := g.clone()
			g.github.Break(fault)
			said := g.fails("site", "push", "origin", "agent/fix-1")
			a := g.pushed(said)
			if a.State != action.StateUncertain || !strings.Contains(said, "Nobody knows yet") {
				t.Fatalf("%s; git's user reads\n%s", a.State, said)
			}
			a = g.settle(a.ID)
			if a.State != want || a.Resolution != action.Reconciler || (g.at("agent/fix-1") == tip) != (want == action.StateSucceeded) || len(g.github.Pushes()) != 1 {
				t.Errorf("%s by %s (%+v), GitHub saw %q", a.State, a.Resolution, a.Evidence, g.github.Pushes())
			}
		})
	}
}

func TestGitHubsRefusalsAreTold(t *testing.T) {
	g := newGitWorld(t, policy.Autonomous, policy.Task)
	g.clone()
	g.github.Refuse("acme/site", "error: GH013: Repository rule violations found for refs/heads/agent/fix-1.\n- GITHUB PUSH PROTECTION\n  path: config.yml:3\n  https://github.com/acme/site/security/secret-scanning/unblock-secret/2abc")
	said := g.fails("site", "push", "origin", "agent/fix-1")
	a := g.pushed(said)
	if a.State != action.StateFailed || a.Evidence.ProviderCode != "secret_scanning" || !strings.Contains(said, "found a secret") || !strings.Contains(said, "config.yml:3") {
		t.Errorf("%s; git's user reads\n%s", a.State, said)
	}
	if strings.Contains(said+string(a.Result), "unblock-secret") {
		t.Error("an agent is shown how to let the secret through")
	}
}

func TestARepositoryIsTheOneThatWasConnected(t *testing.T) {
	g := newGitWorld(t, policy.AskUserOnWrite, policy.Task)
	g.clone()
	a := g.pushed(g.fails("site", "push", "origin", "agent/fix-1"))
	g.github.Renumber("acme/site", 43)
	g.Approve(a.ID)
	g.dispatch(a.ID)
	if a = g.Action(a.ID); a.State != action.StateFailed || a.ErrorCode != string(fault.OutsideResource) || len(g.github.Pushes()) != 0 {
		t.Errorf("%s: %s; GitHub saw %q", a.State, a.ErrorSentence, g.github.Pushes())
	}
	if said := g.fails("site", "push", "origin", "HEAD:agent/again"); !strings.Contains(said, "not the repository any more that was connected") {
		t.Errorf("git's user reads\n%s", said)
	}
}

// TestARenamedRepositoryIsFollowedByItsNumber renames a repository under a run: its old remote goes on working, for what was staged before as
// for what comes, until somebody else has the old name.
func TestARenamedRepositoryIsFollowedByItsNumber(t *testing.T) {
	t.Parallel()
	g := newGitWorld(t, policy.AskUserOnWrite, policy.Task)
	tip := g.clone()
	a := g.pushed(g.fails("site", "push", "origin", "agent/fix-1"))
	g.github.Rename("acme/site", "acme/harbor")
	g.must("site", "fetch", "-q") // what was found out a moment ago still says the old name
	g.Approve(a.ID)
	g.dispatch(a.ID)
	if a = g.Action(a.ID); a.State != action.StateSucceeded {
		t.Fatalf("%s: %s", a.State, a.ErrorSentence)
	}
	if at := g.github.Git(g.github.Dir("acme/harbor"), "rev-parse", "agent/fix-1"); at != tip {
		t.Errorf("the branch is at %s", at)
	}
	for _, c := range []struct{ tool, arguments, want string }{
		{"get_file", `{"repository":"acme/site","path":"README.md"}`, `"text":"hello\n"`},
		{"list_branches", `{"repository":"acme/site"}`, `agent/fix-1`},
		{"get_file", `{"repository":"acme/harbor","path":"README.md"}`, "outside_resource"},
	} {
		if got := g.call(c.tool, c.arguments); !strings.Contains(got, c.want) {
			t.Errorf("%s %s answers %s", c.tool, c.arguments, got)
		}
	}
	pins, err := db.Git{DB: g.DB}.Pins(t.Context(), g.Org.ID, g.connection.Key)
	if err != nil || len(pins) != 1 || pins[0] != (gitgateway.Pinned{Name: "acme/site", ID: 42, Now: "acme/harbor"}) {
		t.Errorf("it is known as %+v %v", pins, err)
	}
	if e := g.trail(audit.RepositoryRenamed); len(e) != 1 || fact(e[0], "name") != "acme/harbor" {
		t.Errorf("the trail says %+v", e)
	}
	g.github.Listed("acme/site", 7) // somebody else takes the name that is free now
	g.github.Unredirect("acme/site")
	if said := g.fails("site", "push", "origin", "HEAD:agent/again"); !strings.Contains(said, "its name was given to another one") {
		t.Errorf("git's user reads\n%s", said)
	}
}

func TestOtherAddressesAndTokensAreTurnedAway(t *testing.T) {
	g := newGitWorld(t, policy.AskUserOnWrite, policy.Task)
	base := g.server.URL + agent.GitPrefix + g.connection.Key.String()
	seen := len(g.github.Journal())
	for path, want := range map[string]int{
		"/acme/other.git/info/refs?service=git-upload-pack": http.StatusForbidden, "/acme/site.git/HEAD": http.StatusForbidden,
		"/acme/site.git/info/lfs/objects/batch": http.StatusForbidden, "/acme/site.git/info/refs": http.StatusForbidden, "/acme/s%69te.git/info/refs?service=git-upload-pack": http.StatusForbidden,
	} {
		resp, body := g.get(base+path, g.bearer)
		if resp.StatusCode != want || len(strings.Split(strings.TrimSpace(body), "\n")) != 2 {
			t.Errorf("%s: %d %q", path, resp.StatusCode, body)
		}
	}
	for _, token := range []string{"", "wrong", g.bearer + "x"} {
		if resp, _ := g.get(base+"/acme/site.git/info/refs?service=git-upload-pack", token); resp.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Basic ") {
			t.Errorf("%q: %d", token, resp.StatusCode)
		}
	}
	if now := len(g.github.Journal()); now != seen {
		t.Errorf("GitHub was asked %d times", now-seen)
	}
}

func (g *gitWorld) get(address, token string, headers ...string) (*http.Response, string) {
	g.T.Helper()
	req, err := http.NewRequestWithContext(g.T.Context(), http.MethodGet, address, nil)
	check(g.T, err)
	req.SetBasicAuth("x", token)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	check(g.T, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	check(g.T, err)
	return resp, string(body)
}

// TestAPushCannotBeWrittenByHand calls the tools that stand for git: what an agent wrote into them, a person would be shown as a push.
func TestAPushCannotBeWrittenByHand(t *testing.T) {
	g := newGitWorld(t, policy.AskUserOnWrite, policy.Task)
	tools, err := g.gateway.Tools(t.Context(), g.run.Live, "")
	check(t, err)
	if strings.Contains(string(tools), "git_push_branch") || strings.Contains(string(tools), "git_fetch") {
		t.Error("git's own tools are listed")
	}
	name := capability.Name(g.connection.Key, "git_push_branch")
	answer, err := g.gateway.Call(t.Context(), g.run.Live, "", gateway.Call{Name: name, Arguments: json.RawMessage(`{"repository":"acme/site","repository_id":42,"branch":"agent/x","old":"0","new":"1","kind":"create","pack":"x"}`)})
	check(t, err)
	if !strings.Contains(string(answer), `"code":"tool_not_granted"`) || !strings.Contains(string(answer), "with git") {
		t.Errorf("a push written by hand: %s", answer)
	}
	config := capability.ConfigOf(g.run.Live, publicURL)
	if len(config.Git) != 1 || config.Git[0].InsteadOf != "https://github.com/acme/Site" || !strings.HasSuffix(config.Git[0].URL, "/acme/Site.git") {
		t.Errorf("the configuration says %+v", config.Git)
	}
}
