package upstash

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"countersign/internal/action"
	"countersign/internal/fault"
	"countersign/internal/provider"
	"countersign/internal/provider/direct"
	"countersign/internal/registry"
)

// Most commands of one call.
const (
	mostReads  = 50
	mostWrites = 20
)

func words(description string) direct.Field {
	return direct.Field{Type: "array", Description: description, Items: &direct.Field{Type: "string", MaxLength: 100_000}, MaxItems: 1000}
}

var (
	readShape = map[string]direct.Field{
		"command": direct.OneOf("A command without an effect.", reading...), "arguments": words("Its arguments, as redis-cli takes them."),
	}
	writeShape = map[string]direct.Field{
		"command": direct.OneOf("A command that changes one key, or several from the first on.", writing...), "key": {Type: "string", Description: "The key; with several, the first one.", MinLength: 1, MaxLength: 1000},
		"arguments": words("What follows the key, as redis-cli takes it."),
	}
)

// command is one command of a call.
type command struct {
	Command   string   `json:"command"`
	Key       string   `json:"key"`
	Arguments []string `json:"arguments"`
}

// wire is the command as the vendor takes it. It is judged again here: the lists are the fence, not the schema of a definition.
func (c command) wire(allowed []string) ([]string, error) {
	if !slices.Contains(allowed, c.Command) {
		return nil, fault.New(fault.Invalid, fault.InvalidArguments, "This Redis command is not offered here.", "Use one of the commands that the tool lists.")
	}
	out := strings.Fields(c.Command)
	if c.Key != "" {
		out = append(out, c.Key)
	}
	return append(out, c.Arguments...), nil
}

func single(a direct.Arguments) (c command, err error) {
	c.Command, c.Key = a.Text("command"), a.Text("key")
	return c, a.Into("arguments", &c.Arguments)
}

func several(a direct.Arguments, allowed []string) ([][]string, error) {
	var all []command
	if err := a.Into("commands", &all); err != nil {
		return nil, err
	}
	out := make([][]string, len(all))
	for i, c := range all {
		var err error
		if out[i], err = c.wire(allowed); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// answered is one answer of the vendor: a result, or an error.
type answered struct {
	Result json.RawMessage `json:"result"`
	Error  string          `json:"error"`
}

func redisTools() []direct.Tool {
	return []direct.Tool{
		{
			Name: "redis_read", Title: "Read from Redis", Role: registry.Data, Read: readOne,
			Description: "Runs one Redis command that changes nothing on the database of this connection. Scan with SCAN; KEYS is not offered.",
			Input:       direct.Object{Fields: readShape, Required: []string{"command"}},
		},
		{
			Name: "redis_read_many", Title: "Read several things from Redis", Role: registry.Data, Read: readMany,
			Description: "Runs several Redis commands that change nothing, in one request. Each has its own result or error.",
			Input: direct.Object{Fields: map[string]direct.Field{
				"commands": direct.ListOf("The commands, in order.", direct.Strict("", readShape, "command"), mostReads),
			}, Required: []string{"commands"}},
		},
		{
			Name: "redis_write", Title: "Change a key in Redis", Role: registry.Data, Destructive: true, Resource: "key",
			Description: "Runs one Redis command that changes something on the database of this connection.",
			Input:       direct.Object{Fields: writeShape, Required: []string{"command", "key"}},
			Write:       &direct.Write{Prepare: prepareOne, Judge: judgeOne, Show: showRedis, Look: look, Lookable: lookable},
		},
		{
			Name: "redis_write_atomic", Title: "Change several keys in Redis at once", Role: registry.Data, Destructive: true,
			Description: "Runs several Redis commands as one transaction (MULTI/EXEC): nobody sees a state in between.",
			Input: direct.Object{Fields: map[string]direct.Field{
				"summary":  direct.Text("What the commands do together, in one line, for the person who decides."),
				"commands": direct.ListOf("The commands, in order.", direct.Strict("", writeShape, "command", "key"), mostWrites),
			}, Required: []string{"commands", "summary"}},
			Write: &direct.Write{Prepare: prepareAll, Judge: judgeAll, Show: showRedis},
		},
	}
}

func run(ctx context.Context, l *direct.Link, path string, body any, into any) error {
	r, err := l.Ask(ctx, direct.Request{Role: registry.Data, Method: http.MethodPost, Path: path, Body: body})
	if err != nil {
		return err
	}
	if err := r.JSON(into); err != nil {
		return provider.Upstream("Upstash's answer is not what its API promises.", err)
	}
	return nil
}

func readOne(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
	c, err := single(a)
	if err != nil {
		return direct.Answer{}, err
	}
	wire, err := c.wire(reading)
	if err != nil {
		return direct.Answer{}, err
	}
	var got answered
	if err := run(ctx, l, "/", wire, &got); err != nil {
		return direct.Answer{}, err
	}
	return direct.Answer{Structured: map[string]any{"result": got.Result}}, nil
}

func readMany(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Answer, error) {
	all, err := several(a, reading)
	if err != nil {
		return direct.Answer{}, err
	}
	var got []map[string]json.RawMessage
	if err := run(ctx, l, "/pipeline", all, &got); err != nil {
		return direct.Answer{}, err
	}
	return direct.Answer{Structured: map[string]any{"results": got}}, nil
}

func prepareOne(ctx context.Context, l *direct.Link, a direct.Arguments) (direct.Request, error) {
	c, err := single(a)
	if err != nil {
		return direct.Request{}, err
	}
	wire, err := c.wire(writing)
	if err != nil {
		return direct.Request{}, err
	}
	before := ""
	if o, ok := observe(c); ok {
		if seen, err := o.see(ctx, l); err == nil { // a look that fails is no reason not to send; it only tells less afterwards
			before = digestOf(seen)
		}
	}
	return direct.Request{Role: registry.Data, Method: http.MethodPost, Path: "/", Body: wire, Before: before}, nil
}

func prepareAll(_ context.Context, _ *direct.Link, a direct.Arguments) (direct.Request, error) {
	all, err := several(a, writing)
	return direct.Request{Role: registry.Data, Method: http.MethodPost, Path: "/multi-exec", Body: all}, err
}

// judgeOne: a command that failed is answered with 400 and changed nothing, since Redis runs one command wholly or not at all. A good
// status with an error in it is not documented.
func judgeOne(_ *direct.Link, _ direct.Arguments, r direct.Reply) direct.Verdict {
	var got answered
	if r.Whole && json.Unmarshal(r.Body, &got) == nil && got.Error != "" {
		return direct.Verdict{Kind: action.OutcomeUncertain, Sentence: "Upstash answered with success and an error at once."}
	}
	return direct.Verdict{Kind: action.OutcomeSucceeded}
}

// judgeAll reads every result: in a transaction that ran, Redis takes back nothing when one of its commands fails, so a mixed answer is
// neither applied nor not, and says so. A command that cannot be queued discards them all, with 400.
func judgeAll(_ *direct.Link, _ direct.Arguments, r direct.Reply) direct.Verdict {
	var got []answered
	if !r.Whole || json.Unmarshal(r.Body, &got) != nil || len(got) == 0 {
		return direct.Verdict{Kind: action.OutcomeUncertain, Sentence: "The transaction ran, but what its commands came to did not arrive."}
	}
	var failed []string
	for i, g := range got {
		if g.Error != "" {
			failed = append(failed, strconv.Itoa(i+1))
		}
	}
	switch {
	case len(failed) == len(got):
		return direct.Verdict{Kind: action.OutcomeFailed, Sentence: "Every command of the transaction was refused; nothing was applied."}
	case len(failed) > 0:
		return direct.Verdict{Kind: action.OutcomeUncertain, Sentence: "It was applied in part: of " + strconv.Itoa(len(got)) + " commands, number " + strings.Join(failed, ", ") + " failed, and Redis takes the others not back."}
	}
	return direct.Verdict{Kind: action.OutcomeSucceeded}
}

func showRedis(_ *direct.Link, _ direct.Arguments, r direct.Reply) direct.Answer {
	var v any
	if err := r.JSON(&v); err != nil {
		return direct.Answer{Text: "Applied."}
	}
	if list, ok := v.([]any); ok {
		v = map[string]any{"results": list}
	}
	return direct.Answer{Structured: v}
}
