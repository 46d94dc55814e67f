package githubtest

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// The documents below have the members of GitHub's published shapes that matter to a reader: more than the product takes, so that a test sees
// what it leaves out. Sources: the schemas "Commit Comparison", "Diff Entry", "Content File", "Short Branch", "Pull Request", "Pull Request
// Simple" and "CheckRun" of https://github.com/github/rest-api-description.

const api, site = "https://api.github.com", "https://github.com"

var checkRuns = map[string]any{"total_count": 2, "check_runs": []map[string]any{
	{
		"id": 4, "head_sha": "ce587453ced02b1526dfb4cb910479d431683101", "node_id": "MDg6", "external_id": "", "url": api + "/left/out", "html_url": site + "/left/out", "details_url": "https://ci.example.com/left/out",
		"status": "completed", "conclusion": "failure", "started_at": "2026-11-01T01:14:52Z", "completed_at": "2026-11-01T01:16:00Z", "output": map[string]any{"title": "2 failed", "summary": "left out"}, "name": "build", "app": map[string]any{"slug": "actions"},
	},
	{"id": 5, "status": "in_progress", "conclusion": nil, "completed_at": nil, "name": "lint"},
}}

func user(login string) map[string]any {
	return map[string]any{"login": login, "id": 1, "type": "User", "site_admin": false, "url": api + "/users/" + login}
}

// pullRequest is one as GitHub lists it.
func (s *Server) pullRequest(name string, asked map[string]any) map[string]any {
	number := strconv.Itoa(len(s.pulls) + 1)
	head, _ := asked["head"].(string)
	tip, _ := s.ask(name, "rev-parse", "refs/heads/"+head)
	main, _ := s.ask(name, "rev-parse", "refs/heads/main")
	return map[string]any{
		"id": 100 + len(s.pulls), "url": api + "/repos/" + name + "/pulls/" + number, "html_url": site + "/" + name + "/pull/" + number, "diff_url": site + "/left/out.diff", "number": len(s.pulls) + 1,
		"state": "open", "locked": false, "title": asked["title"], "body": asked["body"], "draft": asked["draft"], "user": user("octocat"), "labels": []any{}, "milestone": nil, "merged_at": nil, "merge_commit_sha": nil,
		"assignees": []any{}, "requested_reviewers": []any{}, "author_association": "OWNER", "auto_merge": nil, "_links": map[string]any{"self": map[string]string{"href": api + "/left/out"}},
		"head": map[string]any{"label": "acme:" + head, "ref": head, "sha": strings.TrimSpace(string(tip)), "user": user("acme"), "repo": described(name, 42)},
		"base": map[string]any{"label": "acme:main", "ref": asked["base"], "sha": strings.TrimSpace(string(main)), "user": user("acme"), "repo": described(name, 42)},
	}
}

// compared is the comparison of base...head.
func (s *Server) compared(name, what string) any {
	base, head, _ := strings.Cut(what, "...")
	counts, err := s.ask(name, "rev-list", "--left-right", "--count", base+"..."+head)
	if err != nil {
		return nil
	}
	words := strings.Fields(string(counts))
	behind, _ := strconv.Atoi(words[0])
	ahead, _ := strconv.Atoi(words[1])
	status := map[[2]bool]string{{false, false}: "identical", {true, false}: "ahead", {false, true}: "behind", {true, true}: "diverged"}[[2]bool{ahead > 0, behind > 0}]
	files := []map[string]any{}
	changed, _ := s.ask(name, "diff", "--numstat", base+"..."+head)
	for line := range strings.Lines(string(changed)) {
		w := strings.Split(strings.TrimSpace(line), "\t")
		added, _ := strconv.Atoi(w[0])
		removed, _ := strconv.Atoi(w[1])
		patch, _ := s.ask(name, "diff", base+"..."+head, "--", w[2])
		files = append(files, map[string]any{
			"sha": "bbcd538c8e72b8c175046e27cc8f907076331401", "filename": w[2], "status": "added", "additions": added, "deletions": removed, "changes": added + removed,
			"blob_url": site + "/left/out", "raw_url": site + "/left/out", "contents_url": api + "/left/out", "patch": string(patch),
		})
	}
	return map[string]any{
		"url": api + "/left/out", "html_url": site + "/left/out", "permalink_url": site + "/left/out", "diff_url": site + "/left/out", "patch_url": site + "/left/out", "base_commit": map[string]any{}, "merge_base_commit": map[string]any{},
		"status": status, "ahead_by": ahead, "behind_by": behind, "total_commits": ahead, "commits": []any{}, "files": files,
	}
}

// contents is a file or the list of a folder.
func (s *Server) contents(name, what string) any {
	kind, err := s.ask(name, "cat-file", "-t", "main:"+what)
	if err != nil {
		return nil
	}
	if strings.TrimSpace(string(kind)) == "tree" {
		out := []map[string]any{}
		names, _ := s.ask(name, "ls-tree", "--format=%(objecttype) %(path)", "main:"+what)
		for line := range strings.Lines(string(names)) {
			is, path, _ := strings.Cut(strings.TrimSpace(line), " ")
			out = append(out, map[string]any{"type": map[string]string{"tree": "dir", "blob": "file", "commit": "submodule"}[is], "size": 1, "name": path, "path": path, "sha": "left", "url": api + "/left/out", "download_url": nil})
		}
		return out
	}
	text, _ := s.ask(name, "show", "main:"+what)
	var folded strings.Builder
	encoded := base64.StdEncoding.EncodeToString(text)
	for len(encoded) > 60 {
		folded.WriteString(encoded[:60] + "\n")
		encoded = encoded[60:]
	}
	if encoded != "" {
		folded.WriteString(encoded + "\n")
	}
	return map[string]any{
		"type": "file", "encoding": "base64", "size": len(text), "name": what, "path": what, "content": folded.String(), "sha": "3d21ec53a331a6f037a91c368710b99387d012c1", "url": api + "/left/out",
		"git_url": api + "/left/out", "html_url": site + "/left/out", "download_url": "https://raw.githubusercontent.com/left/out", "_links": map[string]string{"git": api + "/left/out"},
	}
}

func (s *Server) branches(name string) any {
	out := []map[string]any{}
	names, _ := s.ask(name, "for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads/")
	for line := range strings.Lines(string(names)) {
		branch, sha, _ := strings.Cut(strings.TrimSpace(line), " ")
		out = append(out, map[string]any{"name": branch, "commit": map[string]string{"sha": sha, "url": api + "/left/out"}, "protected": branch == "main", "protection_url": api + "/left/out"})
	}
	return out
}

// said is an answer of the test's own.
type said struct {
	status int
	body   string
}

// Answer lets every request for a part of a repository ("pulls/1") be answered so; an empty body ends that.
func (s *Server) Answer(rest string, status int, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		s.answers = map[string]said{}
	}
	if s.answers[rest] = (said{status, body}); body == "" {
		delete(s.answers, rest)
	}
}

func (s *Server) answer(rest string) *said {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a, ok := s.answers[rest]; ok {
		return &a
	}
	return nil
}
