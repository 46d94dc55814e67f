package upstashtest

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"countersign/internal/provider/direct/directtest"
)

// Tokens of the database.
const (
	Token     = "rest-token-0123456789abcdefghij"
	ReadToken = "read-token-0123456789abcdefghij"
)

// Database is one Redis database over REST.
type Database struct {
	*directtest.Server
	address string
}

// reads are what the read-only token may run here: enough for the tests. Like the vendor's it refuses SCAN and KEYS as well.
var reads = []string{"GET", "EXISTS", "HGET", "HEXISTS", "SISMEMBER", "TYPE", "MGET", "TTL", "LRANGE"}

func operation(r *http.Request) string {
	if r.URL.Path == "/" || r.URL.Path == "" {
		return "command"
	}
	return strings.Trim(r.URL.Path, "/")
}

func refuse(w http.ResponseWriter, status int) {
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	directtest.JSON(w, "application/json", status, map[string]string{"error": "ERR refused"})
}

// ServeHTTP does the vendor's work.
func (d *Database) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if bearer != Token && bearer != ReadToken || r.URL.RawQuery != "" {
		directtest.JSON(w, "application/json", http.StatusUnauthorized, map[string]string{"error": "Unauthorized"})
		return
	}
	l, err := dial(d.address)
	if err != nil {
		directtest.JSON(w, "application/json", http.StatusInternalServerError, map[string]string{"error": err.Error()})
		return
	}
	defer l.conn.Close()
	var many [][]string
	if operation(r) == "command" {
		many = [][]string{nil}
		err = json.NewDecoder(r.Body).Decode(&many[0])
	} else {
		err = json.NewDecoder(r.Body).Decode(&many)
	}
	if err != nil || len(many) == 0 {
		directtest.JSON(w, "application/json", http.StatusBadRequest, map[string]string{"error": "ERR failed to parse command"})
		return
	}
	for _, c := range many {
		if bearer == ReadToken && !slices.Contains(reads, c[0]) {
			directtest.JSON(w, "application/json", http.StatusBadRequest, map[string]string{"error": "NOPERM this user has no permissions to run the '" + strings.ToLower(c[0]) + "' command"})
			return
		}
	}
	d.run(w, l, operation(r), many)
}

func (d *Database) run(w http.ResponseWriter, l *line, operation string, many [][]string) {
	switch operation {
	case "command":
		v, err := d.one(l, many[0])
		if err != nil {
			directtest.JSON(w, "application/json", http.StatusBadRequest, map[string]string{"error": err.Error()})
			return
		}
		directtest.JSON(w, "application/json", http.StatusOK, map[string]any{"result": v})
	case "pipeline":
		out := []any{}
		for _, c := range many {
			v, err := d.one(l, c)
			out = append(out, entry(v, err))
		}
		directtest.JSON(w, "application/json", http.StatusOK, out)
	case "multi-exec":
		d.transaction(w, l, many)
	default:
		http.NotFound(w, nil)
	}
}

func (d *Database) one(l *line, c []string) (any, error) {
	v, err := l.do(c...)
	if err == nil && !slices.Contains(reads, c[0]) {
		d.Note("command", strings.Join(c, " "))
	}
	return v, err
}

func entry(v any, err error) map[string]any {
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	if no, ok := v.(refusal); ok {
		return map[string]any{"error": string(no)}
	}
	return map[string]any{"result": v}
}

// transaction is MULTI, the commands, EXEC: one that cannot be queued discards them all, one that fails while it runs takes nothing back.
func (d *Database) transaction(w http.ResponseWriter, l *line, many [][]string) {
	_, err := l.do("MULTI")
	for _, c := range many {
		_, queued := l.do(c...)
		err = errors.Join(err, queued)
	}
	v, executed := l.do("EXEC")
	if err = errors.Join(err, executed); err != nil {
		directtest.JSON(w, "application/json", http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	out := []any{}
	for i, result := range v.([]any) {
		out = append(out, entry(result, nil))
		if _, failed := result.(refusal); !failed {
			d.Note("multi-exec", strings.Join(many[i], " "))
		}
	}
	directtest.JSON(w, "application/json", http.StatusOK, out)
}
