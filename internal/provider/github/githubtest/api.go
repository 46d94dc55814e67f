package githubtest

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// api answers the part of the REST API that the product uses. Path is behind /repos/.
func (s *Server) api(w http.ResponseWriter, r *http.Request, path string, body []byte, fault Fault) {
	parts := strings.SplitN(path, "/", 3)
	if len(parts) < 2 {
		http.NotFound(w, r)
		return
	}
	name, rest := strings.ToLower(parts[0]+"/"+parts[1]), strings.Join(parts[2:], "")
	if s.moved(name) != "" {
		at := s.URL + "/repositories/" + strconv.FormatInt(s.number(s.moved(name)), 10)
		w.Header().Set("Location", at)
		http.Error(w, `{"message":"Moved Permanently","url":"`+at+`","documentation_url":"https://docs.github.com/rest/guides/best-practices-for-using-the-rest-api#follow-redirects"}`, http.StatusMovedPermanently)
		return
	}
	s.mu.Lock()
	id := s.repos[name]
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if id != 0 && !s.lets(w, rest, r.Method) {
		return
	}
	if said := s.answer(rest); said != nil {
		w.WriteHeader(said.status)
		_, _ = io.WriteString(w, said.body)
		return
	}
	document, status := any(nil), http.StatusOK
	switch {
	case id == 0:
	case r.Method == http.MethodPost:
		status = http.StatusCreated
		if document = s.made(name, rest, body); document != nil && fault == CutAfter {
			panic(http.ErrAbortHandler)
		}
	default:
		document = s.document(name, id, rest)
	}
	if document == nil {
		http.Error(w, `{"message":"Not Found","status":"404"}`, http.StatusNotFound)
		return
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document)
}

func (s *Server) document(name string, id int64, rest string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind, what, _ := strings.Cut(rest, "/")
	switch {
	case rest == "":
		out := described(name, id)
		if s.usual != "" {
			out["default_branch"] = s.usual
		}
		return out
	case kind == "compare":
		return s.compared(name, what)
	case kind == "contents":
		return s.contents(name, what)
	case kind == "branches":
		return s.branches(name)
	case kind == "commits" && strings.HasSuffix(what, "/check-runs"):
		return checkRuns
	case kind == "pulls" && what != "" && !strings.Contains(what, "/"):
		n, err := strconv.Atoi(what)
		if err != nil || n < 1 || n > len(s.pulls) {
			return nil
		}
		one := maps.Clone(s.pulls[n-1]) // what only a single one has
		one["merged"], one["mergeable"], one["mergeable_state"], one["comments"], one["commits"] = false, true, "clean", 0, 1
		return one
	case rest == "pulls":
		return s.pulls
	case rest == "hooks", rest == "keys":
		return []any{}
	case rest == "actions/secrets":
		return map[string]any{"total_count": 0, "secrets": []any{}}
	case strings.HasSuffix(rest, "/comments"):
		return s.said
	case strings.HasSuffix(rest, "/requested_reviewers"):
		return map[string]any{"users": s.asked, "teams": []any{}}
	}
	return nil
}

func (s *Server) ask(name string, args ...string) ([]byte, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = s.Dir(name)
	return cmd.Output()
}

// made is what a POST makes.
func (s *Server) made(name, rest string, body []byte) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	var asked map[string]any
	if json.Unmarshal(body, &asked) != nil {
		return nil
	}
	switch {
	case rest == "pulls":
		asked = s.pullRequest(name, asked)
		s.pulls = append(s.pulls, asked)
	case strings.HasSuffix(rest, "/comments"):
		asked["id"] = len(s.said) + 1
		s.said = append(s.said, asked)
	case strings.HasSuffix(rest, "/requested_reviewers"):
		names, _ := asked["reviewers"].([]any)
		for _, name := range names {
			s.asked = append(s.asked, map[string]string{"login": name.(string)})
		}
		asked = map[string]any{"number": 1, "state": "open"}
	default:
		return nil
	}
	return asked
}

// PullRequests counts those that were opened.
func (s *Server) PullRequests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pulls)
}

// Reviewed takes somebody off the list of those who are asked to review, as GitHub does when they have.
func (s *Server) Reviewed(login string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = slices.DeleteFunc(s.asked, func(u map[string]string) bool { return u["login"] == login })
}
