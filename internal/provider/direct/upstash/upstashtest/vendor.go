// Package upstashtest owns an Upstash for tests: the management API with its objects, secrets included, and a REST front before a real
// Redis, both real HTTP servers with a journal and the faults of directtest. It knows nothing of who asks.
package upstashtest

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"countersign/internal/provider/direct/directtest"
)

// The account.
const (
	Email  = "owner@harbor.example"
	APIKey = "upstash-key-0123456789abcdefghij"
)

// Vendor is the account, and one of its databases.
type Vendor struct {
	*directtest.Server           // the management API, below /v2
	Redis              *Database // its data

	mu      sync.Mutex
	objects map[string]map[string]any // by kind and id
	next    int
}

// New starts one with a Redis database, a backup of it, a vector and a search index, and a team.
func New(t testing.TB) *Vendor {
	t.Helper()
	v := &Vendor{objects: map[string]map[string]any{
		"redis/db1": {
			"database_id": "db1", "database_name": "orders", "endpoint": "orders.upstash.io", "password": "pw-canary-1234567", "rest_token": "rt-canary-1234567", "read_only_rest_token": "ro-canary-1234567",
			"url": "rediss://default:pw-canary-1234567@orders.upstash.io:6379", "tls": false, "eviction": false, "auto_upgrade": false, "daily_backup_enabled": false, "budget": 20,
		},
		"backup/b1":   {"backup_id": "b1", "name": "nightly", "database_id": "db1"},
		"vector/v1":   {"id": "v1", "name": "docs", "token": "vt-canary-1234567", "read_only_token": "vr-canary-1234567"},
		"search/s1":   {"id": "s1", "name": "site", "token": "st-canary-1234567"},
		"teams/t1":    {"team_id": "t1", "team_name": "Harbor"},
		"qstash/user": {"email": Email, "token": "qt-canary-1234567", "password": "qp-canary-1234567", "reserved_type": "free"},
	}}
	v.Server = (&directtest.Server{Name: v.name, Refuse: refuse, Next: v}).Start(t)
	v.Redis = &Database{address: Redis(t)}
	v.Redis.Server = (&directtest.Server{Name: operation, Refuse: refuse, Next: v.Redis}).Start(t)
	return v
}

// routes are the paths of the management API: what they are called, and on which object they work.
var routes = []struct {
	method, path, name string
}{
	{"GET", `/redis/databases`, "list_redis"},
	{"GET", `/redis/database/(\w+)`, "get_redis"},
	{"DELETE", `/redis/database/(\w+)`, "delete_redis"},
	{"POST", `/redis/database`, "create_redis"},
	{"POST", `/redis/rename/(\w+)`, "rename_redis"},
	{"GET", `/redis/list-backup/(\w+)`, "list_backups"},
	{"POST", `/redis/create-backup/(\w+)`, "create_backup"},
	{"DELETE", `/redis/delete-backup/\w+/(\w+)`, "delete_backup"},
	{"PATCH", `/redis/update-budget/(\w+)`, "update_budget"},
	{"POST", `/redis/enable-eviction/(\w+)`, "enable_eviction"},
	{"POST", `/redis/enable-tls/(\w+)`, "enable_tls"},
	{"PATCH", `/redis/enable-dailybackup/(\w+)`, "enable_dailybackup"},
	{"GET", `/teams`, "list_teams"},
	{"GET", `/vector/index`, "list_vector"},
	{"GET", `/vector/index/(\w+)`, "get_vector"},
	{"DELETE", `/vector/index/(\w+)`, "delete_vector"},
	{"GET", `/search`, "list_search"},
	{"GET", `/qstash/user`, "get_qstash_user"},
}

func match(r *http.Request) (name, id string) {
	for _, route := range routes {
		m := regexp.MustCompile(`^/v2` + route.path + `$`).FindStringSubmatch(r.URL.Path)
		if r.Method == route.method && m != nil {
			if len(m) > 1 {
				id = m[1]
			}
			return route.name, id
		}
	}
	return r.URL.Path, ""
}

func (v *Vendor) name(r *http.Request) string {
	name, _ := match(r)
	return name
}

// kindOf is where the objects of an operation are.
func kindOf(name string) string {
	_, kind, _ := strings.Cut(name, "_")
	switch kind = strings.TrimSuffix(kind, "s"); kind {
	case "backup", "vector", "search", "team":
		return kind
	}
	return "redis"
}

// ServeHTTP does the vendor's work.
func (v *Vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if user, key, ok := r.BasicAuth(); !ok || user != Email || key != APIKey {
		http.Error(w, "invalid authorization header", http.StatusUnauthorized)
		return
	}
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body) // most requests have none
	name, id := match(r)
	kind := kindOf(name)
	at := v.objects[kind+"/"+id]
	verb, _, _ := strings.Cut(name, "_")
	answer := any("OK")
	switch {
	case name == "get_qstash_user":
		answer = v.objects["qstash/user"]
	case verb == "list":
		answer = v.list(kind)
	case verb == "create":
		v.next++
		id = kind + strconv.Itoa(v.next)
		made := map[string]any{"database_id": id, "backup_id": id, "id": id, "password": "pw-canary-7654321", "rest_token": "rt-canary-7654321"}
		maps.Copy(made, body)
		v.objects[kind+"/"+id], answer = made, made
	case at == nil:
		http.Error(w, `"database not found"`, http.StatusNotFound)
		return
	case verb == "get":
		answer = at
	case verb == "delete":
		delete(v.objects, kind+"/"+id)
	case name == "rename_redis":
		at["database_name"], answer = body["name"], at
	case name == "update_budget":
		at["budget"] = body["budget"]
	case name == "enable_eviction":
		at["eviction"] = true
	case name == "enable_tls":
		at["tls"], answer = true, at
	case name == "enable_dailybackup":
		at["daily_backup_enabled"] = true
	}
	if r.Method != http.MethodGet {
		v.Note(name, id)
	}
	directtest.JSON(w, "application/json", http.StatusOK, answer)
}

func (v *Vendor) list(kind string) []any {
	out := []any{}
	for _, key := range slices.Sorted(maps.Keys(v.objects)) {
		if strings.HasPrefix(key, kind+"/") || strings.HasPrefix(key, kind+"s/") {
			out = append(out, v.objects[key])
		}
	}
	return out
}
