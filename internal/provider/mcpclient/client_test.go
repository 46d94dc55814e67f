package mcpclient_test

import (
	"encoding/json"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"countersign/internal/provider"
	"countersign/internal/provider/providertest"
)

// rejection is the CRM's own words for "nothing was applied", as a reviewed tool policy would hold them.
var rejection = regexp.MustCompile(`^The CRM rejected this call; nothing was applied\.`)

func TestTheClientPassesTheExamAgainstTheSandboxCRM(t *testing.T) {
	w := startCRM(t)
	providertest.Run(t, w.exam())
}

func (w *world) exam() *providertest.World {
	return &providertest.World{
		Provider: client,
		Connect:  w.conn,
		Dead:     func(t *testing.T) *provider.Conn { return connTo(t, nobody(t), bearer, provider.Settings{}) },
		Revoked: func(t *testing.T) *provider.Conn {
			return connTo(t, w.url+"/mcp", "crm-secret-that-was-revoked", provider.Settings{})
		},
		Secret:   bearer,
		Read:     provider.Call{Tool: "contacts_search", Arguments: json.RawMessage(`{"query":"brandt"}`)},
		Write:    provider.Call{Tool: "notes_add", Arguments: json.RawMessage(`{"contact_id":"c_1001","text":"Called; \"hot\" <lead>"}`)},
		Large:    provider.Call{Tool: "report_export", Arguments: json.RawMessage(`{"kilobytes":64}`)},
		Requests: func() int { return int(w.requests.Load()) },
		Applied:  func(t *testing.T) int { return w.applied(t, "notes_add") },
		Break:    func(t *testing.T, tool string, mode providertest.Fault) { w.fault(t, tool, string(mode)) },
		Spoil: func(t *testing.T) string {
			w.order(t, http.MethodPost, "/tools", `{"name":"contacts_get","patch":{"inputSchema":{"type":"array"}}}`)
			return "contacts_get"
		},
		Restore: func(t *testing.T) { w.order(t, http.MethodPost, "/reset", "") },
		Faults: []providertest.Fault{
			providertest.ApplyThenHang, providertest.ApplyThenReset, providertest.ApplyThen500, providertest.ApplyThenTruncate,
			providertest.Reject, providertest.Hang, providertest.Reset, providertest.Slow,
		},
		Definite: rejection.MatchString,
	}
}

func (w *world) applied(t *testing.T, tool string) int {
	t.Helper()
	var journal []struct{ Tool string }
	if err := json.Unmarshal([]byte(w.order(t, http.MethodGet, "/journal", "")), &journal); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, entry := range journal {
		if entry.Tool == tool {
			n++
		}
	}
	return n
}

// nobody is an address at which nothing listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String() + "/mcp"
}

// BenchmarkWarmRead includes the upstream, which answers from memory.
func BenchmarkWarmRead(b *testing.B) {
	for _, size := range []int{100, 64 << 10} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			text := strings.Repeat("a line of a report, with “marks”\n", size/34)
			quoted, err := json.Marshal(text)
			if err != nil {
				b.Fatal(err)
			}
			c := scripted(b, body(`{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":`+string(quoted)+`}]}}`))
			b.SetBytes(int64(len(quoted)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.Read(b.Context(), c, apply); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
