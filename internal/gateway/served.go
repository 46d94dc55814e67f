package gateway

import (
	"bytes"
	"encoding/json"
	"sync"
	"sync/atomic"

	"countersign/internal/canonical"
	"countersign/internal/capability"
	"countersign/internal/connector"
	"countersign/internal/provider"
	"countersign/internal/schema"
)

// served remembers, per connection and definition digest, what is needed of a definition for every call: its compiled schema and the
// bytes in which it is listed. Both follow from the digest alone, since what the digest leaves out is not served either.
type served struct {
	entries sync.Map // servedKey → *entry
	count   atomic.Int64
}

type servedKey struct {
	connection connector.Key
	digest     string
}

// entry is one definition, ready for use. A problem makes it unusable, and hides it alone.
type entry struct {
	short   string
	single  json.RawMessage // listed on the endpoint of its connection
	all     json.RawMessage // and on the one for all
	schema  *schema.Schema
	problem string
}

// maxServed bounds what is remembered. Past it everything is forgotten at once and made again when needed.
const maxServed = 20_000

func (s *served) entry(key connector.Key, d provider.Definition) *entry {
	k := servedKey{key, d.Digest}
	if e, ok := s.entries.Load(k); ok {
		return e.(*entry)
	}
	if s.count.Add(1) > maxServed {
		s.entries.Clear()
		s.count.Store(1)
	}
	e := newEntry(key, d)
	s.entries.Store(k, e)
	return e
}

func newEntry(key connector.Key, d provider.Definition) *entry {
	e := &entry{short: capability.ShortName(key, d.Name), problem: d.Problem}
	if e.problem != "" {
		return e
	}
	var err error
	if e.schema, err = schema.Compile(d.InputSchema); err != nil {
		e.problem = err.Error()
		return e
	}
	if e.single, err = listed(d.Raw, e.short); err == nil {
		e.all, err = listed(d.Raw, capability.Name(key, d.Name))
	}
	if err != nil {
		e.problem = "Its definition cannot be listed."
	}
	return e
}

// listed is a raw definition as an agent sees it: under its name on the endpoint, without the output schema (a staged or refused answer
// would break it, and strict clients throw), _meta (a channel past what was reviewed) and icons (addresses a client would fetch).
func listed(raw json.RawMessage, name string) (json.RawMessage, error) {
	form, err := canonical.Object(raw, "_meta", "icons", "outputSchema", "name")
	if err != nil {
		return nil, err
	}
	if bytes.Contains(form, []byte(headerWord)) {
		if form, err = withoutHeaderWords(form); err != nil {
			return nil, err
		}
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(form)+len(quoted)+8), `{"name":`...)
	out = append(out, quoted...)
	if len(form) > len("{}") {
		out = append(out, ',')
	}
	return append(out, form[1:]...), nil
}

// headerWord asks a client to copy an argument into a header, for proxies in front of the upstream. There is none of them between an
// agent and this gateway, and headers are kept in logs where bodies are not; towards the upstream the request is honoured.
const headerWord = "x-mcp-header"

func withoutHeaderWords(form []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(form))
	d.UseNumber()
	var tool any
	if err := d.Decode(&tool); err != nil {
		return nil, err
	}
	drop(tool)
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(tool); err != nil {
		return nil, err
	}
	return canonical.Canonicalize(out.Bytes())
}

// drop removes the word, which is a text; a property that happens to be called so is a schema and stays.
func drop(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, isText := v[headerWord].(string); isText {
			delete(v, headerWord)
		}
		for _, member := range v {
			drop(member)
		}
	case []any:
		for _, item := range v {
			drop(item)
		}
	}
}
