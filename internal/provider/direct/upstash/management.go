package upstash

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"countersign/internal/action"
	"countersign/internal/provider"
	"countersign/internal/provider/direct"
	"countersign/internal/registry"
)

var (
	id     = direct.ID("The id.")
	name   = direct.Field{Type: "string", Description: "The name.", Pattern: `^[A-Za-z0-9][A-Za-z0-9 _.-]{0,99}$`}
	region = direct.Field{Type: "string", Description: "A region, like eu-west-1.", Pattern: `^[a-z]{2}(-[a-z]+)+-?[0-9]*$`}
)

// endpoint is one tool of the management API. What stands in braces in path is an argument; the others are the body.
type endpoint struct {
	name, title, words string
	method, path       string
	fields             map[string]direct.Field
	needs              []string
	destructive        bool
	resource           string
	look               *state
}

func managementTools() []direct.Tool {
	var out []direct.Tool
	for _, e := range endpoints {
		out = append(out, e.tool())
	}
	return out
}

var inPath = regexp.MustCompile(`\{([a-z_]+)\}`)

func (e endpoint) tool() direct.Tool {
	t := direct.Tool{
		Name: e.name, Title: e.title, Description: e.words, Role: registry.API, Destructive: e.destructive, Resource: e.resource,
		Input: direct.Object{Fields: e.fields, Required: e.needs},
	}
	if e.method == http.MethodGet {
		t.Read = func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
			r, err := l.Ask(ctx, e.request(a))
			if err != nil {
				return direct.Answer{}, err
			}
			answer, err := shown(r)
			if err != nil {
				return answer, provider.Upstream("Upstash's answer is not what its API promises.", err)
			}
			return answer, nil
		}
		return t
	}
	t.Write = &direct.Write{
		Prepare: func(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Request, error) {
			q := e.request(a)
			if e.look != nil {
				if seen, err := e.look.see(ctx, l, a); err == nil { // a look that fails tells less afterwards, and stops nothing
					q.Before = digestOf(seen)
				}
			}
			return q, nil
		},
		Show: func(_ *direct.Link, _ direct.Arguments, r direct.Reply) direct.Answer {
			answer, err := shown(r)
			if err != nil {
				return direct.Answer{Text: "Applied."}
			}
			return answer
		},
	}
	if e.look != nil {
		t.Write.Look = e.look.judge
	}
	return t
}

func (e endpoint) request(a direct.Arguments) direct.Request {
	used := map[string]bool{}
	path := inPath.ReplaceAllStringFunc(e.path, func(slot string) string {
		argument := strings.Trim(slot, "{}")
		used[argument] = true
		return url.PathEscape(a.Text(argument))
	})
	q := direct.Request{Role: registry.API, Method: e.method, Path: path}
	if path, query, ok := strings.Cut(path, "?"); ok {
		q.Path = path
		q.Query, _ = url.ParseQuery(query) // ours
	}
	body := map[string]json.RawMessage{}
	for argument, raw := range a {
		if !used[argument] {
			body[argument] = raw
		}
	}
	if len(body) > 0 {
		q.Body = body
	}
	return q
}

// state is what a management write changes: a member of one object, whether an object is there, or whether a list has one of a name.
type state struct {
	path    string
	member  string // of the object
	want    string // JSON; "{argument}" is the argument's
	listed  string // the member of the list's items that holds the argument below
	called  string // that argument
	present string // what is seen when it is as the call makes it: "there", "gone"
}

// see is what there is now, as a short text.
func (s state) see(ctx context.Context, l *direct.Link, a direct.Arguments) (string, error) {
	r, err := l.Ask(ctx, endpoint{method: http.MethodGet, path: s.path}.request(onlyPath(s.path, a)))
	switch {
	case direct.Is404(err) && s.member == "":
		return "gone", nil
	case err != nil:
		return "", err
	case s.listed != "":
		var items []map[string]json.RawMessage
		if err := r.JSON(&items); err != nil {
			return "", provider.Upstream("Upstash's answer is not what its API promises.", err)
		}
		for _, item := range items {
			if string(item[s.listed]) == string(a[s.called]) {
				return "there", nil
			}
		}
		return "gone", nil
	case s.member == "":
		return "there", nil
	}
	var object map[string]json.RawMessage
	if err := r.JSON(&object); err != nil {
		return "", provider.Upstream("Upstash's answer is not what its API promises.", err)
	}
	return string(object[s.member]), nil
}

func onlyPath(path string, a direct.Arguments) direct.Arguments {
	out := direct.Arguments{}
	for _, m := range inPath.FindAllStringSubmatch(path, -1) {
		out[m[1]] = a[m[1]]
	}
	return out
}

func (s state) wanted(a direct.Arguments) string {
	if s.present != "" {
		return s.present
	}
	if m := inPath.FindStringSubmatch(s.want); m != nil {
		return string(a[m[1]])
	}
	return s.want
}

func (s *state) judge(ctx context.Context, l *direct.Link, a direct.Arguments, e action.Evidence) (provider.Sighting, error) {
	seen, err := s.see(ctx, l, a)
	if err != nil {
		return provider.Sighting{}, err
	}
	now := digestOf(seen)
	switch {
	case e.Before == "":
		return provider.Sighting{Sight: provider.Unseen, Sentence: "What was there before the call is not known, so what is there now does not tell."}, nil
	case seen == s.wanted(a) && e.Before != now:
		return provider.Sighting{Sight: provider.Applied, Sentence: "Upstash shows what the call was to bring about, and did not before."}, nil
	case seen != s.wanted(a) && e.Before == now:
		return provider.Sighting{Sight: provider.Absent, Sentence: "Upstash shows it as it was before the call."}, nil
	}
	return provider.Sighting{Sight: provider.Unseen, Sentence: "What Upstash shows does not tell."}, nil
}
