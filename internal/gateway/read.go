package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/fault"
	"countersign/internal/provider"
)

// read passes a call without an effect through. The line of the trail says what came of it, so it is written before the answer leaves:
// an answer that could not be recorded is withheld.
func (g *Gateway) read(ctx context.Context, l capability.Live, v verified) (json.RawMessage, error) {
	if v.outside != "" {
		return g.refused(ctx, l, v.target, Call{Name: v.tool, Arguments: v.arguments}, outsideResource(v.outside))
	}
	if err := g.Recorder.Ready(); err != nil {
		return nil, err
	}
	began := time.Now()
	r, err := v.line.Read(ctx, provider.Call{Tool: v.tool, Arguments: v.arguments, Definition: v.definition.Raw})
	outcome := "ok"
	switch {
	case err != nil:
		outcome = string(fault.Of(err).Code)
	case r.IsError:
		outcome = "tool_error"
	}
	e := audit.Entry{
		Org: l.Org.ID, Actor: agent(l.Run), Event: audit.ToolRead, Object: audit.Object{Kind: "connection", ID: v.key().String()}, Digest: v.digest,
		Facts: []audit.Fact{
			{Name: "tool", Value: v.key().String() + "/" + v.tool},
			{Name: "run", Value: string(l.Run.ID)},
			{Name: "outcome", Value: outcome},
			{Name: "arguments", Value: keysOf(v.arguments)},
			{Name: "argument_bytes", Value: strconv.Itoa(len(v.arguments))},
			{Name: "result_bytes", Value: strconv.Itoa(r.Size)},
			{Name: "ms", Value: strconv.FormatInt(time.Since(began).Milliseconds(), 10)},
		},
	}
	if refusal := g.recordRead(ctx, v.grant.Connection.DurableReads, e); refusal != nil {
		return nil, refusal
	}
	if err != nil {
		f := fault.Of(err)
		if f.Kind == fault.Internal {
			return nil, err
		}
		return refuse(f)
	}
	return r.Raw, nil
}

// recordRead keeps the line of a read: durably where the connection asks for it.
func (g *Gateway) recordRead(ctx context.Context, durably bool, e audit.Entry) error {
	ctx = context.WithoutCancel(ctx) // whoever hung up was served all the same
	if durably {
		return g.Trail.Record(ctx, e)
	}
	return g.Recorder.Record(ctx, e)
}

func outsideResource(why string) *fault.Error {
	return fault.New(fault.Forbidden, fault.OutsideResource, why, "Stay within what the connection was set up for, or ask an admin to widen it.")
}

// keysOf names the members of an argument object, never their values. The object is canonical: nothing stands between a name and its
// colon, and a value is followed by something else.
func keysOf(arguments []byte) string {
	var names []string
	depth := 0
	for i := 0; i < len(arguments); i++ {
		switch arguments[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			from := i
			for i++; i < len(arguments) && arguments[i] != '"'; i++ {
				if arguments[i] == '\\' {
					i++
				}
			}
			if depth == 1 && i+1 < len(arguments) && arguments[i+1] == ':' {
				names = append(names, unquoted(arguments[from:i+1]))
			}
		}
	}
	slices.Sort(names)
	const most = 20
	for i := range names {
		names[i] = clip(names[i])
	}
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(len(names)-most) + " more"
	}
	return strings.Join(names, ", ")
}

func unquoted(text []byte) string {
	if !bytes.ContainsRune(text, '\\') {
		return string(text[1 : len(text)-1])
	}
	var s string
	_ = json.Unmarshal(text, &s) // canonical: it parses
	return s
}
