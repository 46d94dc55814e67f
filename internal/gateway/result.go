package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/fault"
	"countersign/internal/unseen"
)

// result is an MCP tool result of ours.
type result struct {
	Content    []text `json:"content"`
	Structured any    `json:"structuredContent,omitempty"`
	IsError    bool   `json:"isError"`
}

type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// say makes a result of one text and what it says for programs.
func say(words string, structured any, isError bool) (json.RawMessage, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(result{Content: []text{{"text", words}}, Structured: structured, IsError: isError})
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// refusal is the structured form of a fault.
type refusal struct {
	Error refused `json:"error"`
}

type refused struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
	Next    string     `json:"next"`
}

func refusalOf(f *fault.Error) refusal { return refusal{refused{f.Code, f.What, f.Next}} }

// ours reports whether a fault says nothing about the call: the database does not answer, or a defect.
func ours(f *fault.Error) bool { return f.Kind == fault.Internal || f.Code == fault.CodeUnavailable }

// refused records a refusal and answers with it. A refusal that cannot be recorded is not an answer either.
func (g *Gateway) refused(ctx context.Context, l capability.Live, t target, c Call, why error) (json.RawMessage, error) {
	f := fault.Of(why)
	if ours(f) {
		return nil, why
	}
	object := audit.Object{Kind: "run", ID: string(l.Run.ID)}
	tool := clip(c.Name) // as the agent wrote it: it resolved to nothing of ours
	if t.tool != "" {
		object = audit.Object{Kind: "connection", ID: t.key().String()}
		tool = t.key().String() + "/" + t.tool
	}
	err := g.Recorder.Record(context.WithoutCancel(ctx), audit.Entry{
		Org: l.Org.ID, Actor: agent(l.Run), Event: audit.ToolRefused, Object: object,
		Facts: []audit.Fact{{Name: "tool", Value: tool}, {Name: "code", Value: string(f.Code)}, {Name: "run", Value: string(l.Run.ID)}, {Name: "argument_bytes", Value: strconv.Itoa(len(c.Arguments))}},
	})
	if err != nil {
		return nil, err
	}
	return refuse(f)
}

func refuse(f *fault.Error) (json.RawMessage, error) {
	return say("REFUSED ("+string(f.Code)+"). "+f.Error(), refusalOf(f), true)
}

// clip keeps a name that a stranger made up short and on one line of the trail.
func clip(name string) string {
	name = visible(name)
	const most = 100
	if r := []rune(name); len(r) > most {
		return string(r[:most]) + "…"
	}
	return name
}

// visible drops what is no character of a line.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unseen.Is(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// state is the structured answer about an action that has no result of its own to show.
type state struct {
	Status      string    `json:"status"`
	ActionID    action.ID `json:"action_id"`
	ArgsDigest  string    `json:"args_digest"`
	ExpiresAt   string    `json:"expires_at,omitempty"`
	ApprovalURL string    `json:"approval_url"`
	PollAfterMS int       `json:"poll_after_ms,omitempty"`
	Error       *refused  `json:"error,omitempty"`
}
