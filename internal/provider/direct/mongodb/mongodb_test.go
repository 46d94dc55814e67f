package mongodb_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"countersign/db/dbtest"
	"countersign/internal/action"
	"countersign/internal/connector"
	"countersign/internal/credential"
	"countersign/internal/egress"
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
