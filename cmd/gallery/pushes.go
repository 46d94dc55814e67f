package main

import (
	"strings"

	"countersign/internal/action"
	"countersign/internal/gitgateway"
	"countersign/internal/provider/github"
	"countersign/internal/wording"
	"countersign/views"
)

const (
	pushKey = "github-m3x8ra"
	tip     = "4f1c2a9be07d3358c16e0fa2b94d7718e3a5c60d"
	base    = "9b0de3f47a21c8856d3e1f70ac92b4415e6d8f03"
)

// pushPages are the cards of pushes: a fix, one with everything that is to be looked at, one with hostile words, and one that GitHub refused.
func pushPages() []Entry {
	fix := views.PushView{
		PackBytes: 4_812,
		Summary: gitgateway.Summary{
			Kind: gitgateway.Create, CommitCount: 1, FileCount: 2, Additions: 9, Deletions: 3,
			Commits: []gitgateway.Commit{commit(tip, "Retry the webhook only when it was refused before it was read", "Harbor agent <agent@harborpine.test>")},
			Files:   []gitgateway.File{{Path: "webhook/deliver.go", Change: "modified", Additions: 7, Deletions: 3}, {Path: "webhook/deliver_test.go", Change: "modified", Additions: 2}},
		},
		Changes: "diff --git a/webhook/deliver.go b/webhook/deliver.go\n--- a/webhook/deliver.go\n+++ b/webhook/deliver.go\n@@ -41,8 +41,12 @@ func (d *Deliverer) send(ctx context.Context, e Event) error {\n" +
			" \tresp, err := d.client.Do(req)\n \tif err != nil {\n-\t\treturn d.retry(ctx, e)\n+\t\tif !sentNothing(err) {\n+\t\t\treturn ErrUnknown\n+\t\t}\n+\t\treturn d.retry(ctx, e)\n \t}\n",
	}
	whole := views.PushView{PackBytes: 3_412_887, Changes: fix.Changes, Summary: gitgateway.Summary{
		Kind: gitgateway.Update, CommitCount: 214, FileCount: 319, Additions: 18_204, Deletions: 951,
		Marks:   []gitgateway.Mark{gitgateway.MarkWorkflow, gitgateway.MarkSubmodule, gitgateway.MarkSecret, gitgateway.MarkLarge, gitgateway.MarkBinary},
		Secrets: []string{"an AWS access key in deploy/staging.env, line 3", "a private key in certs/dev.pem, line 1"},
		Commits: []gitgateway.Commit{
			commit(tip, "Deploy from the branch", "Harbor agent <agent@harborpine.test>"),
			commit("c07e19a5d2b84f36917ac3e5086bd1f24978ae30", "Vendor the schema", "GitHub <noreply@github.com>"),
			commit("71d3b5f09ae64c8213bf570d9a8e2c46105fe7b9", "Measure the queue", "Ines Duarte <ines@harborpine.test>"),
		},
		Files: []gitgateway.File{
			{Path: ".github/workflows/deploy.yml", Change: "added", Additions: 48, Marks: []gitgateway.Mark{gitgateway.MarkWorkflow}},
			{Path: "deploy/staging.env", Change: "added", Additions: 6, Marks: []gitgateway.Mark{gitgateway.MarkSecret}},
			{Path: "certs/dev.pem", Change: "added", Additions: 28, Marks: []gitgateway.Mark{gitgateway.MarkSecret}},
			{Path: "third_party/schema", Change: "added", Additions: 1, Marks: []gitgateway.Mark{gitgateway.MarkSubmodule}},
			{Path: "docs/queue.png", Change: "added", Marks: []gitgateway.Mark{gitgateway.MarkBinary, gitgateway.MarkLarge}},
			{Path: "scripts/release", Change: "modified", Additions: 2, Deletions: 2, Marks: []gitgateway.Mark{gitgateway.MarkExecutable}},
		},
	}}
	hostile := fix
	hostile.Commits = []gitgateway.Commit{commit(tip, "Fix a typo</td><script>alert(1)</script> ‹U+202E›olleh", "‹U+200B›Tomas Lindqvist <tomas@harborpine.test>")}
	hostile.Files = []gitgateway.File{{Path: strings.Repeat("a-folder-that-never-ends/", 8) + "‹U+202E›gnp.exe", Change: "added", Additions: 1, Marks: []gitgateway.Mark{gitgateway.MarkInvisible}}}
	hostile.Marks = []gitgateway.Mark{gitgateway.MarkInvisible}
	hostile.Changes = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-safe\n+</pre><script>alert(2)</script>‹U+202E›\n"
	empty := fix
	empty.Changes, empty.FileCount, empty.Additions, empty.Deletions, empty.Files = "", 0, 0, 0, []gitgateway.File{}
	return []Entry{
		card("push", pushed(fix, "agent/eng-412-webhook", action.StateStaged)),
		card("push to look at", pushed(whole, "agent/eng-398-deploy", action.StateStaged)),
		card("push without a difference", pushed(empty, "agent/eng-412-webhook", action.StateStaged)),
		card("push, hostile", pushed(hostile, "agent/eng-412-webhook", action.StateStaged)),
		card("push refused by GitHub", pushed(fix, "agent/eng-412-webhook", action.StateFailed)),
	}
}

func commit(id, subject, committer string) gitgateway.Commit {
	return gitgateway.Commit{ID: id, Subject: subject, Author: "Harbor agent <agent@harborpine.test>", Committer: committer, At: "2026-11-30T09:41:00Z"}
}

func pushed(p views.PushView, branch string, state action.State) views.ActionView {
	p.PushArguments = github.PushArguments{Repository: "harbor/api", RepositoryID: 618_204_771, Branch: branch, Old: gitgateway.Zero, New: tip, Pack: digest}
	if p.Kind == gitgateway.Update {
		p.Old = base
	}
	a := asked(github.Push, struct {
		github.PushArguments
		PackBytes int64 `json:"pack_bytes"`
		gitgateway.Summary
	}{p.PushArguments, p.PackBytes, p.Summary})
	a.Connection, a.ConnectionName, a.Integration, a.Destination, a.Task, a.Profile = pushKey, "GitHub", "github", "https://github.com/", "ENG-412", "engineering"
	if state == action.StateFailed {
		a = concluded(a, state, "")
		a.ErrorCode, a.ErrorSentence = "upstream_error", "GitHub's rules for the repository refuse the push (GH013): the branch name is not allowed. Nothing was changed."
	}
	v := cardOf(a)
	v.Policy, v.Reviewed = oneOf("github").Policy(a.Tool)
	v.Sentence = wording.Say(v.Policy, v.Arguments, a.Tool, a.ConnectionName)
	v.Definition.Effects = "Reviewed on " + v.Policy.Reviewed + ": " + v.Policy.Why
	v.Definition.Raw = "{\n  \"name\": \"git_push_branch\"\n}"
	v.Run.Profile, v.Run.Task, v.Reads = "engineering", a.Task, nil
	v.Push = &p
	return v
}
