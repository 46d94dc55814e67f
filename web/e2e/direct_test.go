package e2e

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"countersign/db/dbtest"
	"countersign/internal/consent/consenttest"
	"countersign/internal/provider/direct/analytics/analyticstest"
	"countersign/internal/provider/direct/directtest"
	"countersign/internal/provider/direct/lemonsqueezy/lemontest"
	"countersign/internal/provider/direct/mongodb/mongotest"
	"countersign/internal/provider/direct/upstash/upstashtest"
)

// installs connects an integration with what an admin types, lets agents ask for its effects, and lets engineering use it.
func installs(t *testing.T, s *server, integration string, typed map[string]string) (admin *person, key string) {
	t.Helper()
	admin = s.signsIn(t, "admin@sandbox.test", desk)
	admin.opens(t, "/catalog/"+integration)
	admin.opens(t, "/connections/new/"+integration)
	for name, value := range typed {
		admin.fills(t, name, value)
	}
	admin.presses(t, "install")
	admin.reads(t, "The credential works")
	for name, value := range typed {
		if strings.Contains(name, "key") || strings.Contains(name, "token") || name == "connection_string" {
			admin.readsNot(t, value)
		}
	}
	key = lastPart(admin.URL())
	admin.ticks(t, "mode", "ask_user_on_write", true)
	admin.presses(t, "save-access")
	admin.opens(t, "/profiles/engineering")
	admin.ticks(t, "use", key, true)
	admin.presses(t, "save-profile")
	return admin, key
}

// TestARefundWithALostAnswer is support work at Lemon Squeezy: an order is read, a refund waits, its card says what will happen in the
// order's own currency, it is approved, the vendor applies it and dies, and a look at the order settles it without a second refund.
func TestARefundWithALostAnswer(t *testing.T) {
	t.Parallel()
	v := lemontest.New(t)
	s := newServer(t, "COUNTERSIGN_DEMO=1", endpointsFile(t, "lemonsqueezy.v1", v.URL))
	s.start(t)
	_, key := installs(t, s, "lemonsqueezy", map[string]string{"api_key": lemontest.Key, "store_id": "1"})

	a := s.runtime().starts(t, task("engineering", "SUP-31")).connects(t, eras[0])
	if order := a.reads(t, key+"__list_orders", `{"user_email":"ada@harbor.example"}`); !strings.Contains(order, "Ada Verne") || strings.Contains(order, `"32"`) {
		t.Errorf("the orders read %s", order)
	}
	a.refused(t, "outside_resource", key+"__get_order", `{"id":"32"}`)
	id := a.stages(t, key+"__refund_order", `{"id":"31","amount":12550,"currency":"EUR"}`)
	approver := s.signsIn(t, "approver@sandbox.test", desk)
	approver.opens(t, "/actions/"+id)
	approver.reads(t, "Refund €125.50 of order 31", "Money leaves the shop's balance", "€125.50, euros")
	v.Break("refund_order", directtest.ApplyThenReset)
	approver.presses(t, "approve")
	if done := s.runtime().settles(t, id, "succeeded"); done.Resolution != "reconciler" {
		t.Errorf("settled by %s", done.Resolution)
	}
	if effects := v.Effects("refund_order"); len(effects) != 1 || effects[0].Detail != "31 12550" {
		t.Errorf("the vendor applied %v", effects)
	}
	if refunded := v.Get("orders", "31")["refunded_amount"]; refunded != 12550 {
		t.Errorf("refunded is %v", refunded)
	}
}

// TestAKeyIsRenamed is the work on a Redis database at Upstash, whose address, for the account and for the database, the operator has
// moved: a person types both credentials, an agent reads, renames a key, and the vendor hangs after it did.
func TestAKeyIsRenamed(t *testing.T) {
	t.Parallel()
	v := upstashtest.New(t)
	s := newServer(t, "COUNTERSIGN_DEMO=1", endpointsFile(t, "upstash.v1/api", v.URL+"/v2", "upstash.v1/data", v.Redis.URL))
	s.start(t)
	_, key := installs(t, s, "upstash", map[string]string{
		"rest_token": upstashtest.Token, "read_token": upstashtest.ReadToken, "email": upstashtest.Email, "api_key": upstashtest.APIKey, "database": "orders",
	})
	a := s.runtime().starts(t, task("engineering", "OPS-9")).connects(t, eras[0])
	if account := a.reads(t, key+"__list_redis", `{}`); !strings.Contains(account, "orders") || strings.Contains(account, "canary") {
		t.Errorf("the account reads %s", account)
	}
	approver := s.signsIn(t, "approver@sandbox.test", desk)
	approve := func(arguments string, words ...string) string {
		t.Helper()
		id := a.stages(t, key+"__redis_write", arguments)
		approver.opens(t, "/actions/"+id)
		approver.reads(t, words...)
		approver.presses(t, "approve")
		return id
	}
	s.runtime().settles(t, approve(`{"command":"SET","key":"cart:17","arguments":["3 pears"]}`, "Run the Redis command SET on key cart:17", "3 pears"), "succeeded")
	v.Redis.BreakAfter("command", 1, directtest.ApplyThenReset) // the look before it passes
	id := approve(`{"command":"RENAME","key":"cart:17","arguments":["cart:18"]}`, "Run the Redis command RENAME on key cart:17", "cart:18", "is gone")
	if done := s.runtime().settles(t, id, "succeeded"); done.Resolution != "reconciler" {
		t.Errorf("settled by %s", done.Resolution)
	}
	if text := a.reads(t, key+"__redis_read", `{"command":"GET","arguments":["cart:18"]}`); !strings.Contains(text, "3 pears") {
		t.Errorf("the renamed key reads %s", text)
	}
	a.refused(t, "invalid_arguments", key+"__redis_read", `{"command":"EVAL","arguments":["return 1","0"]}`)
	if n := len(v.Redis.Effects("command")); n != 2 {
		t.Errorf("%d effects: %v", n, v.Redis.Effects("command"))
	}
}

// TestTheWeeklyTrafficReport is read with the key of a service account, which is exchanged and sent nowhere else.
func TestTheWeeklyTrafficReport(t *testing.T) {
	t.Parallel()
	v := analyticstest.New(t)
	s := newServer(t, "COUNTERSIGN_DEMO=1", endpointsFile(t, "google_analytics.v1/data", v.URL, "google_analytics.v1/admin", v.URL, "google_analytics.v1/token", v.TokenURL))
	s.start(t)
	_, key := installs(t, s, "google-analytics", map[string]string{"service_account_key": v.Key, "property_id": "1001"})
	a := s.runtime().starts(t, task("engineering", "MKT-4")).connects(t, eras[0])
	const week = `"metrics":["activeUsers"],"dimensions":["country"],"date_ranges":[{"start_date":"7daysAgo","end_date":"yesterday"}],"limit":5`
	a.reads(t, key+"__get_property", `{}`)
	exchanged := v.Exchanged.Load() // each version of a connection begins anew
	for _, want := range []string{"country | activeUsers", "Country number 0", "5 of 400 rows", "Sampled: 500 of 1000"} {
		if report := a.reads(t, key+"__run_report", "{"+week+"}"); !strings.Contains(report, want) {
			t.Errorf("the report does not say %q: %s", want, report)
		}
	}
	a.refused(t, "outside_resource", key+"__run_report", `{"property_id":"1002",`+week+`}`)
	if n := v.Exchanged.Load(); n != exchanged {
		t.Errorf("the key was exchanged %d times more for five reports", n-exchanged)
	}
}

// TestTheWeeklyTrafficReportOfAPerson is the same report with what a person consented to. The authorization server is like Google's: a client
// made by hand, no iss, a box for the scope that people may untick, and nothing to renew with unless it is asked for.
func TestTheWeeklyTrafficReportOfAPerson(t *testing.T) {
	t.Parallel()
	v, g := analyticstest.New(t), consenttest.New(t, http.NotFoundHandler(), "")
	apis := httptest.NewServer(g.Protects(v.Server, analyticstest.Token))
	t.Cleanup(apis.Close)
	g.Rule(func(r *consenttest.Rules) {
		r.Register, r.NamesIssue, r.Known = false, false, map[string]string{"reports.apps.example": "GOCSPX-of-the-test"}
		r.Grants = func([]string) []string { return []string{"openid"} }
	})
	s := newServer(t, "COUNTERSIGN_DEMO=1", endpointsFile(t, "google_analytics.v1/data", apis.URL, "google_analytics.v1/admin", apis.URL,
		"google_analytics.v1/authorize", g.URL+"/authorize", "google_analytics.v1/token", g.URL+"/token", "google_analytics.v1/revoke", g.URL+"/revoke"))
	s.start(t)
	admin := s.signsIn(t, "admin@sandbox.test", desk)
	admin.opens(t, "/connections/new/google-analytics?contract=oauth2")
	admin.fills(t, "property_id", "1001")
	admin.presses(t, "install")
	admin.reads(t, "What Google Analytics will ask you to allow", "Read Google Analytics", "add "+s.url+"/oauth/callback as an authorized redirect URI")
	key := strings.Split(strings.TrimPrefix(admin.URL(), s.url+"/connections/"), "/")[0]
	allows := func() {
		admin.presses(t, "start-consent")
		admin.presses(t, "leave")
		admin.reads(t, "Consent stored.")
		admin.readsNot(t, "GOCSPX")
	}
	admin.fills(t, "client_id", "reports.apps.example")
	admin.fills(t, "client_secret", "GOCSPX-of-the-test")
	allows()
	admin.reads(t, "“Read Google Analytics” was not allowed; tools that need it cannot be chosen.")
	g.Rule(func(r *consenttest.Rules) { r.Grants = nil })
	admin.opens(t, "/connections/"+key+"/consent") // the client is known by now
	allows()
	admin.reads(t, "Working")
	for _, asked := range g.Journal("authorize") {
		q := asked.Form
		if q.Get("access_type") != "offline" || q.Get("prompt") != "consent" || q.Has("resource") || asked.Scope != analyticstest.Scope || q.Get("code_challenge_method") != "S256" {
			t.Errorf("Google was asked by %v", q)
		}
	}
	admin.ticks(t, "mode", "read_only", true)
	admin.presses(t, "save-access")
	admin.opens(t, "/profiles/engineering")
	admin.ticks(t, "use", key, true)
	admin.presses(t, "save-profile")
	a := s.runtime().starts(t, task("engineering", "MKT-5")).connects(t, eras[0])
	const week = `"metrics":["activeUsers"],"dimensions":["country"],"date_ranges":[{"start_date":"7daysAgo","end_date":"yesterday"}],"limit":5`
	if report := a.reads(t, key+"__run_report", "{"+week+"}"); !strings.Contains(report, "5 of 400 rows") {
		t.Errorf("the report reads %s", report)
	}
	a.refused(t, "outside_resource", key+"__run_report", `{"property_id":"1002",`+week+`}`)
	g.Expire()
	if report := a.reads(t, key+"__run_report", "{"+week+"}"); !strings.Contains(report, "Country number 0") || len(g.Journal("refresh")) != 1 {
		t.Errorf("after the access ended: %s, renewed %d times", report, len(g.Journal("refresh")))
	}
}

// TestADocumentIsCorrected is work on a MongoDB database: an agent finds a customer with a wrong city, the card shows the document as it is
// and as it would be, the correction is approved, the server applies it and the answer is lost, and a read settles it without a second one.
func TestADocumentIsCorrected(t *testing.T) {
	v := mongotest.New(t, dbtest.Empty(t))
	customers := v.Direct.Database("shop").Collection("customers")
	_, err := customers.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "c_1"}, {Key: "name", Value: "Ada Verne"}, {Key: "city", Value: "Bergn"}, {Key: "note", Value: mongotest.Password}})
	must(t, err)
	v.Privileges = append(mongotest.Grants("shop", "find", "insert", "update", "remove", "dropCollection"), mongotest.Grants("payroll", "find")...)
	s := newServer(t, "COUNTERSIGN_DEMO=1", endpointsFile(t, "mongodb.v1", v.URL))
	s.start(t)
	admin, key := installs(t, s, "mongodb", map[string]string{"connection_string": mongotest.String(), "database": "shop"})
	admin.opens(t, "/connections/"+key)
	admin.reads(t, "also reaches payroll", "no tool here uses: dropCollection")
	admin.readsNot(t, mongotest.Password)

	a := s.runtime().starts(t, task("engineering", "CRM-8")).connects(t, eras[0])
	if found := a.reads(t, key+"__find", `{"database":"shop","collection":"customers","filter":{"city":"Bergn"}}`); !strings.Contains(found, "Ada Verne") || strings.Contains(found, mongotest.Password) {
		t.Errorf("the customer reads %s", found)
	}
	a.refused(t, "outside_resource", key+"__find", `{"database":"payroll","collection":"people"}`)
	a.refused(t, "invalid_arguments", key+"__aggregate", `{"database":"shop","collection":"customers","pipeline":[{"$facet":{"x":[{"$out":"copy"}]}}]}`)
	id := a.stages(t, key+"__update_one", `{"database":"shop","collection":"customers","id":"c_1","update":{"$set":{"city":"Bergen"}},"only_if":{"city":"Bergn"}}`)

	admin.opens(t, "/actions/"+id)
	admin.readsNot(t, "As it is now") // who does not decide sees no more of the service
	approver := s.signsIn(t, "approver@sandbox.test", desk)
	approver.opens(t, "/actions/"+id)
	approver.reads(t, "Change document c_1 in customers of database shop", "As it is now", `"city": "Bergn"`, `"city": "Bergen"`, "changed as marked")
	approver.readsNot(t, mongotest.Password)
	v.Break("update", directtest.ApplyThenReset)
	approver.presses(t, "approve")
	if done := s.runtime().settles(t, id, "succeeded"); done.Resolution != "reconciler" {
		t.Errorf("settled by %s", done.Resolution)
	}
	approver.opens(t, "/actions/"+id)
	approver.readsNot(t, "As it is now") // what was shown belonged to the decision
	if effects := v.Effects(""); len(effects) != 1 || effects[0] != (mongotest.Effect{Command: "update", Collection: "customers"}) {
		t.Errorf("the server applied %v", effects)
	}
	var now bson.M
	must(t, customers.FindOne(t.Context(), bson.D{{Key: "_id", Value: "c_1"}}).Decode(&now))
	if now["city"] != "Bergen" {
		t.Errorf("the document reads %v", now)
	}
}
