package crm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestEveryEraListsAndCalls(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			c := start(t)
			cs := c.client(era)
			list, err := cs.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Tools) != 11 {
				t.Fatalf("%d tools", len(list.Tools))
			}
			text, got, isError := ask(t, cs, "contacts_get", `{"contact_id":"c_1004"}`)
			if isError || got["contact"].(map[string]any)["email"] != "daniel.sorensen@fjord-analytics.example" || len(got["refunds"].([]any)) != 1 {
				t.Errorf("contacts_get: %s", text)
			}
			var fromText map[string]any
			if err := json.Unmarshal([]byte(text), &fromText); err != nil || !reflect.DeepEqual(fromText, got) {
				t.Errorf("text and structured content differ: %v", err)
			}
			ask(t, cs, "contacts_update", `{"contact_id":"c_1004","title":"Director of IT"}`)
			c.applied("contacts_update")
			if _, got, _ := ask(t, cs, "contacts_get", `{"contact_id":"c_1004"}`); got["contact"].(map[string]any)["title"] != "Director of IT" {
				t.Error("the update did not take")
			}
			if cs.ID() != "" {
				t.Error("a session id was handed out")
			}
		})
	}
}

func TestDefinitionsCarryExactlyTheNamedAnnotations(t *testing.T) {
	want := map[string]string{
		"contacts_search": `{"readOnlyHint":true}`, "contacts_get": `{"readOnlyHint":true}`, "contacts_list": `{"readOnlyHint":true}`,
		"contacts_create": `{"readOnlyHint":false,"destructiveHint":false}`, "contacts_update": `{"readOnlyHint":false,"destructiveHint":false}`,
		"deals_move": `{"readOnlyHint":false,"destructiveHint":false}`, "contacts_delete": `{"destructiveHint":true}`, "refund_issue": `{"destructiveHint":true}`,
		"notes_add": ``, "report_export": `{"readOnlyHint":true}`, "wait": `{"readOnlyHint":true}`,
	}
	c := start(t)
	for _, era := range eras {
		tools, order := c.rawTools(era)
		if len(order) != len(want) {
			t.Errorf("%s lists %v", era, order)
		}
		for name, annotations := range want {
			var d struct {
				Annotations json.RawMessage
				Description string
				InputSchema struct {
					Type       string
					Properties map[string]struct{ Description string }
				}
			}
			if err := json.Unmarshal(tools[name], &d); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if string(d.Annotations) != annotations {
				t.Errorf("%s: annotations %q, wanted %q", name, d.Annotations, annotations)
			}
			if d.Description == "" || d.InputSchema.Type != "object" || len(d.InputSchema.Properties) == 0 {
				t.Errorf("%s: incomplete definition %s", name, tools[name])
			}
			for property, p := range d.InputSchema.Properties {
				if p.Description == "" {
					t.Errorf("%s: %s has no description", name, property)
				}
			}
		}
	}
}

func TestToolsDoWhatTheySay(t *testing.T) {
	for _, tc := range []struct {
		tool, args, answer string // answer: a part of the text
		effect             bool
	}{
		{"contacts_search", `{"query":"ATLAS"}`, `"id":"c_1010"`, false},
		{"contacts_search", `{"query":"example","limit":2}`, `"total":12`, false},
		{"contacts_search", `{"query":"no such thing"}`, `"contacts":[]`, false},
		{"contacts_list", `{"limit":5}`, `"next_cursor":"c_1005"`, false},
		{"contacts_list", `{"limit":5,"cursor":"c_1010"}`, `"id":"c_1012"`, false},
		{"contacts_create", `{"name":"Ada Vance","email":"ada@vance.example","company":"Vance"}`, `"id":"c_1013"`, true},
		{"contacts_update", `{"contact_id":"c_1002","email":"l.brandt@brandt.example"}`, `l.brandt@brandt.example`, true},
		{"deals_move", `{"deal_id":"d_2003","stage":"won"}`, `"previous_stage":"proposal"`, true},
		{"contacts_delete", `{"contact_id":"c_1012"}`, `{"deleted":"c_1012"}`, true},
		{"refund_issue", `{"contact_id":"c_1003","amount_cents":1250,"reason":"late"}`, `"amount_cents":1250`, true},
		{"notes_add", `{"contact_id":"c_1003","text":"Called <back> & agreed"}`, `Called <back> & agreed`, true},
		{"wait", `{"seconds":0.01}`, `{"waited_seconds":0.01}`, false},
	} {
		t.Run(tc.tool+tc.args, func(t *testing.T) {
			c := start(t)
			text, structured, isError := ask(t, c.client(eras[0]), tc.tool, tc.args)
			if isError || structured == nil || !strings.Contains(text, tc.answer) {
				t.Errorf("answered %s (error %v), wanted a part %s", text, isError, tc.answer)
			}
			j := c.journal()
			if !tc.effect {
				if len(j) != 0 {
					t.Errorf("a read was journaled: %v", j)
				}
				return
			}
			if len(j) != 1 || j[0].Seq != 1 || j[0].Tool != tc.tool || string(j[0].Arguments) != compactJSON(t, tc.args) || time.Since(j[0].At).Abs() > time.Minute || j[0].At.Location() != time.UTC {
				t.Errorf("journal %+v", j)
			}
		})
	}
}

// compactJSON is args as encoding/json writes them inside a larger document.
func compactJSON(t *testing.T, args string) string {
	t.Helper()
	b, err := json.Marshal(json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWhatIsWrongIsAToolErrorAndNoEffect(t *testing.T) {
	c := start(t)
	cs := c.client(eras[0])
	for _, tc := range []struct{ tool, args string }{
		{"contacts_get", `{"contact_id":"c_9999"}`},
		{"contacts_get", `{}`},
		{"contacts_get", `{"contact_id":7}`},
		{"contacts_search", `{"query":""}`},
		{"contacts_list", `{"limit":0}`},
		{"contacts_list", `{"limit":101}`},
		{"contacts_list", `{"cursor":"c_1"}`},
		{"contacts_create", `{"name":"A"}`},
		{"contacts_create", `{"name":" ","email":"a@b"}`},
		{"contacts_create", `{"name":"A","email":"nobody"}`},
		{"contacts_update", `{"contact_id":"c_1001"}`},
		{"contacts_update", `{"contact_id":"c_1001","shoe_size":"44"}`},
		{"contacts_update", `{"contact_id":"c_8","name":"X"}`},
		{"deals_move", `{"deal_id":"d_2001","stage":"limbo"}`},
		{"deals_move", `{"deal_id":"d_1","stage":"won"}`},
		{"contacts_delete", `{"contact_id":"c_77"}`},
		{"refund_issue", `{"contact_id":"c_1001","amount_cents":0}`},
		{"refund_issue", `{"contact_id":"c_1001","amount_cents":-5}`},
		{"refund_issue", `{"contact_id":"c_1001","amount_cents":1.5}`},
		{"refund_issue", `{"contact_id":"c_1001","amount_cents":"100"}`},
		{"refund_issue", `{"contact_id":"c_1001","amount_cents":1e99}`},
		{"refund_issue", `{"contact_id":"c_1001"}`},
		{"notes_add", `{"contact_id":"c_1001","text":""}`},
		{"notes_add", `{"contact_id":"c_1001","text":"  "}`},
		{"report_export", `{"kilobytes":0}`},
		{"report_export", `{"kilobytes":20481}`},
		{"wait", `{"seconds":121}`},
		{"wait", `{"seconds":-1}`},
		{"wait", `{}`},
	} {
		if text, structured, isError := ask(t, cs, tc.tool, tc.args); !isError || structured != nil || text == "" || len(text) > 600 {
			t.Errorf("%s %s: error %v, %s", tc.tool, tc.args, isError, text)
		}
	}
	c.applied()
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "no_such_tool"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("an unknown tool answered %v", err)
	}
}

func TestANumberOfAMillionDigitsIsRefusedAtOnce(t *testing.T) {
	for _, d := range builtinDefinitions() {
		if d.schema == nil {
			t.Errorf("%s has no usable schema", d.name)
			continue
		}
		if err := d.check(json.RawMessage(`{"contact_id":"c_1001","amount_cents":1e999999}`)); err == nil {
			t.Errorf("%s takes it", d.name)
		}
	}
}

func TestReportHasExactlyTheSizeAskedFor(t *testing.T) {
	c := start(t)
	cs := c.client(eras[0])
	for _, kilobytes := range []int{1, 257, largestReportKB} {
		args := fmt.Sprintf(`{"kilobytes":%d}`, kilobytes)
		first, _, isError := ask(t, cs, "report_export", args)
		if isError || len(first) != kilobytes*1024 {
			t.Errorf("%d kilobytes: %d bytes", kilobytes, len(first))
		}
		if second, _, _ := ask(t, cs, "report_export", args); second != first {
			t.Errorf("%d kilobytes: two reports differ", kilobytes)
		}
	}
}

func TestDeletingAContactKeepsTheBooks(t *testing.T) {
	r := seeded()
	if _, err := contactsDelete(r, json.RawMessage(`{"contact_id":"c_1004"}`), time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.contact("c_1004"); err == nil {
		t.Error("still there")
	}
	if slices.ContainsFunc(r.Deals, func(d deal) bool { return d.ContactID == "c_1004" }) {
		t.Error("its deals stayed")
	}
	if len(r.Refunds) != 1 || r.Refunds[0].ContactID != "c_1004" {
		t.Error("its refund left the books")
	}
}

func TestSeedIsTheSameEachTimeAndLeavesTheNextIDsFree(t *testing.T) {
	a, b := seeded(), seeded()
	if !reflect.DeepEqual(a, b) {
		t.Error("two seeds differ")
	}
	if len(a.Contacts) != 12 || a.Contacts[0].ID != "c_1001" {
		t.Errorf("%d contacts from %s", len(a.Contacts), a.Contacts[0].ID)
	}
	raw := string(seed)
	for prefix := range firstFree {
		if id := a.nextID(prefix); strings.Contains(raw, `"`+id+`"`) {
			t.Errorf("the seed already uses %s", id)
		}
	}
	for _, d := range a.Deals {
		if _, err := a.contact(d.ContactID); err != nil || !slices.Contains(stages, d.Stage) {
			t.Errorf("deal %s: contact %s, stage %s", d.ID, d.ContactID, d.Stage)
		}
	}
	a.Contacts[0].Invoices[0].AmountCents = 1
	if reflect.DeepEqual(a.Contacts[0], seeded().Contacts[0]) {
		t.Error("seeds share memory")
	}
}

func TestJournalKeepsTheOrderOfConcurrentEffects(t *testing.T) {
	c := start(t)
	cs := c.client(eras[0])
	const calls = 40
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			ask(t, cs, "notes_add", fmt.Sprintf(`{"contact_id":"c_1007","text":"n%d"}`, i))
		})
	}
	wg.Wait()
	_, got, _ := ask(t, cs, "contacts_get", `{"contact_id":"c_1007"}`)
	notes, j := got["notes"].([]any), c.journal()
	if len(notes) != calls || len(j) != calls {
		t.Fatalf("%d notes, %d entries", len(notes), len(j))
	}
	for i, e := range j {
		var args struct{ Text string }
		if err := json.Unmarshal(e.Arguments, &args); err != nil || e.Seq != i+1 || args.Text != notes[i].(map[string]any)["text"] {
			t.Fatalf("entry %d is %d %s, the note is %v", i, e.Seq, e.Arguments, notes[i])
		}
	}
}

func TestTheJournalHoldsHeaderNamesAndNoValues(t *testing.T) {
	c := start(t)
	r := c.request(t.Context(), eras[0], "tools/call", `{"name":"notes_add","arguments":{"contact_id":"c_1001","text":"canary-argument"}}`)
	r.Header.Set("X-Trace", "canary-header")
	if status, body, err := send(r); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, body, err)
	}
	names := c.journal()[0].Headers
	for _, want := range []string{"Authorization", "Mcp-Name", "X-Trace"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing in %v", want, names)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("not sorted: %v", names)
	}
	_, journal := c.control(http.MethodGet, "/journal", "")
	for _, secret := range []string{bearer, "canary-header"} {
		if strings.Contains(journal, secret) {
			t.Errorf("the journal holds %q", secret)
		}
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{bearer, ctlCred, "canary-header", "canary-argument"} {
		if strings.Contains(c.log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}
