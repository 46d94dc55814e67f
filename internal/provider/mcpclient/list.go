package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"countersign/internal/provider"
)

// Bounds of one list.
const (
	maxPages  = 100
	maxTools  = 5000
	maxListed = 32 << 20 // bytes of definitions
)

// tools lists every page. A tool that cannot be used keeps its place with its problem.
func (l link) tools(ctx context.Context) ([]provider.Definition, error) {
	var (
		list   []provider.Definition
		cursor string
		size   int
		seen   = map[string]bool{}
	)
	for range maxPages {
		raw, next, err := l.page(ctx, cursor)
		if err != nil {
			return nil, err
		}
		for _, tool := range raw {
			size += len(tool)
			list = append(list, provider.Define(tool))
		}
		if len(list) > maxTools || size > maxListed {
			return nil, provider.TooLarge(fmt.Errorf("%d tools of %d bytes", len(list), size))
		}
		if next == "" {
			l.up.bindings.learn(list)
			markTwins(list)
			return list, nil
		}
		if seen[next] {
			return nil, provider.Upstream("The service's list of tools never ends.", nil)
		}
		seen[next] = true
		cursor = next
	}
	return nil, provider.Upstream("The service's list of tools has more than 100 pages.", nil)
}

func (l link) page(ctx context.Context, cursor string) (tools []json.RawMessage, next string, err error) {
	m := message{method: "tools/list"}
	if cursor != "" {
		quoted, err := json.Marshal(cursor)
		if err != nil {
			return nil, "", err
		}
		m.params = append([]byte(`"cursor":`), quoted...)
	}
	a, err := l.ask(ctx, func(*era) message { return m })
	if err != nil {
		return nil, "", err
	}
	if a.failure != nil {
		return nil, "", rpcFault(a.failure, "list its tools")
	}
	var list []byte
	err = members(a.result, func(key, value []byte) error {
		switch string(key) {
		case "tools":
			list = value
		case "nextCursor":
			_ = json.Unmarshal(value, &next) // anything but a string is no cursor
		}
		return nil
	})
	if err == nil && list != nil && list[0] == '[' {
		err = elements(list, func(tool []byte) error {
			tools = append(tools, bytes.Clone(tool))
			return nil
		})
	} else if err == nil {
		err = errAnswer
	}
	if err != nil {
		return nil, "", exchangeFault(err)
	}
	return tools, next, nil
}

// markTwins makes tools of one name unusable: which of them a call would reach is the server's secret.
func markTwins(list []provider.Definition) {
	count := map[string]int{}
	for _, d := range list {
		count[d.Name]++
	}
	for i := range list {
		if d := &list[i]; count[d.Name] > 1 && d.Problem == "" {
			d.Problem = "The service lists several tools of this name."
		}
	}
}
