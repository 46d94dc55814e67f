package direct

import (
	"bytes"
	"encoding/json"
	"strings"

	"countersign/internal/provider"
	"countersign/internal/provider/mcpclient"
)

// Answer is what an agent gets. Text is for reading; where it is empty, the structured content stands there as JSON.
type Answer struct {
	Text       string
	Structured any
}

type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type result struct {
	Content    []content       `json:"content"`
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
}

// raw is the answer as an MCP tool result.
func (a Answer) raw(isError bool) (json.RawMessage, error) {
	r := result{IsError: isError, Content: []content{}}
	if a.Structured != nil {
		structured, err := compact(a.Structured)
		if err != nil {
			return nil, err
		}
		if bytes.HasPrefix(structured, []byte("{")) { // the protocol knows objects only
			r.Structured = structured
		}
		if a.Text == "" {
			a.Text = string(structured)
		}
	}
	if a.Text != "" {
		r.Content = append(r.Content, content{"text", a.Text})
	}
	return compact(r)
}

// compact marshals without escaping <, > and &, which nobody needs and everybody has to read.
func compact(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// deliver brings an answer within the bound of the connection.
func (l *Link) deliver(a Answer, isError bool) (provider.Result, error) {
	raw, err := a.raw(isError)
	if err != nil {
		return provider.Result{}, provider.Upstream("The service's answer cannot be shown.", err)
	}
	return mcpclient.Bounded(raw, l.Conn.Settings.MaxResult)
}

// Kept is an answer in the form that is kept with an outcome, within the bound of the connection.
func (l *Link) Kept(a Answer, isError bool) json.RawMessage {
	d, err := l.deliver(a, isError)
	if err != nil {
		d.Raw, _ = Answer{Text: "The service's answer cannot be kept within the bound."}.raw(isError)
	}
	return d.Raw
}

func textOf(raw json.RawMessage) string { return mcpclient.TextOf(raw) }

// Table writes rows as text under their heads, for people and models alike.
func Table(heads []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		for i, c := range cells {
			if i > 0 {
				b.WriteString(" | ")
			}
			b.WriteString(strings.NewReplacer("|", "\\|", "\n", " ", "\r", " ").Replace(c))
		}
		b.WriteByte('\n')
	}
	line(heads)
	rule := make([]string, len(heads))
	for i := range rule {
		rule[i] = "---"
	}
	line(rule)
	for _, r := range rows {
		line(r)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
