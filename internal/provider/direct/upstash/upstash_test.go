package upstash_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/catalog"
	"countersign/internal/action"
	"countersign/internal/credential"
	"countersign/internal/fault"
	"countersign/internal/provider"
	"countersign/internal/provider/direct/directtest"
	"countersign/internal/provider/direct/upstash"
	"countersign/internal/provider/direct/upstash/upstashtest"
	"countersign/internal/provider/providertest"
	"countersign/internal/registry"
)

var vendor = upstash.New()

func call(tool, arguments string) provider.Call {
	return provider.Call{Tool: tool, Arguments: json.RawMessage(arguments), Action: "act_1"}
}

func basic(t *testing.T, url, key string) directtest.At {
	t.Helper()
	h := credential.Header{User: "email", Field: "api_key", Name: "Authorization", Format: "Basic {secret}"}
	return directtest.At{URL: url + "/v2", Editor: directtest.Authorized(t, url, h, map[string]string{"email": upstashtest.Email, "api_key": key})}
}

func connect(t *testing.T, v *upstashtest.Vendor, s provider.Settings) *provider.Conn {
	t.Helper()
	return directtest.Connect(t, s, map[registry.Role]directtest.At{
		registry.API:  basic(t, v.URL, upstashtest.APIKey),
		registry.Data: {URL: v.Redis.URL, Editor: directtest.Bearer(t, v.Redis.URL, upstashtest.Token)},
	})
}

func data(t *testing.T, url, token string, s provider.Settings) *provider.Conn {
	t.Helper()
	return directtest.Connect(t, s, map[registry.Role]directtest.At{registry.Data: {URL: url, Editor: directtest.Bearer(t, url, token)}})
}

func TestTheCatalogSaysWhatTheCodeDoes(t *testing.T) {
	if m := directtest.Agrees(t, vendor, catalog.Files(), "upstash.toml"); m.Runtime != upstash.Key {
		t.Errorf("the catalog's runtime is %s", m.Runtime)
	}
}

// operations are the tools of Redis as its front names them.
var operations = map[string]string{"redis_read": "command", "redis_write": "command"}

func TestTheExamOverRedis(t *testing.T) {
	v := upstashtest.New(t)
	seed(t, v, "SET", "large", strings.Repeat("a line of a large value\n", 1000))
	providertest.Run(t, &providertest.World{
		Provider: vendor,
		Connect:  func(t *testing.T, s provider.Settings) *provider.Conn { return connect(t, v, s) },
		Dead: func(t *testing.T) *provider.Conn {
			return data(t, directtest.Nowhere(t), upstashtest.Token, provider.Settings{Timeout: time.Second})
		},
		Revoked: func(t *testing.T) *provider.Conn { return data(t, v.Redis.URL, "another-token", provider.Settings{}) },
		Secret:  upstashtest.Token,
		Read:    call("redis_read", `{"command":"EXISTS","arguments":["large"]}`), Write: call("redis_write", `{"command":"INCR","key":"counter"}`), Large: call("redis_read", `{"command":"GET","arguments":["large"]}`),
		Requests: func() int { return len(v.Redis.Requests()) },
		Applied:  func(*testing.T) int { return len(v.Redis.Effects("command")) },
		Break: func(_ *testing.T, tool string, m providertest.Fault) {
			v.Redis.Break(operations[tool], directtest.Mode(m))
		},
		Restore: func(*testing.T) { v.Redis.Mend() },
		Faults:  append(slices.Clone(directtest.Faults), providertest.Limit), Truncated: action.OutcomeSucceeded,
	})
}

func TestTheExamOverManagement(t *testing.T) {
	v := upstashtest.New(t)
	api := func(t *testing.T, url, key string, s provider.Settings) *provider.Conn {
		return directtest.Connect(t, s, map[registry.Role]directtest.At{registry.API: basic(t, url, key)})
	}
	providertest.Run(t, &providertest.World{
		Provider: vendor,
		Connect:  func(t *testing.T, s provider.Settings) *provider.Conn { return connect(t, v, s) },
		Dead: func(t *testing.T) *provider.Conn {
			return api(t, directtest.Nowhere(t), upstashtest.APIKey, provider.Settings{Timeout: time.Second})
		},
		Revoked: func(t *testing.T) *provider.Conn { return api(t, v.URL, "another-key", provider.Settings{}) },
		Secret:  upstashtest.APIKey,
		Read:    call("list_redis", `{}`), Write: call("create_backup", `{"id":"db1","name":"before the move"}`),
		Requests: func() int { return len(v.Requests()) },
		Applied:  func(*testing.T) int { return len(v.Effects("create_backup")) },
		Break:    func(_ *testing.T, tool string, m providertest.Fault) { v.Break(tool, directtest.Mode(m)) },
		Restore:  func(*testing.T) { v.Mend() },
		Faults:   append(slices.Clone(directtest.Faults), providertest.Limit), Truncated: action.OutcomeSucceeded,
	})
}

func seed(t *testing.T, v *upstashtest.Vendor, command, key string, arguments ...string) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"command": command, "key": key, "arguments": arguments})
	if err != nil {
		t.Fatal(err)
	}
	if o := vendor.Execute(t.Context(), connect(t, v, provider.Settings{}), call("redis_write", string(raw))); o.Kind() != action.OutcomeSucceeded {
		t.Fatalf("%s: %s %s", command, o.Sentence(), o.Result())
	}
}

func read(t *testing.T, c *provider.Conn, tool, arguments string) string {
	t.Helper()
	r, err := vendor.Read(t.Context(), c, call(tool, arguments))
	if err != nil {
		t.Fatal(err)
	}
	return string(r.Raw)
}

// Everything not on a list is refused, in whatever disguise, before anything is sent.
func TestCommandsAreRefusedByDefault(t *testing.T) {
	v := upstashtest.New(t)
	c := connect(t, v, provider.Settings{})
	for _, command := range []string{
		"EVAL", "EVALSHA_RO", "FCALL", "FUNCTION", "SCRIPT", "CONFIG", "CONFIG GET", "ACL", "MONITOR", "SUBSCRIBE", "DEBUG", "SHUTDOWN", "REPLICAOF", "MIGRATE", "CLIENT", "CLUSTER",
		"MODULE", "SAVE", "FLUSHALL", "FLUSHDB", "SWAPDB", "SELECT", "AUTH", "HELLO", "MULTI", "EXEC", "WATCH", "KEYS", "DUMP", "RESTORE", "XREAD", "XREADGROUP", "BLPOP", "BLMOVE",
		"PUBLISH", "WAIT", "LATENCY", "SLOWLOG", "INFO", "get", "", "NO-SUCH",
	} {
		for tool, arguments := range map[string]string{
			"redis_read": `{"command":%q,"arguments":["k"]}`, "redis_read_many": `{"commands":[{"command":"GET","arguments":["k"]},{"command":%q}]}`,
			"redis_write": `{"command":%q,"key":"k"}`, "redis_write_atomic": `{"summary":"s","commands":[{"command":"SET","key":"k","arguments":["v"]},{"command":%q,"key":"k"}]}`,
		} {
			q := call(tool, fmt.Sprintf(arguments, command))
			if strings.HasPrefix(tool, "redis_read") {
				if _, err := vendor.Read(t.Context(), c, q); !fault.Is(err, fault.InvalidArguments) {
					t.Errorf("%s by %s: %v", command, tool, err)
				}
			} else if o := vendor.Execute(t.Context(), c, q); o.Kind() != action.OutcomeFailed || o.Evidence().BytesWritten > 0 {
				t.Errorf("%s by %s: %s", command, tool, o.Kind())
			}
		}
	}
	for _, write := range []string{"GETDEL", "GETEX", "GETSET", "SORT", "BITFIELD", "GEORADIUS", "GEORADIUSBYMEMBER", "SET", "DEL", "JSON.SET"} {
		if _, err := vendor.Read(t.Context(), c, call("redis_read", fmt.Sprintf(`{"command":%q,"arguments":["k"]}`, write))); !fault.Is(err, fault.InvalidArguments) {
			t.Errorf("%s looks like a read and is taken for one: %v", write, err)
		}
	}
	if n := len(v.Redis.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestRedisKeepsItsPromisesOverREST(t *testing.T) {
	v := upstashtest.New(t)
	c := connect(t, v, provider.Settings{})
	seed(t, v, "SET", "a", "1")
	seed(t, v, "RENAME", "a", "b")
	if got := read(t, c, "redis_read", `{"command":"GET","arguments":["b"]}`); !strings.Contains(got, `"result":"1"`) {
		t.Error(got)
	}
	if got := read(t, c, "redis_read_many", `{"commands":[{"command":"GET","arguments":["b"]},{"command":"LLEN","arguments":["b"]}]}`); !strings.Contains(got, `{"result":"1"},{"error":"WRONGTYPE`) {
		t.Error(got)
	}
	wrong := vendor.Execute(t.Context(), c, call("redis_write", `{"command":"LPUSH","key":"b","arguments":["x"]}`))
	if wrong.Kind() != action.OutcomeFailed || !strings.Contains(string(wrong.Result()), "WRONGTYPE") {
		t.Errorf("%s %s", wrong.Kind(), wrong.Result())
	}
	for want, commands := range map[action.OutcomeKind]string{
		action.OutcomeSucceeded: `[{"command":"SET","key":"c","arguments":["1"]},{"command":"INCR","key":"c"}]`,
		action.OutcomeFailed:    `[{"command":"LPUSH","key":"b","arguments":["x"]}]`,
		action.OutcomeUncertain: `[{"command":"SET","key":"d","arguments":["1"]},{"command":"LPUSH","key":"d","arguments":["x"]}]`,
	} {
		o := vendor.Execute(t.Context(), c, call("redis_write_atomic", `{"summary":"counts","commands":`+commands+`}`))
		if o.Kind() != want {
			t.Errorf("%s is %s: %s %s", commands, o.Kind(), o.Sentence(), o.Result())
		}
		if want == action.OutcomeUncertain && !strings.Contains(o.Sentence(), "applied in part") {
			t.Error(o.Sentence())
		}
	}
	queued := vendor.Execute(t.Context(), c, call("redis_write_atomic", `{"summary":"s","commands":[{"command":"SET","key":"e","arguments":["1"]},{"command":"EXPIRE","key":"e"}]}`))
	if queued.Kind() != action.OutcomeFailed || !strings.Contains(read(t, c, "redis_read", `{"command":"EXISTS","arguments":["e"]}`), `"result":0`) {
		t.Errorf("a transaction with a broken command: %s %s", queued.Kind(), queued.Result())
	}
	v.Redis.Break("multi-exec", directtest.ApplyThenTruncate)
	if o := vendor.Execute(t.Context(), c, call("redis_write_atomic", `{"summary":"s","commands":[{"command":"INCR","key":"c"}]}`)); o.Kind() != action.OutcomeUncertain {
		t.Errorf("a transaction whose results did not arrive is %s", o.Kind())
	}
}

func TestReadsTravelWithTheReadToken(t *testing.T) {
	v := upstashtest.New(t)
	url := v.Redis.URL
	both := directtest.Connect(t, provider.Settings{}, map[registry.Role]directtest.At{registry.Data: {URL: url, Editor: directtest.Bearer(t, url, upstashtest.Token), Read: directtest.Bearer(t, url, upstashtest.ReadToken)}})
	seed(t, v, "SET", "a", "1")
	if got := read(t, both, "redis_read", `{"command":"SCAN","arguments":["0"]}`); !strings.Contains(got, "NOPERM") || !strings.Contains(got, `"isError":true`) {
		t.Errorf("the full token was used for a read: %s", got)
	}
	if o := vendor.Execute(t.Context(), both, call("redis_write", `{"command":"SET","key":"a","arguments":["2"]}`)); o.Kind() != action.OutcomeSucceeded {
		t.Error(o.Sentence())
	}
	only := directtest.Connect(t, provider.Settings{}, map[registry.Role]directtest.At{registry.Data: {URL: url, Read: directtest.Bearer(t, url, upstashtest.ReadToken)}})
	before := len(v.Redis.Requests())
	if o := vendor.Execute(t.Context(), only, call("redis_write", `{"command":"SET","key":"a","arguments":["3"]}`)); o.Kind() != action.OutcomeFailed || len(v.Redis.Requests()) != before {
		t.Errorf("%s %s", o.Kind(), o.Sentence())
	}
	tools, err := vendor.Tools(t.Context(), only)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range tools {
		usable := d.Name == "redis_read" || d.Name == "redis_read_many"
		if usable != (d.Problem == "") {
			t.Errorf("%s: %q", d.Name, d.Problem)
		}
	}
}

func TestNoSecretOfTheAccountIsAnswered(t *testing.T) {
	v := upstashtest.New(t)
	c := connect(t, v, provider.Settings{})
	for tool, arguments := range map[string]string{
		"list_redis": `{}`, "get_redis": `{"id":"db1"}`, "list_vector": `{}`, "get_vector": `{"id":"v1"}`, "list_search": `{}`, "get_qstash_user": `{}`,
	} {
		if got := read(t, c, tool, arguments); strings.Contains(got, "canary") || !strings.Contains(got, "name") && !strings.Contains(got, "email") {
			t.Errorf("%s: %s", tool, got)
		}
	}
	o := vendor.Execute(t.Context(), c, call("create_redis", `{"database_name":"new","platform":"aws","primary_region":"eu-west-1"}`))
	if o.Kind() != action.OutcomeSucceeded || strings.Contains(string(o.Result()), "canary") || !strings.Contains(string(o.Result()), `"database_name":"new"`) {
		t.Errorf("%s %s", o.Kind(), o.Result())
	}
}

func TestLostCallsAreLookedFor(t *testing.T) {
	for _, q := range []provider.Call{
		call("redis_write", `{"command":"SET","key":"k","arguments":["2"]}`), call("redis_write", `{"command":"DEL","key":"k"}`), call("redis_write", `{"command":"RENAME","key":"k","arguments":["n"]}`),
		call("redis_write", `{"command":"HSET","key":"h","arguments":["f","2"]}`), call("redis_write", `{"command":"HDEL","key":"h","arguments":["f"]}`), call("redis_write", `{"command":"SADD","key":"s","arguments":["new"]}`),
		call("redis_write", `{"command":"SREM","key":"s","arguments":["m"]}`),
		call("rename_redis", `{"id":"db1","name":"invoices"}`), call("delete_redis", `{"id":"db1"}`), call("create_backup", `{"id":"db1","name":"before"}`), call("delete_backup", `{"id":"db1","backup_id":"b1"}`),
		call("update_budget", `{"id":"db1","budget":50}`), call("enable_tls", `{"id":"db1"}`), call("enable_dailybackup", `{"id":"db1"}`), call("delete_vector", `{"id":"v1"}`),
		call("create_redis", `{"database_name":"new","platform":"aws","primary_region":"eu-west-1"}`),
	} {
		for mode, want := range map[directtest.Mode]provider.Sight{directtest.ApplyThenReset: provider.Applied, directtest.Reset: provider.Absent} {
			t.Run(q.Tool+" "+string(mode)+string(q.Arguments), func(t *testing.T) {
				v := upstashtest.New(t)
				c := connect(t, v, provider.Settings{})
				seed(t, v, "SET", "k", "1")
				seed(t, v, "HSET", "h", "f", "1")
				seed(t, v, "SADD", "s", "m")
				armed := q
				if q.Tool == "redis_write" { // the look before is a command as well: let it pass
					armed.Tool = "second command"
				}
				lost := lose(t, v, c, armed, q, mode)
				s, err := vendor.Reconcile(t.Context(), c, q, lost.Evidence())
				if err != nil || s.Sight != want || s.Sentence == "" {
					t.Errorf("%+v %v, want %s", s, err, want)
				}
				if s, err := vendor.Reconcile(t.Context(), c, q, action.Evidence{}); err != nil || s.Sight != provider.Unseen {
					t.Errorf("without what was seen before: %+v %v", s, err)
				}
			})
		}
	}
	if vendor.CanReconcile(call("redis_write", `{"command":"INCR","key":"k"}`)) || vendor.CanReconcile(call("redis_write", `{"command":"SET","key":"k","arguments":["v","NX"]}`)) {
		t.Error("an effect that leaves no trace of its own is said to be found out")
	}
}

func lose(t *testing.T, v *upstashtest.Vendor, c *provider.Conn, armed, q provider.Call, mode directtest.Mode) action.Outcome {
	t.Helper()
	if armed.Tool == "second command" {
		v.Redis.BreakAfter("command", 1, mode)
	} else {
		v.Break(armed.Tool, mode)
	}
	o := vendor.Execute(t.Context(), c, q)
	if o.Kind() != action.OutcomeUncertain {
		t.Fatalf("%s: %s", o.Kind(), o.Sentence())
	}
	return o
}
