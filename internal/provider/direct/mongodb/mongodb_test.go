package mongodb_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"countersign/catalog"
	"countersign/db/dbtest"
	"countersign/internal/action"
	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/identity"
	"countersign/internal/provider"
	"countersign/internal/provider/direct/directtest"
	"countersign/internal/provider/direct/mongodb"
	"countersign/internal/provider/direct/mongodb/mongotest"
	"countersign/internal/provider/providertest"
	"countersign/internal/registry"
	"countersign/internal/secret"
)

var vendor = mongodb.New()

// connect makes a connection to an operator's endpoint, with the login of a connection string.
func connect(t *testing.T, url, login string, s provider.Settings) *provider.Conn {
	t.Helper()
	d, err := egress.Operator(url)
	if err != nil {
		t.Fatal(err)
	}
	a, err := credential.Bind(credential.ConnectionString("connection_string"), map[string]secret.Value{"connection_string": secret.New(login)}, d)
	if err != nil {
		t.Fatal(err)
	}
	c := provider.NewConn(identity.OrgID("org_1"), connector.NewKey("mongodb"), s, map[registry.Role]provider.Target{registry.MCP: {Destination: d, Editor: a}})
	t.Cleanup(c.Close)
	return c
}

func call(tool, arguments string) provider.Call {
	return provider.Call{Tool: tool, Arguments: json.RawMessage(arguments), Action: "act_1"}
}

// seed fills the shop: a customer, one who is echoed the password, and one who is large.
func seed(t *testing.T, v *mongotest.Vendor) {
	t.Helper()
	customers := v.Direct.Database("shop").Collection("customers")
	for _, doc := range []bson.D{
		{{Key: "_id", Value: "c_1"}, {Key: "name", Value: "Ada Verne"}, {Key: "city", Value: "Bergn"}, {Key: "orders", Value: int32(3)}},
		{{Key: "_id", Value: "c_2"}, {Key: "name", Value: "echoes " + mongotest.Password}, {Key: "orders", Value: int32(1)}},
		{{Key: "_id", Value: "c_3"}, {Key: "name", Value: "Large"}, {Key: "notes", Value: strings.Repeat("a line of notes\n", 1200)}},
	} {
		if _, err := customers.InsertOne(t.Context(), doc); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := v.Direct.Database("payroll").Collection("people").InsertOne(t.Context(), bson.D{{Key: "_id", Value: "p_1"}}); err != nil {
		t.Fatal(err)
	}
}

// commands are what the tools send.
var commands = map[string]string{"find": "find", "insert_one": "insert"}

func TestTheExam(t *testing.T) {
	t.Parallel()
	v := mongotest.New(t, dbtest.Empty(t))
	seed(t, v)
	providertest.Run(t, &providertest.World{
		Provider: vendor,
		Connect: func(t *testing.T, s provider.Settings) *provider.Conn {
			return connect(t, v.URL, mongotest.String(), s)
		},
		Dead: func(t *testing.T) *provider.Conn {
			return connect(t, directtest.Nowhere(t), mongotest.String(), provider.Settings{Timeout: time.Second})
		},
		Revoked: func(t *testing.T) *provider.Conn {
			return connect(t, v.URL, mongotest.StringOf("another"), provider.Settings{})
		},
		Secret:     mongotest.Password,
		Read:       provider.Call{Tool: "find", Arguments: json.RawMessage(`{"database":"shop","collection":"customers","filter":{"_id":{"$in":["c_1","c_2"]}}}`)},
		Write:      provider.Call{Tool: "insert_one", Arguments: json.RawMessage(`{"database":"shop","collection":"notes","document":{"text":"called back"}}`)},
		Large:      provider.Call{Tool: "find", Arguments: json.RawMessage(`{"database":"shop","collection":"customers","filter":{"_id":"c_3"}}`)},
		Requests:   func() int { return len(v.Requests()) },
		Applied:    func(*testing.T) int { return len(v.Effects("insert")) },
		Break:      func(_ *testing.T, tool string, m providertest.Fault) { v.Break(commands[tool], directtest.Mode(m)) },
		Restore:    func(*testing.T) { v.Mend() },
		Faults:     directtest.Faults,
		Statusless: true,
	})
}

func execute(t *testing.T, c *provider.Conn, q provider.Call) action.Outcome {
	t.Helper()
	return vendor.Execute(t.Context(), c, q)
}

func TestTheCatalogSaysWhatTheCodeDoes(t *testing.T) {
	if m := directtest.Agrees(t, vendor, catalog.Files(), "mongodb.toml"); m.Runtime != mongodb.Key {
		t.Errorf("the catalog's runtime is %s", m.Runtime)
	}
}

// shop is a seeded server with a connection to it.
func shop(t *testing.T, s provider.Settings) (*mongotest.Vendor, *provider.Conn) {
	t.Helper()
	v := mongotest.New(t, dbtest.Empty(t))
	seed(t, v)
	return v, connect(t, v.URL, mongotest.String(), s)
}

func read(t *testing.T, c *provider.Conn, tool, arguments string) (text string, structured struct {
	Documents []json.RawMessage `json:"documents"`
	Next      string            `json:"next_cursor"`
},
) {
	t.Helper()
	r, err := vendor.Read(t.Context(), c, call(tool, arguments))
	if err != nil {
		t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	var result struct {
		Structured json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(r.Raw, &result); err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal(result.Structured, &structured)
	return string(r.Raw), structured
}

const customers = `"database":"shop","collection":"customers"`

func TestReading(t *testing.T) {
	t.Parallel()
	_, c := shop(t, provider.Settings{})
	for q, want := range map[[2]string]string{
		{"list_databases", `{}`}:                                                                                           `{"databases":["payroll","shop"]}`,
		{"list_collections", `{"database":"shop"}`}:                                                                        `{"name":"customers","type":"collection"}`,
		{"list_indexes", `{` + customers + `}`}:                                                                            `"name":"_id_"`,
		{"count", `{` + customers + `,"filter":{"orders":{"$gte":1}}}`}:                                                    `{"count":2}`,
		{"count", `{` + customers + `,"filter":{"orders":{"$gte":100}}}`}:                                                  `{"count":0}`,
		{"distinct", `{` + customers + `,"field":"orders"}`}:                                                               `{"values":[1,3],"count":2}`,
		{"explain", `{` + customers + `,"filter":{"_id":"c_1"}}`}:                                                          `queryPlanner`,
		{"find", `{` + customers + `,"filter":{"_id":"c_1"},"projection":{"name":1}}`}:                                     `{"_id":"c_1","name":"Ada Verne"}`,
		{"find", `{` + customers + `,"filter":{"_id":"c_2"}}`}:                                                             credential.Marker,
		{"aggregate", `{` + customers + `,"pipeline":[{"$match":{"orders":{"$gt":0}}},{"$sort":{"orders":1}}],"limit":1}`}: `"next_cursor"`,
	} {
		if got, _ := read(t, c, q[0], q[1]); !strings.Contains(got, want) || strings.Contains(got, mongotest.Password) {
			t.Errorf("%s %s: %s", q[0], q[1], got)
		}
	}
}

// Pages hold each document once; one ends where the answer is full, and a cursor serves the call it was given for alone.
func TestPages(t *testing.T) {
	t.Parallel()
	v, c := shop(t, provider.Settings{})
	for _, q := range []struct{ tool, arguments string }{
		{"find", customers + `,"projection":{"name":1}`}, {"aggregate", customers + `,"pipeline":[{"$sort":{"name":1}},{"$project":{"name":1}}]`},
	} {
		seen, cursor := []string{}, ""
		for range 5 {
			_, page := read(t, c, q.tool, `{`+q.arguments+`,"limit":1`+cursor+`}`)
			for _, d := range page.Documents {
				seen = append(seen, string(d))
			}
			if page.Next == "" {
				break
			}
			cursor = `,"cursor":"` + page.Next + `"`
		}
		if len(seen) != 3 || seen[0] == seen[1] || seen[1] == seen[2] {
			t.Errorf("%s: %v", q.tool, seen)
		}
		if _, err := vendor.Read(t.Context(), c, call(q.tool, `{`+strings.Replace(q.arguments, "customers", "others", 1)+cursor+`}`)); !fault.Is(err, fault.InvalidArguments) {
			t.Errorf("%s: a cursor of another call: %v", q.tool, err)
		}
	}
	before := len(v.Requests())
	narrow := connect(t, v.URL, mongotest.String(), provider.Settings{MaxResult: 12 << 10})
	if _, page := read(t, narrow, "find", `{`+customers+`,"sort":{"_id":1}}`); len(page.Documents) != 2 || page.Next == "" {
		t.Errorf("a page of little room holds %d documents, and next is %q", len(page.Documents), page.Next)
	}
	if n := len(v.Requests()) - before; n != 1 {
		t.Errorf("a page is %d requests: a cursor was left open", n)
	}
}

// Everything outside the fences is refused before anything is sent, however deep it stands.
func TestTheFences(t *testing.T) {
	t.Parallel()
	v := mongotest.New(t, dbtest.Empty(t))
	c := connect(t, v.URL, mongotest.String(), provider.Settings{Resources: map[string]string{"database": "shop", "collections": "customers, orders"}})
	inPipeline := func(stage string) string { return `{` + customers + `,"pipeline":[{"$match":{}},` + stage + `]}` }
	byCode := map[fault.Code]map[string][]string{
		fault.OutsideResource: {
			"find":             {`{"database":"payroll","collection":"customers"}`, `{"database":"shop","collection":"people"}`, `{"database":"admin","collection":"customers"}`},
			"count":            {`{"database":"shop","collection":"system.views"}`},
			"list_collections": {`{"database":"payroll"}`, `{"database":"local"}`},
			"aggregate": {
				inPipeline(`{"$lookup":{"from":"people","as":"p","localField":"a","foreignField":"b"}}`), inPipeline(`{"$lookup":{"from":{"db":"payroll","coll":"orders"},"as":"p"}}`),
				inPipeline(`{"$unionWith":"people"}`), inPipeline(`{"$unionWith":{"coll":"people"}}`), inPipeline(`{"$graphLookup":{"from":"people","as":"p"}}`),
				inPipeline(`{"$facet":{"a":[{"$lookup":{"from":"orders","as":"o","pipeline":[{"$unionWith":"people"}]}}]}}`),
			},
			"update_one": {`{"database":"shop","collection":"people","id":"1","update":{"$set":{"a":1}}}`}, "delete_one": {`{"database":"payroll","collection":"customers","id":"1"}`},
		},
		fault.InvalidArguments: {
			"find": {`{` + customers + `,"filter":{"$where":"sleep(1)"}}`, `{` + customers + `,"filter":{"$and":[{"$expr":{"$function":{"body":"f","args":[],"lang":"js"}}}]}}`, `{` + customers + `,"projection":{"x":{"$function":{}}}}`, `{` + customers + `,"filter":{"a":{"$code":"f()"}}}`},
			"aggregate": {
				inPipeline(`{"$out":"x"}`), inPipeline(`{"$merge":{"into":"x"}}`), inPipeline(`{"$lookup":{"from":"orders","as":"o","pipeline":[{"$merge":"x"}]}}`), inPipeline(`{"$facet":{"a":[{"$out":"x"}]}}`),
				inPipeline(`{"$unionWith":{"coll":"orders","pipeline":[{"$out":"x"}]}}`), inPipeline(`{"$group":{"_id":1,"x":{"$accumulator":{}}}}`), inPipeline(`{"$currentOp":{}}`), inPipeline(`{"$listSessions":{}}`),
				inPipeline(`{"$changeStream":{}}`), inPipeline(`{"$documents":[]}`), inPipeline(`{"$match":{},"$out":"x"}`), inPipeline(`{}`), inPipeline(`{"$collStats":{}}`),
			},
			"explain": {inPipeline(`{"$out":"x"}`)},
			"update_one": {
				`{` + customers + `,"id":"c_1","update":{"name":"x"}}`, `{` + customers + `,"id":"c_1","update":{"$setOnInsert":{"a":1}}}`, `{` + customers + `,"id":"c_1","update":{"$set":{"_id":"c_9"}}}`,
				`{` + customers + `,"id":"c_1","update":{}}`, `{` + customers + `,"id":"c_1","update":{"$set":{}}}`, `{` + customers + `,"id":"c_1","update":[{"$set":{"a":1}}]}`, `{` + customers + `,"id":"c_1","only_if":{"$where":"1"},"update":{"$set":{"a":1}}}`,
				`{` + customers + `,"id":"{\"$gt\":\"\"}","id_type":"extended_json","update":{"$set":{"a":1}}}`, `{` + customers + `,"id":"x","id_type":"number","update":{"$set":{"a":1}}}`,
			},
			"replace_one": {`{` + customers + `,"id":"c_1","document":{"$set":{"a":1}}}`, `{` + customers + `,"id":"c_1","document":{"_id":"c_9"}}`},
			"insert_one":  {`{` + customers + `,"document":{"_id":{"$gt":1}}}`, `{` + customers + `,"document":{"$set":{}}}`},
		},
	}
	for code, tools := range byCode {
		for tool, list := range tools {
			for _, arguments := range list {
				if strings.HasSuffix(tool, "_one") {
					if o := execute(t, c, call(tool, arguments)); o.Kind() != action.OutcomeFailed || o.Code() != code || o.Evidence().BytesWritten != 0 {
						t.Errorf("%s %s: %s %s %s", tool, arguments, o.Kind(), o.Code(), o.Sentence())
					}
				} else if _, err := vendor.Read(t.Context(), c, call(tool, arguments)); !fault.Is(err, code) {
					t.Errorf("%s %s: %v, want %s", tool, arguments, err, code)
				}
			}
		}
	}
	if n := v.Requests(); len(n) != 0 {
		t.Errorf("sent: %v", n)
	}
}

func TestWritesSayWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	v, c := shop(t, provider.Settings{})
	for _, q := range []struct {
		tool, arguments string
		kind            action.OutcomeKind
		says            string
	}{
		{"update_one", `{` + customers + `,"id":"c_1","update":{"$set":{"city":"Bergen"},"$inc":{"orders":1}},"only_if":{"city":"Bergn"}}`, action.OutcomeSucceeded, `"outcome":"changed"`},
		{"update_one", `{` + customers + `,"id":"c_1","update":{"$set":{"city":"Oslo"}},"only_if":{"city":"Bergn"}}`, action.OutcomeFailed, "as the call demands"},
		{"update_one", `{` + customers + `,"id":"c_1","update":{"$set":{"city":"Bergen"}}}`, action.OutcomeSucceeded, "already as the call would leave it"},
		{"update_one", `{` + customers + `,"id":"c_404","update":{"$set":{"city":"Oslo"}}}`, action.OutcomeFailed, "Nothing was sent"},
		{"insert_one", `{` + customers + `,"document":{"_id":"c_1"}}`, action.OutcomeFailed, "same unique value"},
		{"insert_one", `{"database":"shop","collection":"notes","document":{"_id":{"$oid":"665f00000000000000000001"},"at":{"$date":"2026-12-01T00:00:00Z"}}}`, action.OutcomeSucceeded, "665f00000000000000000001"},
		{"delete_one", `{"database":"shop","collection":"notes","id":"665f00000000000000000001"}`, action.OutcomeSucceeded, `"outcome":"deleted"`},
		{"replace_one", `{` + customers + `,"id":"c_3","document":{"name":"Small"}}`, action.OutcomeSucceeded, `"outcome":"replaced"`},
	} {
		o := execute(t, c, call(q.tool, q.arguments))
		if o.Kind() != q.kind || !strings.Contains(o.Sentence()+string(o.Result()), q.says) {
			t.Errorf("%s %s: %s %s %s", q.tool, q.arguments, o.Kind(), o.Sentence(), o.Result())
		}
	}
	if got, _ := read(t, c, "find", `{`+customers+`,"filter":{"_id":{"$in":["c_1","c_3"]}}}`); !strings.Contains(got, `{"_id":"c_1","name":"Ada Verne","city":"Bergen","orders":4}`) || !strings.Contains(got, `{"_id":"c_3","name":"Small"}`) {
		t.Error(got)
	}
	if n := len(v.Effects("")); n != 5 {
		t.Errorf("%d effects: %v", n, v.Effects(""))
	}
	late := egress.SendBefore(t.Context(), time.Now().Add(-time.Second))
	if o := vendor.Execute(late, c, call("delete_one", `{`+customers+`,"id":"c_2"}`)); o.Kind() != action.OutcomeFailed || o.Evidence().BytesWritten != 0 || len(v.Effects("delete")) != 1 {
		t.Errorf("after its moment: %s %s, %v", o.Kind(), o.Sentence(), v.Effects("delete"))
	}
}

func TestLostCallsAreLookedFor(t *testing.T) {
	t.Parallel()
	v, c := shop(t, provider.Settings{})
	reset := func() {
		_, err := v.Direct.Database("shop").Collection("customers").DeleteMany(t.Context(), bson.D{})
		if err == nil {
			_, err = v.Direct.Database("payroll").Collection("people").DeleteMany(t.Context(), bson.D{})
		}
		if err != nil {
			t.Fatal(err)
		}
		seed(t, v)
	}
	for _, q := range []struct {
		provider.Call
		command string
		alone   bool // the look tells without what was noted before
	}{
		{call("insert_one", `{`+customers+`,"document":{"name":"New"}}`), "insert", true},
		{call("insert_one", `{`+customers+`,"document":{"_id":"c_7","name":"New"}}`), "insert", false},
		{call("update_one", `{`+customers+`,"id":"c_1","update":{"$set":{"city":"Bergen","address.zip":"5003"},"$inc":{"orders":2},"$push":{"tags":"vip"},"$unset":{"none":""}}}`), "update", false},
		{call("replace_one", `{`+customers+`,"id":"c_1","document":{"name":"Another"}}`), "update", false},
		{call("delete_one", `{`+customers+`,"id":"c_1"}`), "delete", false},
	} {
		for mode, want := range map[directtest.Mode]provider.Sight{directtest.ApplyThenReset: provider.Applied, directtest.Reset: provider.Absent} {
			reset()
			v.Break(q.command, mode)
			lost := execute(t, c, q.Call)
			if lost.Kind() != action.OutcomeUncertain {
				t.Errorf("%s %s: %s %s", q.Tool, mode, lost.Kind(), lost.Sentence())
			}
			if strings.Contains(lost.Evidence().Before, "Ada") {
				t.Errorf("the note holds the document: %s", lost.Evidence().Before)
			}
			s, err := vendor.Reconcile(t.Context(), c, q.Call, lost.Evidence())
			if err != nil || s.Sight != want || s.Sentence == "" {
				t.Errorf("%s %s: %+v %v, want %s", q.Tool, mode, s, err, want)
			}
			s, err = vendor.Reconcile(t.Context(), c, q.Call, action.Evidence{})
			if told := s.Sight != provider.Unseen; err != nil || told != q.alone && s.Sight == provider.Applied {
				t.Errorf("%s %s without what was seen before: %+v %v", q.Tool, mode, s, err)
			}
		}
	}
	reset()
	v.Break("update", directtest.ApplyThenReset)
	same := call("update_one", `{`+customers+`,"id":"c_1","update":{"$set":{"city":"Bergn"}}}`)
	if s, err := vendor.Reconcile(t.Context(), c, same, execute(t, c, same).Evidence()); err != nil || s.Sight != provider.Unseen {
		t.Errorf("a change to what was there already: %+v %v", s, err)
	}
	v.Break("update", directtest.ApplyThenReset)
	q := call("update_one", `{`+customers+`,"id":"c_1","update":{"$set":{"city":"Bergen"}}}`)
	lost := execute(t, c, q)
	if _, err := v.Direct.Database("shop").Collection("customers").UpdateByID(t.Context(), "c_1", bson.D{{Key: "$set", Value: bson.D{{Key: "city", Value: "Oslo"}}}}); err != nil {
		t.Fatal(err)
	}
	if s, err := vendor.Reconcile(t.Context(), c, q, lost.Evidence()); err != nil || s.Sight != provider.Unseen {
		t.Errorf("after somebody else's change: %+v %v", s, err)
	}
}

func TestAWaitingChangeIsShown(t *testing.T) {
	t.Parallel()
	v, c := shop(t, provider.Settings{})
	for _, q := range []struct{ tool, arguments, sentence, before, after string }{
		{"update_one", `"id":"c_1","update":{"$set":{"city":"Bergen"}}`, "changed as marked", `"city": "Bergn"`, `"city": "Bergen"`},
		{"update_one", `"id":"c_1","update":{"$max":{"orders":9}}`, "not worked out", `"city": "Bergn"`, ""},
		{"update_one", `"id":"c_1","update":{"$set":{"city":"Bergn"}}`, "already as the call", `"city": "Bergn"`, `"city": "Bergn"`},
		{"update_one", `"id":"c_9","update":{"$set":{"city":"Bergen"}}`, "nothing would be changed", "", ""},
		{"update_one", `"id":"c_1","update":{"$set":{"_id":"x"}}`, "will be refused", "", ""},
		{"delete_one", `"id":"c_1"`, "will be gone", `"name": "Ada Verne"`, ""},
		{"replace_one", `"id":"c_1","document":{"name":"Ada"}`, "changed as marked", `"name": "Ada Verne"`, `"name": "Ada"`},
		{"insert_one", `"document":{"name":"New"}`, "will be added", "", `"$oid"`},
		{"insert_one", `"document":{"_id":"c_1"}`, "is there already", `"name": "Ada Verne"`, ""},
		{"delete_one", `"id":"c_2"`, "will be gone", credential.Marker, ""},
	} {
		before := v.Requests()
		p, err := vendor.Preview(t.Context(), c, call(q.tool, `{`+customers+`,`+q.arguments+`}`))
		if err != nil || !strings.Contains(p.Sentence, q.sentence) || !strings.Contains(p.Before, q.before) || !strings.Contains(p.After, q.after) || (q.before == "") != (p.Before == "") || (q.after == "") != (p.After == "") {
			t.Errorf("%s %s: %+v %v", q.tool, q.arguments, p, err)
		}
		if asked := v.Requests()[len(before):]; len(asked) > 1 || len(asked) == 1 && asked[0] != "find" {
			t.Errorf("%s %s asks %v", q.tool, q.arguments, asked)
		}
	}
	if len(v.Effects("")) != 0 || vendor.CanPreview(call("find", `{`+customers+`}`)) {
		t.Error("a preview has an effect, or a read has a preview")
	}
}
