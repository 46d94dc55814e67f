package mcpclient

import (
	"context"
	"encoding/json"
	"strings"

	"countersign/internal/action"
	"countersign/internal/provider"
)

// Reconcile implements provider.Reconciler with the reviewed probe of the call. MCP itself has no way to ask for the outcome of a lost
// call. An answer that was cut cannot prove that something is missing in it, so it tells nothing.
func (c *Client) Reconcile(ctx context.Context, conn *provider.Conn, call provider.Call, _ action.Evidence) (provider.Sighting, error) {
	if call.Probe == nil {
		return provider.Sighting{Sight: provider.Unseen, Sentence: "No read of this service can tell without doubt what became of the call."}, nil
	}
	r, err := c.Read(ctx, conn, call.Probe.Call)
	if err != nil {
		return provider.Sighting{}, err
	}
	s := provider.Sighting{Sight: provider.Unseen}
	if !r.Bounded {
		s.Sight = call.Probe.Judge(TextOf(r.Raw))
	}
	s.Sentence = call.Probe.Call.Tool + map[provider.Sight]string{
		provider.Applied: " shows what the call was to bring about.",
		provider.Absent:  " shows it as it was before the call.",
	}[s.Sight]
	if s.Sight == provider.Unseen {
		s.Sentence = call.Probe.Call.Tool + " gave an answer that does not tell."
	}
	return s, nil
}

// TextOf is what an MCP tool result says in text, its parts on lines of their own.
func TextOf(result json.RawMessage) string {
	var answer struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(result, &answer) != nil {
		return ""
	}
	var parts []string
	for _, c := range answer.Content {
		if c.Type == "text" {
			parts = append(parts, c.Text)
		}
	}
	return strings.Join(parts, "\n")
}
