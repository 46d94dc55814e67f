package agent_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"countersign/db"
	"countersign/db/dbtest/reached"
	"countersign/db/dbtest/scene"
	"countersign/internal/action"
	"countersign/internal/dispatch"
	"countersign/internal/gateway"
	"countersign/internal/gitgateway"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/provider/github/githubtest"
	"countersign/internal/reconcile"
	"countersign/internal/registry"
	"countersign/internal/secret"
	"countersign/internal/servicetoken"
	"countersign/web/agent"
)

// gitWorld is the gateway over a scene and a GitHub with the repository acme/site.
type gitWorld struct {
	*world
	github     *githubtest.Server
	connection installation.Connection
	workspace  string
	bearer     string
	run        started
}

func newGitWorld(t *testing.T, mode policy.Mode, surface policy.Surface) *gitWorld {
	t.Helper()
	hub := githubtest.New(t)
	hub.Repository("acme/site", 42)
	s := scene.New(t)
	w := &world{Scene: s, Reached: reached.New(s, map[registry.Key]string{"github.v1/git": hub.URL, "github.v1/api": hub.URL})}
	w.token, _ = w.Token("runtime", servicetoken.RunsWrite)
	w.recorder = w.DB.NewRecorder(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { check(t, w.recorder.Close(context.Background())) })
	w.gateway = gateway.New(gateway.Config{
		Lines: w.Lines, Actions: w.Actions, Recorder: w.recorder, Trail: w.Trail, Observer: w.Service, PublicURL: publicURL,
		Dispatch: &dispatch.Dispatcher{Actions: w.Actions, Connections: w.Connections, Lines: w.Lines, Log: slog.New(slog.DiscardHandler)},
		Git:      gateway.Git{Packs: db.Git{DB: w.DB}, Mirrors: &gitgateway.Mirrors{Dir: t.TempDir()}},
	})
	t.Cleanup(func() { w.gateway.Drain(context.Background()) })
	mux := http.NewServeMux()
	mux.Handle(agent.GitPrefix, agent.NewGit(w.Runs, w.gateway))
	mux.Handle("/gateway/mcp", agent.NewMCP(w.Runs, w.gateway, "test"))
	mux.Handle("GET /gateway/config", agent.NewConfig(w.Runs, publicURL))
	w.server = httptest.NewServer(mux)
	t.Cleanup(w.server.Close)
	g := &gitWorld{world: w, github: hub, workspace: t.TempDir()}
	c, err := w.Service.Install(t.Context(), w.People[identity.Owner], installation.Setup{
		Integration: "github", Name: "GitHub", Secrets: map[string]secret.Value{"access_token": secret.New(githubtest.Token)},
		Settings: map[string]string{"repositories": "acme/Site"},
	})
	check(t, err)
	if !c.Health.OK {
		t.Fatalf("the connection does not work: %s", c.Health.What)
	}
	g.connection = w.access(c, mode)
	w.profile("engineering", g.connection)
	g.run = w.start(surface, "engineering")
	g.bearer = g.run.bearer
	return g
}

// git runs unmodified git in the workspace, set up as an agent's runtime does: the remotes stay GitHub's.
func (g *gitWorld) git(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = filepath.Join(g.workspace, dir)
	at := g.server.URL + agent.GitPrefix + g.connection.Key.String() + "/acme/site.git"
	helper := "!f() { test \"$1\" = get && echo username=run && echo password=$RUN_TOKEN; }; f"
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + g.workspace, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "RUN_TOKEN=" + g.bearer,
		"GIT_AUTHOR_NAME=Agent", "GIT_AUTHOR_EMAIL=agent@example.com", "GIT_COMMITTER_NAME=Agent", "GIT_COMMITTER_EMAIL=agent@example.com",
		"GIT_CONFIG_COUNT=3", "GIT_CONFIG_KEY_0=url." + at + ".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/acme/site",
		"GIT_CONFIG_KEY_1=credential.helper", "GIT_CONFIG_VALUE_1=" + helper, "GIT_CONFIG_KEY_2=protocol.allow", "GIT_CONFIG_VALUE_2=user",
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (g *gitWorld) must(dir string, args ...string) string {
	g.T.Helper()
	out, err := g.git(dir, args...)
	if err != nil {
		g.T.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

// fails answers what git's user reads of what does not work.
func (g *gitWorld) fails(dir string, args ...string) string {
	g.T.Helper()
	out, err := g.git(dir, args...)
	if err == nil {
		g.T.Fatalf("git %s worked:\n%s", strings.Join(args, " "), out)
	}
	return out
}

// clone is a clone with one commit on the branch agent/fix-1; it answers the commit.
func (g *gitWorld) clone() string {
	g.T.Helper()
	g.must("", "clone", "-q", "https://github.com/acme/site.git", "site")
	g.must("site", "checkout", "-q", "-b", "agent/fix-1")
	return g.commit("work.txt", "work\n")
}

func (g *gitWorld) commit(name, text string) string {
	g.T.Helper()
	check(g.T, os.WriteFile(filepath.Join(g.workspace, "site", name), []byte(text), 0o600))
	g.must("site", "add", "-A")
	g.must("site", "commit", "-q", "-m", "change "+name)
	return g.must("site", "rev-parse", "HEAD")
}

var actionID = regexp.MustCompile(`act_[a-z2-7]+`)

// pushed is the action that git's user was told of.
func (g *gitWorld) pushed(said string) action.Action {
	g.T.Helper()
	id := actionID.FindString(said)
	if id == "" {
		g.T.Fatalf("no action in:\n%s", said)
	}
	return g.Action(action.ID(id))
}

// at is where a branch of GitHub's repository is; empty where there is none.
func (g *gitWorld) at(branch string) string {
	g.T.Helper()
	return g.github.Git(g.github.Dir("acme/site"), "for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
}

// settle lets the reconciler take the turn of an uncertain action.
func (g *gitWorld) settle(id action.ID) action.Action {
	g.T.Helper()
	g.Later(id, action.SettleWindow)
	r := &reconcile.Reconciler{Actions: g.Actions, Connections: g.Connections, Lines: g.Lines, Log: slog.New(slog.DiscardHandler)}
	check(g.T, r.Probe(g.T.Context(), g.Org.ID, id))
	return g.Action(id)
}

// clean fails where GitHub's token is in anything that an agent can read.
func (g *gitWorld) clean(said ...string) {
	g.T.Helper()
	for _, s := range said {
		if strings.Contains(s, githubtest.Token) {
			g.T.Error("an answer holds the token")
		}
	}
	check(g.T, filepath.WalkDir(g.workspace, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(githubtest.Token)) {
			g.T.Errorf("%s holds the token", path)
		}
		return err
	}))
}
