package questions

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tool is the name of the one tool.
const Tool = "ask"

// answerKey names the one input that a call needs.
const answerKey = "form"

// Answered is what the agent gets.
type Answered struct {
	Answer string         `json:"answer" jsonschema:"answered, declined or dismissed"`
	Values map[string]any `json:"values,omitempty" jsonschema:"the answers by field, where there are some"`
}

// New makes the server. It keeps nothing between calls: what was asked comes again with its answer, and is judged again.
func New(version string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "structured-questions", Title: "Structured questions", Version: version}, &mcp.ServerOptions{
		Instructions: "Ask the person at the other end with the tool " + Tool + " when only they know how to go on. Never ask for secrets. An answer is no approval: what needs one is approved elsewhere.",
	})
	outside := false
	mcp.AddTool(s, &mcp.Tool{
		Name: Tool, Title: "Ask the person",
		Description: "Asks the person at the other end a short form, and answers what they filled in, or that they declined or dismissed it. Never for passwords, keys or other secrets.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &outside},
	}, ask)
	return s
}

// ask is called once without an answer and once with it: by a client of 2026-07-28 in two requests, for an older one by the SDK, which asks the
// client between the two.
func ask(_ context.Context, r *mcp.CallToolRequest, f Form) (*mcp.CallToolResult, any, error) {
	if why := f.Check(); why != "" {
		return refusal(why), nil, nil
	}
	given, ok := r.Params.InputResponses[answerKey]
	switch {
	case !ok && !asks(r):
		return refusal("This client cannot ask its person: it declares no elicitation of forms. Ask in the conversation itself."), nil, nil
	case !ok:
		form := &mcp.ElicitParams{Mode: "form", Message: f.Question, RequestedSchema: f.Schema()}
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{answerKey: form}}, nil, nil
	}
	answer, _ := given.(*mcp.ElicitResult)
	if answer == nil {
		return refusal("The client answered with something else than was asked for."), nil, nil
	}
	return f.told(answer)
}

// told is what the agent gets of a person's answer.
func (f Form) told(answer *mcp.ElicitResult) (*mcp.CallToolResult, any, error) {
	switch answer.Action {
	case "accept":
		values, why := f.Answers(answer.Content)
		if why != "" {
			return refusal(why), nil, nil
		}
		return nil, Answered{"answered", values}, nil
	case "decline":
		return nil, Answered{Answer: "declined"}, nil
	case "cancel":
		return nil, Answered{Answer: "dismissed"}, nil
	}
	return refusal("The client answered with something else than was asked for."), nil, nil
}

// asks reports whether the client can show a form. One that declares elicitation without a kind is of the time when there was one kind.
func asks(r *mcp.CallToolRequest) bool {
	p := r.Session.InitializeParams()
	if p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return false
	}
	e := p.Capabilities.Elicitation
	return e.Form != nil || e.URL == nil
}

func refusal(why string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "NO ANSWER. " + why}}}
}
