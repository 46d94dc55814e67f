package gateway

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/fault"
	"countersign/internal/gitgateway"
	"countersign/internal/identity"
	"countersign/internal/provider/github"
	"countersign/internal/reach"
	"countersign/internal/registry"
)

// Git is what the gateway needs for repositories.
type Git struct {
	Packs   Packs
	Mirrors *gitgateway.Mirrors
	Limits  gitgateway.PackLimits // zero: the default ones
}

// Packs keeps the pack of a push until it is delivered, and what a person reads of it.
type Packs interface {
	Keep(ctx context.Context, org identity.OrgID, key connector.Key, p gitgateway.Pack, diff string, from io.Reader) error
}

// byGit reports whether a tool stands for what git does. It is neither listed nor called.
func (t target) byGit() bool {
	return t.grant.Connection.Kind == registry.Git && (t.tool == github.Fetch || t.tool == github.Push)
}

var usedByGit = fault.New(fault.Forbidden, fault.ToolNotGranted, "This is done with git, not by a call.", "Use git with the remote of the gateway configuration: clone, fetch, and push a branch.")

// Repository is one repository that a run may use now, for fetching or for one push.
type Repository struct {
	gateway *Gateway
	live    capability.Live
	target  target
	line    *reach.Line
	github  *github.Provider
	found   github.Repository
}

// OpenRepository judges whether a run may fetch from a repository, or push to it at all. A refusal is recorded like that of a call.
func (g *Gateway) OpenRepository(ctx context.Context, l capability.Live, key connector.Key, name string, push bool) (*Repository, error) {
	r := &Repository{gateway: g, live: l}
	tool := github.Fetch
	if push {
		tool = github.Push
	}
	if err := r.open(ctx, key, name, tool); err != nil {
		return nil, r.refused(ctx, tool, err)
	}
	return r, nil
}

func (r *Repository) open(ctx context.Context, key connector.Key, name, tool string) error {
	grant, ok := r.live.Find(key)
	if !ok || grant.Connection.Kind != registry.Git {
		return noRepository
	}
	minted, ok := grant.Minted.Find(tool)
	if !ok {
		return noRepository
	}
	r.target = targetOf(grant, minted)
	var err error
	if r.line, _, err = r.gateway.admit(ctx, r.live, r.target); err != nil {
		return err
	}
	if r.github, ok = r.line.Provider.(*github.Provider); !ok {
		return noRepository
	}
	r.found, err = r.github.Repository(ctx, r.line.Conn, name, tool == github.Push)
	return err
}

var noRepository = fault.New(fault.Forbidden, fault.ToolNotGranted, "This run has no such repository, or may not do this with it.", "Use what the gateway configuration lists under git.")

// refused records why, and answers it.
func (r *Repository) refused(ctx context.Context, tool string, why error) error {
	if _, err := r.gateway.refused(ctx, r.live, r.target, Call{Name: tool}, why); err != nil {
		return err
	}
	return why
}

// Advertise writes what the repository has, as far as an agent may see it.
func (r *Repository) Advertise(ctx context.Context, w io.Writer, s gitgateway.Service, v2 bool) error {
	answer, err := r.github.Advertisement(ctx, r.line.Conn, r.found, s, v2)
	if err != nil {
		return r.refused(ctx, r.target.tool, err)
	}
	defer answer.Close()
	return gitgateway.Advertise(w, answer, s)
}

// Fetch answers one request of a fetch as its pack comes. The line of the trail is written before the first byte leaves.
func (r *Repository) Fetch(ctx context.Context, w io.Writer, v2 bool, body []byte) error {
	list, err := gitgateway.ListsRefs(body, v2)
	if err != nil {
		return r.refused(ctx, github.Fetch, err)
	}
	answer, err := r.github.Upload(ctx, r.line.Conn, r.found, v2, body)
	if err != nil {
		return r.refused(ctx, github.Fetch, err)
	}
	defer answer.Close()
	if list {
		return gitgateway.HideRefs(w, answer)
	}
	if err := r.record(ctx, len(body)); err != nil {
		return err
	}
	_, err = io.CopyBuffer(w, answer, make([]byte, 64<<10))
	return err
}

func (r *Repository) record(ctx context.Context, asked int) error {
	key := r.target.key().String()
	return r.gateway.recordRead(ctx, r.target.grant.Connection.DurableReads, audit.Entry{
		Org: r.live.Org.ID, Actor: agent(r.live.Run), Event: audit.ToolRead, Object: audit.Object{Kind: "connection", ID: key},
		Facts: []audit.Fact{
			{Name: "tool", Value: key + "/" + github.Fetch},
			{Name: "run", Value: string(r.live.Run.ID)},
			{Name: "outcome", Value: "ok"},
			{Name: "repository", Value: r.found.Name},
			{Name: "argument_bytes", Value: strconv.Itoa(asked)},
		},
	})
}

// Push takes one push: its pack is looked at in quarantine and kept, and it becomes an action like any other effect. Tell is given
// what git's user may read meanwhile. The answer says what became of it; the error is for what is no answer to this push.
func (r *Repository) Push(ctx context.Context, p gitgateway.Push, body io.Reader, tell func(string)) (gitgateway.Answer, error) {
	a, refusal, err := r.push(ctx, p, body, tell)
	if err != nil {
		if err = r.refused(ctx, github.Push, err); ours(fault.Of(err)) {
			return gitgateway.Answer{}, err
		}
		return gitgateway.Refused(fault.Of(err)), nil
	}
	return r.gateway.sayPush(a, refusal), nil
}

func (r *Repository) push(ctx context.Context, p gitgateway.Push, body io.Reader, tell func(string)) (action.Action, *fault.Error, error) {
	file, err := os.CreateTemp("", "countersign-pack-")
	if err != nil {
		return action.Action{}, nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	limits := r.gateway.Git.Limits
	if limits == (gitgateway.PackLimits{}) {
		limits = gitgateway.DefaultPackLimits
	}
	pack, err := limits.Receive(file, body)
	if err != nil {
		return action.Action{}, nil, err
	}
	rules, err := gitgateway.ParseRules(r.target.grant.Connection.Settings[github.BranchesSetting])
	if err != nil {
		return action.Action{}, nil, err
	}
	if refused := rules.Allows(p.Branch(), r.found.DefaultBranch); refused != nil {
		return action.Action{}, nil, refused
	}
	proposal, prior, err := r.before(ctx, p)
	if err != nil || prior.ID != "" {
		return prior, nil, err
	}
	tell("Countersign looks through the push …")
	summary, err := r.look(ctx, p, file)
	if err != nil {
		return action.Action{}, nil, err
	}
	return r.stage(ctx, p, pack, file, summary, proposal)
}

// before finds the action that this very push is already. One that ended without anything having been pushed is asked for anew, as a retry
// of it; what a person denied stays denied.
func (r *Repository) before(ctx context.Context, p gitgateway.Push) (action.Proposal, action.Action, error) {
	const most = 200
	list, err := r.gateway.Actions.Actions(ctx, r.live.Org.ID, action.Filter{Run: r.live.Run.ID, Connection: r.target.key(), Tool: github.Push, Limit: most})
	if err != nil {
		return action.Proposal{}, action.Action{}, err
	}
	for _, a := range list { // newest first
		asked, err := github.ReadPush(a.Arguments)
		if err != nil || asked.RepositoryID != r.found.ID || asked.Branch != p.Branch() || asked.Old != p.Old || asked.New != p.New {
			continue
		}
		switch a.State {
		case action.StateFailed, action.StateExpired, action.StateCancelled, action.StateClosedUnknown:
			return action.Proposal{
				Key: "retry:" + string(a.ID), ExplicitKey: true, RetryOf: a.ID, AlwaysAsk: a.State == action.StateClosedUnknown,
				Justification: "Pushed again after the action before it was " + string(a.State) + ".",
			}, action.Action{}, nil
		}
		return action.Proposal{}, a, nil
	}
	return action.Proposal{}, action.Action{}, nil
}

// look admits the pack beside the mirror and reads from there what a person is shown.
func (r *Repository) look(ctx context.Context, p gitgateway.Push, pack *os.File) (gitgateway.Summary, error) {
	name := r.target.grant.Connection.ID + "-" + strconv.FormatInt(r.found.ID, 10)
	m, err := r.gateway.Git.Mirrors.Hold(ctx, name)
	if err != nil {
		return gitgateway.Summary{}, err
	}
	defer m.Release()
	refs, err := m.Sync(ctx, r.github.Upstream(r.line.Conn, r.found))
	if err != nil {
		return gitgateway.Summary{}, err
	}
	q, err := m.Admit(ctx, pack, p)
	if err != nil {
		return gitgateway.Summary{}, err
	}
	defer q.Close()
	return q.Summarize(ctx, p, refs, r.found.DefaultBranch)
}

// pushed are the arguments of the action: what is sent, and what a person is shown of it.
type pushed struct {
	github.PushArguments
	PackBytes int64 `json:"pack_bytes"`
	gitgateway.Summary
}

func (r *Repository) stage(ctx context.Context, p gitgateway.Push, pack gitgateway.Pack, file *os.File, s gitgateway.Summary, proposal action.Proposal) (action.Action, *fault.Error, error) {
	raw, err := json.Marshal(pushed{
		PushArguments: github.PushArguments{Repository: r.found.Name, RepositoryID: r.found.ID, Branch: p.Branch(), Old: p.Old, New: p.New, Pack: pack.Digest},
		PackBytes:     pack.Bytes, Summary: s,
	})
	if err != nil {
		return action.Action{}, nil, err
	}
	v, err := r.gateway.verify(ctx, r.live, r.target, raw)
	if err != nil {
		return action.Action{}, nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return action.Action{}, nil, err
	}
	if err := r.gateway.Git.Packs.Keep(ctx, r.live.Org.ID, r.target.key(), pack, s.Diff, file); err != nil {
		return action.Action{}, nil, err
	}
	if proposal.Key == "" {
		proposal.Key = action.DerivedKey(r.live.Run.ID, v.key(), v.tool, v.arguments)
	}
	a, err := r.gateway.stage(ctx, r.live, v, proposal)
	if err != nil || !a.ApprovedByPolicy || a.State != action.StateApproved {
		return a, nil, err
	}
	return r.gateway.deliver(ctx, a, pushPatience)
}

// pushPatience is how long git's user waits for a push that needs nobody's approval: as long as it may take.
const pushPatience = action.Lease + 10*time.Second

// sayPush answers with an action as it stands.
func (g *Gateway) sayPush(a action.Action, refusal *fault.Error) gitgateway.Answer {
	if refusal != nil {
		return gitgateway.Refused(refusal)
	}
	id, url := string(a.ID), g.approvalURL(a)
	switch a.State {
	case action.StateStaged:
		return gitgateway.Answer{Why: "staged for approval", Lines: []string{
			"staged as action " + id + ", NOT pushed: " + url,
			"A person decides until " + stamp(a.ExpiresAt) + "; then the gateway pushes it by itself. Do not push it again: that answers this same action.",
		}}
	case action.StateApproved:
		return gitgateway.Answer{Why: "approved, not pushed yet", Lines: []string{"approved as action " + id + ", NOT pushed yet; the gateway pushes it shortly: " + url}}
	case action.StateExecuting:
		return gitgateway.Answer{Why: "being pushed", Lines: []string{"action " + id + " is being pushed; it is NOT known yet what becomes of it: " + url}}
	case action.StateSucceeded:
		return gitgateway.Answer{OK: true, Lines: append([]string{"pushed as action " + id + ": " + url}, textsOf(a.Result)...)}
	case action.StateFailed:
		words := []string{"NOT pushed: action " + id + " failed. " + a.ErrorSentence, url}
		if said := textsOf(a.Result); len(said) > 0 && strings.HasPrefix(said[0], a.ErrorSentence) { // which goes on with what to do
			words[0], said = "NOT pushed: action "+id+" failed. "+said[0], said[1:]
			words = append(words, said...)
		}
		return gitgateway.Answer{Why: gitgateway.Short(a.ErrorSentence), Lines: words}
	case action.StateUncertain:
		return gitgateway.Answer{Why: "not known yet whether it arrived", Lines: []string{
			"Nobody knows yet whether action " + id + " arrived at GitHub: " + url, "Do not push it in another way; it is being found out.",
		}}
	case action.StateDenied:
		return gitgateway.Answer{Why: "denied", Lines: []string{"NOT pushed: a person denied action " + id + ". " + a.Reason, "Change the commits so that they answer the reason, and push those."}}
	}
	return gitgateway.Answer{Why: string(a.State), Lines: []string{"NOT pushed: action " + id + " is " + string(a.State) + ". " + a.ErrorSentence, "Push again if it is still needed."}}
}

// textsOf are the texts of a tool result, line by line.
func textsOf(result json.RawMessage) []string {
	var r struct {
		Content []text `json:"content"`
	}
	if json.Unmarshal(result, &r) != nil || len(r.Content) == 0 {
		return nil
	}
	return gitgateway.RemoteLines(r.Content[0].Text)
}
