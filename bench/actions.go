package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/db"
	"countersign/internal/action"
)

// actions are staged writes against the least that PostgreSQL takes for a durable one, then approvals until the upstream is asked.
func (w *world) actions(ctx context.Context, r *report) error {
	floor, err := w.floor(ctx)
	if err != nil {
		return err
	}
	for _, at := range []int{1, 16} {
		f, err := interleave(ctx, w.options, at, floor, w.staging())
		if err != nil {
			return err
		}
		r.table("staged write", at, f...)
		if at == 1 {
			r.most("stage-c1-added-p50", micros(f[1].quantile(.5)-f[0].quantile(.5)), 250, "µs")
		} else {
			r.least("stage-c16-over-floor", f[1].over(f[0]), 0.8)
		}
	}
	return w.approvals(ctx, r)
}

// floor is one statement that makes a 500-byte action and its line of the trail durable.
func (w *world) floor(ctx context.Context) (target, error) {
	pool, err := pgxpool.New(ctx, w.dsn+"&pool_max_conns=32")
	if err != nil {
		return target{}, err
	}
	w.atEnd(pool.Close)
	_, err = pool.Exec(ctx, `CREATE TABLE IF NOT EXISTS bench_actions (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text NOT NULL);
		CREATE TABLE IF NOT EXISTS bench_entries (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, action bigint NOT NULL, event text NOT NULL)`)
	body := string(bytes.Repeat([]byte("b"), 500))
	return target{name: "one statement", begin: func(int) (func(int) error, func(), error) {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return nil, nil, err
		}
		ask := func(int) error {
			_, err := conn.Exec(ctx, `WITH a AS (INSERT INTO bench_actions (body) VALUES ($1) RETURNING id)
				INSERT INTO bench_entries (action, event) SELECT id, 'action.staged' FROM a`, body)
			return err
		}
		return ask, conn.Release, nil
	}}, err
}

var staged atomic.Int64 // makes each call another one

// staging is a write of an agent, each worker in a run of its own as agents are.
func (w *world) staging() target {
	return target{name: "countersign", pid: w.server.pid(), begin: func(int) (func(int) error, func(), error) {
		a, err := w.newRun("small")
		if err != nil {
			return nil, nil, err
		}
		c, err := dial(a.url, a.header)
		if err != nil {
			return nil, nil, err
		}
		ask := func(int) error { return stage(c, a, "staged "+strconv.FormatInt(staged.Add(1), 10)) }
		return ask, c.close, nil
	}}
}

var awaiting = []byte(`"awaiting_approval"`)

func stage(c *caller, a agent, message string) error {
	if err := c.post(call(a.tool("note"), message)); err != nil {
		return err
	}
	if !bytes.Contains(c.body, awaiting) {
		return fmt.Errorf("not staged: %.300s", c.body)
	}
	return nil
}

// approvals stages, approves on the page as a person does, and compares when the decision was made with when the upstream was asked.
func (w *world) approvals(ctx context.Context, r *report) error {
	const count = 100
	a, err := w.newRun("small")
	if err != nil {
		return err
	}
	c, err := dial(a.url, a.header)
	if err != nil {
		return err
	}
	defer c.close()
	person, err := w.signIn("approver@bench.test")
	if err != nil {
		return err
	}
	actions := db.Actions{DB: w.db}
	for i := range count {
		if err := stage(c, a, fmt.Sprint("approved ", i)); err != nil {
			return err
		}
		var answer struct {
			Result struct {
				Structured struct {
					ID action.ID `json:"action_id"`
				} `json:"structuredContent"`
			} `json:"result"`
		}
		if err := json.Unmarshal(c.body, &answer); err != nil {
			return err
		}
		id := answer.Result.Structured.ID
		asked, err := actions.Action(ctx, w.org, id)
		if err != nil {
			return err
		}
		form := url.Values{"args_digest": {asked.ArgsDigest}, "version": {strconv.Itoa(asked.Version)}, "reason": {""}}
		if err := person.send("/actions/"+string(id)+"/approve", form); err != nil {
			return err
		}
	}
	took, err := w.arrivals(ctx, count)
	if err != nil {
		return err
	}
	r.line("approve → upstream asked, %d approvals one by one: p50 %.2f ms, p99 %.2f ms", count, micros(median(took))/1000, micros(quantile(took, .99))/1000)
	r.most("approve-to-sent-p50", micros(median(took))/1000, 1.5, "ms")
	r.most("approve-to-sent-p99", micros(quantile(took, .99))/1000, 10, "ms")
	return nil
}

// arrivals compares the database's moments of decision with the upstream's of arrival, once all have arrived.
func (w *world) arrivals(ctx context.Context, count int) ([]time.Duration, error) {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		raw, err := text(w.upstream.url + "/seen")
		if err != nil {
			return nil, err
		}
		seen := map[string]int64{}
		if err := json.Unmarshal([]byte(raw), &seen); err != nil {
			return nil, err
		}
		if len(seen) < count && time.Now().Before(deadline) {
			continue
		}
		rows, err := w.super.Query(ctx, `SELECT convert_from(arguments, 'UTF8')::jsonb ->> 'message', decided_at FROM actions WHERE decided_by IS NOT NULL`)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		var out []time.Duration
		for rows.Next() {
			var message string
			var decided time.Time
			if err := rows.Scan(&message, &decided); err != nil {
				return nil, err
			}
			at, ok := seen[message]
			if !ok {
				return nil, fmt.Errorf("%q was approved and never sent", message)
			}
			out = append(out, time.Duration(at-decided.UnixMicro())*time.Microsecond)
		}
		return out, rows.Err()
	}
}
