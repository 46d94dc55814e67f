package agent_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/db/dbtest/scene"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/identity"
	"countersign/internal/installation"
	"countersign/internal/policy"
	"countersign/internal/profile"
	"countersign/internal/run"
	"countersign/internal/servicetoken"
	"countersign/web/agent"
)

// TestPushesToOneBranchAtOnce pushes two commits to one new branch at the same moment: one is there afterwards, and nothing was overwritten.
func TestPushesToOneBranchAtOnce(t *testing.T) {
	t.Parallel()
	g := newGitWorld(t, policy.Autonomous, policy.Task)
	first := g.clone()
	g.must("site", "checkout", "-q", "-b", "aside", "main")
	second := g.commit("aside.txt", "aside\n")
	var said [2]string
	var both sync.WaitGroup
	for n, from := range []string{first, second} {
		both.Go(func() { said[n], _ = g.git("site", "push", "origin", from+":refs/heads/agent/race") })
	}
	both.Wait()
	won, states := g.at("agent/race"), []string{}
	for _, s := range said {
		if id := actionID.FindString(s); id != "" {
			states = append(states, string(g.Action(action.ID(id)).State))
		} else if !strings.Contains(s, "exists on GitHub already") && !strings.Contains(s, "fetch first") {
			t.Errorf("git's user reads\n%s", s)
		}
	}
	slices.Sort(states)
	if won != first && won != second || !slices.Equal(states, []string{"failed", "succeeded"}) && !slices.Equal(states, []string{"succeeded"}) {
		t.Errorf("%v, the branch is at %s, and git's users read\n%s\n%s", states, won, said[0], said[1])
	}
}

// TestWhatWasTakenAwayBeforeDelivery narrows a connection, its profile or its life between a person's approval and the sending of a push.
func TestWhatWasTakenAwayBeforeDelivery(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]func(*gitWorld){
		"the tool": func(g *gitWorld) {
			_, err := g.Service.SaveAccess(g.T.Context(), g.People[identity.Owner], installation.Access{Key: g.connection.Key, Choice: policy.Choice{Mode: policy.AskUserOnWrite, Listed: true, Tools: []string{"git_fetch"}}})
			check(g.T, err)
		},
		"the mode": func(g *gitWorld) {
			_, err := g.Service.SaveAccess(g.T.Context(), g.People[identity.Owner], installation.Access{Key: g.connection.Key, Choice: policy.Choice{Mode: policy.ReadOnly}})
			check(g.T, err)
		},
		"the connection": func(g *gitWorld) {
			_, err := g.Service.Disconnect(g.T.Context(), g.People[identity.Owner], installation.Access{Key: g.connection.Key})
			check(g.T, err)
		},
		"the profile": func(g *gitWorld) { g.profile("engineering") },
		"the branch's default": func(g *gitWorld) { // GitHub makes the very branch the default one meanwhile
			g.github.Default("agent/fix-1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGitWorld(t, policy.AskUserOnWrite, policy.Task)
			g.clone()
			a := g.pushed(g.fails("site", "push", "origin", "agent/fix-1"))
			g.Approve(a.ID)
			takes(g)
			_, _ = g.gateway.Dispatch.Dispatch(t.Context(), g.Org.ID, a.ID) // what is refused is seen below
			now := g.Action(a.ID)
			if now.State != action.StateFailed && now.State != action.StateCancelled || len(g.github.Pushes()) != 0 || g.at("agent/fix-1") != "" {
				t.Errorf("%s (%s); GitHub saw %q", now.State, now.ErrorSentence, g.github.Pushes())
			}
			if said := g.fails("site", "push", "origin", "HEAD:agent/fix-1"); !strings.Contains(said, "remote: ") {
				t.Errorf("git's user reads\n%s", said)
			}
		})
	}
}

// foreign is the bearer of a run of another organization, whose profile has the same name.
func (g *gitWorld) foreign() string {
	g.T.Helper()
	note := func(event audit.Event, kind, id string) audit.Entry { return scene.Note(g.Other.ID, event, kind, id) }
	check(g.T, g.Profiles.SaveProfile(g.T.Context(), profile.Profile{Org: g.Other.ID, Name: "engineering", Budget: 5}, note(audit.ProfileSaved, "profile", "engineering")))
	token, _, hash, err := servicetoken.New(g.Stranger, "runtime", []string{string(servicetoken.RunsWrite)})
	check(g.T, err)
	token, err = g.Tokens.SaveToken(g.T.Context(), token, hash, servicetoken.DefaultLife, note(audit.TokenCreated, "token", token.ID))
	check(g.T, err)
	bearer, digest := run.NewToken()
	_, _, err = g.Runs.Mint(g.T.Context(), capability.Order{Order: run.Order{Surface: policy.Chat, Profile: "engineering", TTL: time.Hour}, Token: token, TokenHash: digest}, note(audit.RunStarted, "run", ""))
	check(g.T, err)
	return bearer
}

// TestTokensOfOthers asks for a repository with the tokens of an ended run, of another organization's and of a run without the connection.
func TestTokensOfOthers(t *testing.T) {
	t.Parallel()
	g := newGitWorld(t, policy.Autonomous, policy.Task)
	g.clone()
	seen := len(g.github.Journal())
	at := g.server.URL + agent.GitPrefix + g.connection.Key.String() + "/acme/site.git/info/refs?service="
	g.Profile("other", 5)
	without := g.start(policy.Task, "other")
	theirs := g.foreign()
	ended := g.start(policy.Task, "engineering")
	_, err := g.Runs.End(t.Context(), g.Org.ID, ended.Live.Run.ID, scene.Note(g.Org.ID, audit.RunEnded, "run", string(ended.Live.Run.ID)))
	check(t, err)
	for name, c := range map[string]struct {
		token string
		want  int
	}{
		"a run without the connection": {without.bearer, http.StatusForbidden}, "another organization's run": {theirs, http.StatusForbidden}, "an ended run": {ended.bearer, http.StatusUnauthorized},
	} {
		for _, service := range []string{"git-upload-pack", "git-receive-pack"} {
			if resp, body := g.get(at+service, c.token); resp.StatusCode != c.want || strings.Contains(body, "acme") {
				t.Errorf("%s, %s: %d %s", name, service, resp.StatusCode, body)
			}
		}
	}
	if now := len(g.github.Journal()); now != seen {
		t.Errorf("GitHub was asked %d times", now-seen)
	}
}
