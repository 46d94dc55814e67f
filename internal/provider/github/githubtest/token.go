package githubtest

import (
	"maps"
	"net/http"
	"strings"
)

// rights are what the token may do: the permissions of a fine-grained token ("contents": "write"), or the scopes of a classic one.
type rights struct {
	classic     bool
	scopes      []string
	permissions map[string]string
}

// enough is what the product asks people for.
var enough = rights{permissions: map[string]string{"contents": "write", "pull_requests": "write"}}

// Classic makes the token a classic one with some scopes.
func (s *Server) Classic(scopes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rights = rights{classic: true, scopes: scopes}
}

// Permit makes the token a fine-grained one with some permissions: "contents" → "read".
func (s *Server) Permit(permissions map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rights = rights{permissions: maps.Clone(permissions)}
}

func (s *Server) held() rights {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rights
}

// may reports whether a permission is there; a classic token with the scope repo has all of them.
func (r rights) may(permission, access string) bool {
	if r.classic {
		for _, scope := range r.scopes {
			if scope == "repo" {
				return true
			}
		}
		return false
	}
	has := r.permissions[permission]
	return has == "write" || has != "" && access == "read"
}

// permissionOf is what a request of the REST API needs, by what stands behind the repository. Source: "Permissions required for
// fine-grained personal access tokens" of GitHub's documentation.
func permissionOf(rest, method string) (permission, access string) {
	access = "write"
	if method == http.MethodGet {
		access = "read"
	}
	kind, _, _ := strings.Cut(rest, "/")
	switch kind {
	case "":
		return "metadata", "read"
	case "pulls", "issues":
		return "pull_requests", access
	case "commits":
		if strings.HasSuffix(rest, "/check-runs") { // which no fine-grained token can be given for a private repository
			return "checks", access
		}
	case "hooks":
		return "repository_hooks", access
	case "keys":
		return "administration", access
	case "actions":
		return "secrets", access
	}
	return "contents", access
}

// lets answers the refusal of what the token may not do, and tells a classic token's scopes.
func (s *Server) lets(w http.ResponseWriter, rest, method string) bool {
	held := s.held()
	if held.classic {
		w.Header().Set("X-OAuth-Scopes", strings.Join(held.scopes, ", "))
	}
	permission, access := permissionOf(rest, method)
	if permission == "metadata" || held.may(permission, access) {
		return true
	}
	w.Header().Set("X-Accepted-GitHub-Permissions", permission+"="+access)
	http.Error(w, `{"message":"Resource not accessible by personal access token","status":"403"}`, http.StatusForbidden)
	return false
}
