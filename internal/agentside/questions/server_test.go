package questions_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/internal/agentside/questions"
)

// connect is a client of an era in front of the server; with person nil it cannot ask anybody.
func connect(t *testing.T, era string, person func(*mcp.ElicitParams) *mcp.ElicitResult) *mcp.ClientSession {
	t.Helper()
	here, there := mcp.NewInMemoryTransports()
	if _, err := questions.New("test").Connect(t.Context(), there, nil); err != nil {
		t.Fatal(err)
	}
	o := &mcp.ClientOptions{}
	if person != nil {
		o.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return person(r.Params), nil }
	}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: era})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

const form = `{"question":"Which release goes out?","fields":[
	{"name":"branch","label":"Branch","type":"choice","options":["main","next"]},
	{"name":"copies","label":"How many","type":"integer","least":1,"most":5},
	{"name":"share","label":"Share of users","type":"number","optional":true},
	{"name":"notify","label":"Tell the customers?","type":"yes_no"},
	{"name":"areas","label":"Areas","type":"choices","options":["eu","us"],"optional":true},
	{"name":"note","label":"Note","type":"text","most":20,"optional":true}]}`

func ask(t *testing.T, s *mcp.ClientSession, form string) (failed bool, text string, data map[string]any) {
	t.Helper()
	return call(t, s, &mcp.CallToolParams{Arguments: json.RawMessage(form)})
}

func call(t *testing.T, s *mcp.ClientSession, p *mcp.CallToolParams) (failed bool, text string, data map[string]any) {
	t.Helper()
	p.Name = questions.Tool
	r, err := s.CallTool(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text += c.Text
		}
	}
	data, _ = r.StructuredContent.(map[string]any)
	return r.IsError, text, data
}

func TestAPersonAnswersDeclinesOrDismisses(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			var shown *mcp.ElicitParams
			answer := &mcp.ElicitResult{}
			s := connect(t, era, func(p *mcp.ElicitParams) *mcp.ElicitResult { shown = p; return answer })

			*answer = mcp.ElicitResult{Action: "accept", Content: map[string]any{"branch": "next", "copies": 3.0, "notify": false, "areas": []any{"eu"}, "smuggled": "more"}}
			failed, text, data := ask(t, s, form)
			want := map[string]any{"answer": "answered", "values": map[string]any{"branch": "next", "copies": 3.0, "notify": false, "areas": []any{"eu"}}}
			if failed || !reflect.DeepEqual(data, want) {
				t.Errorf("answered: %v %s %v", failed, text, data)
			}
			raw, err := json.Marshal(shown.RequestedSchema)
			if err != nil || shown.Message != "Which release goes out?" || !strings.Contains(string(raw), `"enum":["main","next"]`) || !strings.Contains(string(raw), `"required":["branch","copies","notify"]`) {
				t.Errorf("the person was shown %s %s %v", shown.Message, raw, err)
			}
			for action, word := range map[string]string{"decline": "declined", "cancel": "dismissed"} {
				*answer = mcp.ElicitResult{Action: action}
				if failed, _, data := ask(t, s, form); failed || data["answer"] != word || data["values"] != nil {
					t.Errorf("%s: %v %v", action, failed, data)
				}
			}
		})
	}
}

// What a client of 2026-07-28 brings is checked here and by nobody before: it could bring anything with a first request.
func TestWhatDoesNotFitTheFormIsNotTaken(t *testing.T) {
	t.Parallel()
	s := connect(t, "2026-07-28", nil)
	bring := func(form string, content map[string]any) (bool, string, map[string]any) {
		return call(t, s, &mcp.CallToolParams{Arguments: json.RawMessage(form), InputResponses: mcp.InputResponseMap{"form": &mcp.ElicitResult{Action: "accept", Content: content}}})
	}
	for name, content := range map[string]map[string]any{
		"nothing":          {},
		"another option":   {"branch": "evil", "copies": 1.0, "notify": true},
		"another type":     {"branch": "main", "copies": "one", "notify": true},
		"beyond the most":  {"branch": "main", "copies": 9.0, "notify": true},
		"half a copy":      {"branch": "main", "copies": 1.5, "notify": true},
		"a longer text":    {"branch": "main", "copies": 1.0, "notify": true, "note": strings.Repeat("n", 21)},
		"another's option": {"branch": "main", "copies": 1.0, "notify": true, "areas": []any{"mars"}},
	} {
		if failed, text, data := bring(form, content); !failed || data != nil || !strings.Contains(text, "does not fit the form") {
			t.Errorf("%s: %v %s %v", name, failed, text, data)
		}
	}
	failed, text, _ := bring(`{"question":"What does the log say?","fields":[{"name":"what","label":"The line","type":"text"}]}`, map[string]any{"what": "it is ghp_" + strings.Repeat("a1B2", 9)})
	if !failed || !strings.Contains(text, "a GitHub token") || strings.Contains(text, "ghp_") {
		t.Errorf("a secret in an answer: %v %s", failed, text)
	}
}

func TestNobodyIsAskedForSecretsOrForNonsense(t *testing.T) {
	t.Parallel()
	s := connect(t, "2025-11-25", func(p *mcp.ElicitParams) *mcp.ElicitResult {
		t.Errorf("a person was asked %q", p.Message)
		return &mcp.ElicitResult{Action: "cancel"}
	})
	field := func(f string) string { return `{"question":"Please fill in.","fields":[` + f + `]}` }
	for asked, why := range map[string]string{
		field(`{"name":"password","label":"Word","type":"text"}`):                                               "asks for a secret",
		field(`{"name":"value","label":"GitHub personal access token","type":"text"}`):                          "asks for a secret",
		field(`{"name":"api_key","label":"Value","type":"text"}`):                                               "asks for a secret",
		field(`{"name":"value","label":"Value","hint":"the 6 digits of your 2FA app","type":"text"}`):           "asks for a secret",
		`{"question":"What is the passphrase of the key?","fields":[{"name":"it","label":"It","type":"text"}]}`: "asks for a secret",
		field(`{"name":"a","label":"A","type":"text"},{"name":"a","label":"B","type":"text"}`):                  "is there twice",
		field(`{"name":"A b","label":"A","type":"text"}`):                                                       "cannot be the name",
		field(`{"name":"a","label":"A","type":"file"}`):                                                         "the types are",
		field(`{"name":"a","label":"A","type":"choice","options":["one"]}`):                                     "2 to 20 options",
		field(`{"name":"a","label":"A","type":"choice","options":["one","one"]}`):                               "twice",
		field(`{"name":"a","label":"A","type":"text","options":["one","two"]}`):                                 "is no choice",
		field(`{"name":"a","label":"A","type":"integer","least":5,"most":1}`):                                   "larger than the largest",
		field(`{"name":"value","label":"Your pаsswоrd","type":"text"}`):                                         "asks for a secret",
		field(`{"name":"value","label":"Your ｐａｓｓｗｏｒｄ","type":"text"}`):                                         "asks for a secret",
		field(`{"name":"value","label":"Your 𝗽𝗮𝘀𝘀𝘄𝗼𝗿𝗱","type":"text"}`):                                         "asks for a secret",
		field(`{"name":"value","label":"Your pass\u200dword","type":"text"}`):                                   "asks for a secret",
		field(`{"name":"value","label":"Your pass\u2028word","type":"text"}`):                                   "cannot be seen",
		field(`{"name":"value","label":"Your pass\ufe0fword","type":"text"}`):                                   "asks for a secret",
		field(`{"name":"value","label":"Your pass\ufe01word","type":"text"}`):                                   "cannot be seen",
		field(`{"name":"a","label":"A\u202e","type":"text"}`):                                                   "cannot be seen",
		field(`{"name":"a","label":"","type":"text"}`):                                                          "is empty",
		field(``): "1 to 8 fields",
		`{"question":"` + strings.Repeat("q", 1001) + `","fields":[{"name":"a","label":"A","type":"text"}]}`: "longer than 1000",
	} {
		if failed, text, _ := ask(t, s, asked); !failed || !strings.Contains(text, why) {
			t.Errorf("%s: %v %s", asked, failed, text)
		}
	}
	mute := connect(t, "2026-07-28", nil)
	if failed, text, _ := ask(t, mute, form); !failed || !strings.Contains(text, "cannot ask its person") {
		t.Errorf("a client without elicitation: %v %s", failed, text)
	}
}
