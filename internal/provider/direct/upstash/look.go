package upstash

import (
	"context"
	"encoding/json"
	"slices"

	"countersign/internal/action"
	"countersign/internal/canonical"
	"countersign/internal/provider"
	"countersign/internal/provider/direct"
)

// observation is a read that shows whether a write was applied: what it reads, and what it shows then. Commands that add up (INCR, APPEND,
// LPUSH …) have none: an equal change of somebody else looks the same.
type observation struct {
	read []string
	want string // JSON
}

func observe(c command) (observation, bool) {
	n := len(c.Arguments)
	quoted := func(s string) string {
		raw, err := json.Marshal(s)
		if err != nil {
			return ""
		}
		return string(raw)
	}
	switch {
	case c.Command == "SET" && n == 1:
		return observation{[]string{"GET", c.Key}, quoted(c.Arguments[0])}, true
	case c.Command == "DEL", c.Command == "UNLINK":
		return observation{append([]string{"EXISTS", c.Key}, c.Arguments...), "0"}, true
	case c.Command == "RENAME" && n == 1 && c.Key != c.Arguments[0]:
		return observation{[]string{"EXISTS", c.Key}, "0"}, true
	case c.Command == "HSET" && n == 2:
		return observation{[]string{"HGET", c.Key, c.Arguments[0]}, quoted(c.Arguments[1])}, true
	case c.Command == "HDEL" && n == 1:
		return observation{[]string{"HEXISTS", c.Key, c.Arguments[0]}, "0"}, true
	case c.Command == "SADD" && n == 1:
		return observation{[]string{"SISMEMBER", c.Key, c.Arguments[0]}, "1"}, true
	case c.Command == "SREM" && n == 1:
		return observation{[]string{"SISMEMBER", c.Key, c.Arguments[0]}, "0"}, true
	}
	return observation{}, false
}

func (o observation) see(ctx context.Context, l *direct.Link) (string, error) {
	if !slices.Contains(reading, o.read[0]) {
		return "", provider.Upstream("Only reads are looked with.", nil)
	}
	var got answered
	err := run(ctx, l, "/", o.read, &got)
	return string(got.Result), err
}

// digestOf keeps that a value changed, and not the value.
func digestOf(seen string) string { return "state " + canonical.Digest([]byte(seen)) }

func lookable(a direct.Arguments) bool {
	c, err := single(a)
	if err != nil {
		return false
	}
	_, ok := observe(c)
	return ok
}

func look(ctx context.Context, l *direct.Link, a direct.Arguments, e action.Evidence) (provider.Sighting, error) {
	c, err := single(a)
	if err != nil {
		return provider.Sighting{}, err
	}
	o, ok := observe(c)
	if !ok {
		return provider.Sighting{Sight: provider.Unseen, Sentence: "No read tells what became of " + c.Command + "."}, nil
	}
	seen, err := o.see(ctx, l)
	if err != nil {
		return provider.Sighting{}, err
	}
	now := digestOf(seen)
	switch {
	case e.Before == "":
		return provider.Sighting{Sight: provider.Unseen, Sentence: "What was there before the call is not known, so what is there now does not tell."}, nil
	case seen == o.want && e.Before != now:
		return provider.Sighting{Sight: provider.Applied, Sentence: o.read[0] + " shows what the call was to bring about, and did not before."}, nil
	case seen != o.want && e.Before == now:
		return provider.Sighting{Sight: provider.Absent, Sentence: o.read[0] + " shows it as it was before the call."}, nil
	}
	return provider.Sighting{Sight: provider.Unseen, Sentence: o.read[0] + " shows something that does not tell."}, nil
}
