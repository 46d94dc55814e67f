package githubtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// described is a repository in the shape of the REST API, as far as the product could read it.
func described(name string, id int64) map[string]any {
	owner, short, _ := strings.Cut(name, "/")
	return map[string]any{
		"id": id, "name": short, "full_name": name, "owner": map[string]any{"login": owner, "id": 1}, "private": id%2 == 0, "archived": strings.HasSuffix(name, "-old"),
		"default_branch": "main", "permissions": map[string]bool{"admin": false, "push": true, "pull": true}, "clone_url": "https://github.com/" + name + ".git",
	}
}

func (s *Server) number(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repos[strings.ToLower(name)]
}

// Default makes a branch the default one of every repository.
func (s *Server) Default(branch string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usual = branch
}

// Listed makes a repository that is only listed: it has a name and a number, and nothing in it.
func (s *Server) Listed(name string, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repos[strings.ToLower(name)] = id
}

// Withhold lets the list of repositories leave some out, as single sign-on does.
func (s *Server) Withhold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.withheld = true
}

func (s *Server) sso() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.withheld
}

// Unredirect ends the redirect of a name, as when somebody takes it.
func (s *Server) Unredirect(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.renamed, strings.ToLower(name))
}

// account answers what is asked about no repository by its name: one by its number, and the list of those the token sees, with a Link
// header where there are more (https://docs.github.com/en/rest/repos/repos#list-repositories-for-the-authenticated-user).
func (s *Server) account(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	repos := maps.Clone(s.repos)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if number, ok := strings.CutPrefix(r.URL.Path, "/repositories/"); ok {
		for name, id := range repos {
			if strconv.FormatInt(id, 10) == number {
				_ = json.NewEncoder(w).Encode(described(name, id))
				return
			}
		}
		http.Error(w, `{"message":"Not Found","status":"404"}`, http.StatusNotFound)
		return
	}
	if held := s.held(); held.classic {
		w.Header().Set("X-OAuth-Scopes", strings.Join(held.scopes, ", "))
	}
	if s.sso() {
		w.Header().Set("X-GitHub-SSO", "partial-results; organizations=21955855,20582480")
	}
	page, size := max(1, number(r, "page", 1)), min(100, max(1, number(r, "per_page", 30)))
	names := slices.Sorted(maps.Keys(repos))
	from, to := min(len(names), (page-1)*size), min(len(names), page*size)
	out := []map[string]any{}
	for _, name := range names[from:to] {
		out = append(out, described(name, repos[name]))
	}
	if to < len(names) {
		w.Header().Set("Link", fmt.Sprintf(`<%s/user/repos?per_page=%d&page=%d>; rel="next", <%s/user/repos?per_page=%d&page=%d>; rel="last"`, s.URL, size, page+1, s.URL, size, (len(names)+size-1)/size))
	}
	_ = json.NewEncoder(w).Encode(out)
}

func number(r *http.Request, name string, otherwise int) int {
	if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
		return n
	}
	return otherwise
}
