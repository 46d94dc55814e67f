package views

import (
	"encoding/json"
	"strings"

	"countersign/internal/gitgateway"
	"countersign/internal/provider/github"
	"countersign/views/ui"
)

// PushView is a push as a person decides on it: read from its pack by the gateway, never told by the agent.
type PushView struct {
	github.PushArguments
	PackBytes int64 `json:"pack_bytes"`
	gitgateway.Summary
	Changes string `json:"-"` // the differences, as they were kept with the pack
}

// ReadPush reads the arguments of a push; false where they are none.
func ReadPush(arguments []byte, changes string) (PushView, bool) {
	v := PushView{Changes: changes}
	err := json.Unmarshal(arguments, &v)
	return v, err == nil && len(v.New) >= 10 && len(v.Old) >= 10 && v.Kind != ""
}

// ancestry says in words how the push stands to what is there.
func (v PushView) ancestry() string {
	commits := ui.Count(v.CommitCount, "commit", "commits")
	if v.Kind == gitgateway.Create {
		return "A new branch with " + commits + " that no branch of the repository holds yet."
	}
	return "Continues the branch by " + commits + ". Nothing of what is there is rewritten; where the branch has moved by then, GitHub refuses and nothing happens."
}

// scale is how much changes.
func (v PushView) scale() string {
	words := ui.Count(v.FileCount, "file", "files") + ", " + ui.Count(v.Additions, "line added", "lines added") + ", " + ui.Count(v.Deletions, "line removed", "lines removed")
	if v.FileCount > len(v.Files) {
		words += "; the first " + ui.Count(len(v.Files), "file is", "files are") + " listed"
	}
	return words + "."
}

// markWords say why a marked file is to be looked at first.
var markWords = map[gitgateway.Mark]string{
	gitgateway.MarkWorkflow: "workflow: runs with the repository's secrets", gitgateway.MarkSubmodule: "submodule: another repository's commit", gitgateway.MarkSymlink: "symbolic link",
	gitgateway.MarkExecutable: "becomes executable", gitgateway.MarkBinary: "binary: cannot be read here", gitgateway.MarkLarge: "more than 1 MiB",
	gitgateway.MarkSecret: "looks like it holds a secret", gitgateway.MarkInvisible: "holds characters nobody sees", gitgateway.MarkUnread: "too much to be looked through whole",
}

func markList(marks []gitgateway.Mark) string {
	words := make([]string, len(marks))
	for i, m := range marks {
		words[i] = markWords[m]
	}
	return strings.Join(words, "; ")
}

// warns reports whether something is to be looked at before anything else.
func (v PushView) warns() bool { return len(v.Marks) > 0 || len(v.Secrets) > 0 }
