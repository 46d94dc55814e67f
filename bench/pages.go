package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// browser is a signed-in person without a picture.
type browser struct {
	client *http.Client
	url    string
}

func (w *world) signIn(email string) (*browser, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	b := &browser{client: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, url: w.server.url}
	return b, b.send("/sign-in", url.Values{"email": {email}, "password": {password}})
}

// send posts a form; a page in place of a redirect is a refusal.
func (b *browser) send(path string, form url.Values) error {
	req, err := http.NewRequest(http.MethodPost, b.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", b.url)
	res, err := b.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusSeeOther {
		return fmt.Errorf("%s: %s %.500s %w", path, res.Status, raw, err)
	}
	return nil
}

func (b *browser) page(path string) ([]byte, error) {
	res, err := b.client.Get(b.url + path)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, res.Status)
	}
	return raw, err
}

var nextPage = regexp.MustCompile(`/audit\?[^"]*before=\d+[^"]*`)

// pages are the inbox with 200 staged actions and the trail with a million entries, at its start and deep inside.
func (w *world) pages(ctx context.Context, r *report) error {
	if err := w.fillTrail(ctx, r); err != nil {
		return err
	}
	a, err := w.newRun("small")
	if err != nil {
		return err
	}
	c, err := dial(a.url, a.header)
	if err != nil {
		return err
	}
	defer c.close()
	for i := range 200 {
		if err := stage(c, a, fmt.Sprint("inbox ", i)); err != nil {
			return err
		}
	}
	approver, err := w.signIn("approver@bench.test")
	if err != nil {
		return err
	}
	auditor, err := w.signIn("auditor@bench.test")
	if err != nil {
		return err
	}
	first, err := auditor.page("/audit")
	if err != nil {
		return err
	}
	deep := fmt.Sprintf("/audit?before=%d", w.auditRows/2)
	if m := nextPage.Find(first); m != nil {
		deep = regexp.MustCompile(`before=\d+`).ReplaceAllString(strings.ReplaceAll(string(m), "&amp;", "&"), fmt.Sprintf("before=%d", w.auditRows/2))
	}
	visits := []struct {
		name, path string
		by         *browser
		took       []time.Duration
	}{
		{name: "inbox-page-p99", path: "/actions", by: approver},
		{name: "audit-page-p99", path: "/audit", by: auditor},
		{name: "audit-page-deep-p99", path: deep, by: auditor},
		{name: "audit-page-by-event-p99", path: "/audit?event=tool.read", by: auditor},
		{name: "overview-page-p99", path: "/", by: auditor},
	}
	for n := range 105 {
		for i := range visits {
			v := &visits[i]
			began := time.Now()
			if _, err := v.by.page(v.path); err != nil {
				return err
			}
			if n >= 5 { // the first ones warm
				v.took = append(v.took, time.Since(began))
			}
		}
	}
	r.line("\n| page | p50 ms | p99 ms |\n|---|---|---|")
	for _, v := range visits {
		r.line("| %s | %.2f | %.2f |", v.path, micros(median(v.took))/1000, micros(quantile(v.took, .99))/1000)
		r.most(v.name, micros(quantile(v.took, .99))/1000, 25, "ms")
	}
	return nil
}

// fillTrail makes a trail as long as a busy year's, beside the code that writes one: sealing a million entries would take the afternoon.
func (w *world) fillTrail(ctx context.Context, r *report) error {
	began := time.Now()
	tx, err := w.super.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, "SET LOCAL session_replication_role = replica"); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO audit_entries (org_id, at, actor_kind, actor_id, actor_name, event, object_kind, object_id, digest, fact_names, fact_values)
		SELECT $1, now() - ($2::int - n) * interval '20 seconds', 'agent', 'run_' || n % 5000, 'small agent', CASE n % 50 WHEN 0 THEN 'tool.refused' ELSE 'tool.read' END, 'connection', 'firecrawl-' || n % 40,
			'', ARRAY ['tool', 'run', 'outcome'], ARRAY ['firecrawl/echo', 'run_' || n % 5000, 'ok'] FROM generate_series(1, $2::int) n`, string(w.org), w.auditRows)
	if err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	_, err = w.super.Exec(ctx, "ANALYZE audit_entries")
	r.line("made %d entries of the trail in %v", w.auditRows, time.Since(began).Round(time.Second))
	return err
}
