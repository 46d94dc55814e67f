package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// reads are warm calls of read tools, with everything on: token, capability, credential, redaction, definition, schema, trail.
func (w *world) reads(ctx context.Context, r *report) error {
	a, err := w.newRun("small")
	if err != nil {
		return err
	}
	small := []target{
		posts("direct", 0, w.upstream.url+"/small", `"hello"`, nil, call("echo", sixtyFive)),
		posts("bare proxy", w.proxy.pid(), w.proxy.url+"/small", `"hello"`, nil, call("echo", sixtyFive)),
		posts("countersign", w.server.pid(), a.url, `"hello"`, []string{a.header}, call(a.tool("echo"), sixtyFive)),
	}
	for _, at := range []int{1, 16, 64} {
		f, err := interleave(ctx, w.options, at, small...)
		if err != nil {
			return err
		}
		r.table("read call, 65-byte argument", at, f...)
		direct, proxy, ours := f[0], f[1], f[2]
		switch at {
		case 1:
			added := micros(ours.quantile(.5) - direct.quantile(.5))
			r.line("added p50 at C=1: %.0f µs; the bare proxy adds %.0f µs", added, micros(proxy.quantile(.5)-direct.quantile(.5)))
			r.most("read-c1-added-p50", added, 320, "µs")
		case 16:
			r.most("read-c16-cpu", ours.cpuPerCall(), 160, "µs")
			r.least("read-c16-over-direct", ours.over(direct), 0.22)
			r.line("CPU per call over the bare proxy's at C=16: %.2f", ours.cpuPerCall()/proxy.cpuPerCall())
		case 64:
			r.least("read-c64-over-direct", ours.over(direct), 0.24)
			r.memory.busy = memoryOf(w.server.pid())
			r.most("memory-c64", r.memory.busy, 80, "MB")
		}
	}
	if err := w.oneRequest(r, a); err != nil {
		return err
	}
	large := []target{
		posts("direct", 0, w.upstream.url+"/small", "Sixty-four", nil, call("blob", "x")),
		posts("bare proxy", w.proxy.pid(), w.proxy.url+"/small", "Sixty-four", nil, call("blob", "x")),
		posts("countersign", w.server.pid(), a.url, "Sixty-four", []string{a.header}, call(a.tool("blob"), "x")),
	}
	for _, at := range []int{1, 16} {
		f, err := interleave(ctx, w.options, at, large...)
		if err != nil {
			return err
		}
		r.table("64 KB result", at, f...)
		if at == 16 {
			r.most("result-64k-c16-cpu", f[2].cpuPerCall(), 330, "µs")
		}
	}
	return nil
}

// oneRequest counts what the upstream is asked for a hundred warm calls.
func (w *world) oneRequest(r *report, a agent) error {
	c, err := dial(a.url, a.header)
	if err != nil {
		return err
	}
	defer c.close()
	const calls = 100
	count := func() (int, error) {
		n, err := text(w.upstream.url + "/posts")
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(n)
	}
	if err := c.post(call(a.tool("echo"), "warm")); err != nil {
		return err
	}
	before, err := count()
	if err != nil {
		return err
	}
	for range calls {
		if err := c.post(call(a.tool("echo"), "warm")); err != nil {
			return err
		}
	}
	after, err := count()
	r.exactly("upstream-requests-per-warm-call", float64(after-before)/calls, 1)
	return err
}

// lists are tools/list from memory, and short sessions.
func (w *world) lists(ctx context.Context, r *report) error {
	list := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`)
	for _, n := range []int{200, 1000} {
		a, err := w.newRun(fmt.Sprint("wide", n))
		if err != nil {
			return err
		}
		path := fmt.Sprint("/", n)
		targets := []target{
			posts("direct", 0, w.upstream.url+path, "tool-0", nil, list),
			posts("bare proxy", w.proxy.pid(), w.proxy.url+path, "tool-0", nil, list),
			posts("countersign", w.server.pid(), a.url, "tool-0", []string{a.header}, list),
		}
		for _, at := range []int{1, 16} {
			f, err := interleave(ctx, w.options, at, targets...)
			if err != nil {
				return err
			}
			r.table(fmt.Sprintf("tools/list, %d tools", n), at, f...)
			switch {
			case n == 1000 && at == 1:
				r.most("list-1000-c1-p50", micros(f[2].quantile(.5))/1000, 1, "ms")
			case n == 1000 && at == 16:
				r.least("list-1000-c16-over-direct", f[2].over(f[0]), 0.75)
			}
		}
	}
	return w.sessions(ctx, r)
}

// sessions are what a 2025 client does to make one call: initialize, initialized, tools/call.
func (w *world) sessions(ctx context.Context, r *report) error {
	a, err := w.newRun("small")
	if err != nil {
		return err
	}
	session := func(tool string) [][]byte {
		return [][]byte{
			[]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`),
			[]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`),
			call(tool, sixtyFive),
		}
	}
	f, err := interleave(ctx, w.options, 16,
		posts("direct", 0, w.upstream.url+"/small", `"hello"`, nil, session("echo")...),
		posts("countersign", w.server.pid(), a.url, `"hello"`, []string{a.header}, session(a.tool("echo"))...))
	if err != nil {
		return err
	}
	r.table("session of one call", 16, f...)
	r.least("session-c16-over-direct", f[1].over(f[0]), 0.55)
	return nil
}

// startUp is from exec to the first answered call, on a migrated database.
func (w *world) startUp(ctx context.Context, r *report) error {
	a, err := w.newRun("small")
	if err != nil {
		return err
	}
	var took []time.Duration
	for range 5 {
		began := time.Now()
		c, err := w.launch()
		if err != nil {
			return err
		}
		for {
			one, err := dial(c.url+"/gateway/mcp", a.header)
			if err == nil {
				err = one.post(call(a.tool("echo"), "first"))
				one.close()
			}
			if err == nil {
				break
			}
			if ended := w.ended(c); ended != nil {
				return ended
			}
			if ctx.Err() != nil || time.Since(began) > 30*time.Second {
				c.stop()
				return fmt.Errorf("no call was answered: %w", err)
			}
			time.Sleep(time.Millisecond)
		}
		took = append(took, time.Since(began))
		time.Sleep(500 * time.Millisecond) // at rest
		r.memory.idle = memoryOf(c.pid())
		c.stop()
	}
	r.line("start-up, exec to first answered call: %v", rounded(took))
	r.most("start-up", median(took).Seconds()*1000, 250, "ms")
	r.most("memory-idle", r.memory.idle, 40, "MB")
	return nil
}
