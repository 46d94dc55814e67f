package github

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"countersign/internal/action"
	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/gitgateway"
	"countersign/internal/provider"
	"countersign/internal/registry"
)

// maxReport bounds GitHub's answer to a push.
const maxReport = 1 << 20

// deliver sends an approved push. Everything that can be found out without an effect is, before: then not one byte has been sent.
func (p *Provider) deliver(ctx context.Context, c *provider.Conn, call provider.Call) action.Outcome {
	a, err := ReadPush(call.Arguments)
	if err != nil {
		return unsent(fault.InvalidArguments, "The arguments of the push cannot be read; nothing was sent.")
	}
	r, err := p.Repository(ctx, c, a.Repository, true)
	if err != nil {
		return unsent(fault.Of(err).Code, fault.Of(err).What+" Nothing was sent.")
	}
	if r.ID != a.RepositoryID {
		return unsent(fault.OutsideResource, "“"+r.Name+"” is not the repository any more that this push was approved for; nothing was sent.")
	}
	rules, err := gitgateway.ParseRules(c.Settings.Resources[BranchesSetting])
	if err != nil {
		return unsent(fault.OutsideResource, fault.Of(err).What)
	}
	if refused := rules.Allows(a.Branch, r.DefaultBranch); refused != nil {
		return unsent(refused.Code, refused.What+" Nothing was sent.")
	}
	pack, size, err := p.Packs.Open(ctx, c.Org, c.Key, a.Pack)
	if err != nil {
		return unsent(fault.Of(err).Code, "The pack of this push is not kept any more; nothing was sent. Push again.")
	}
	defer pack.Close()
	return send(ctx, c, r, a, pack, size)
}

func unsent(code fault.Code, sentence string) action.Outcome {
	return action.Failed(code, sentence, action.Evidence{})
}

func send(ctx context.Context, c *provider.Conn, r Repository, a PushArguments, pack io.Reader, size int64) action.Outcome {
	endpoint, err := c.Endpoint(registry.GitHTTP)
	if err != nil {
		return unsent(fault.ConnectionUnavailable, fault.Of(err).What)
	}
	command := gitgateway.Command{Old: a.Old, New: a.New, Ref: "refs/heads/" + a.Branch}
	head := gitgateway.PushRequest(command)
	ctx, watch := egress.Observe(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, remote(endpoint, r.Now)+"/git-receive-pack", io.MultiReader(bytes.NewReader(head), pack))
	if err != nil {
		return unsent(fault.CodeInternal, "The request could not be made; nothing was sent.")
	}
	req.ContentLength = int64(len(head)) + size
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Content-Type", "application/x-git-receive-pack-request")
	req.Header.Set("Accept", "application/x-git-receive-pack-result")
	resp, err := endpoint.Writer.Do(req)
	if err != nil {
		o, _ := action.Classify(watch.Record())
		return o
	}
	defer resp.Body.Close()
	answer, readErr := io.ReadAll(io.LimitReader(resp.Body, maxReport))
	o, settled := action.Classify(watch.Record())
	if settled {
		return explained(o, resp.StatusCode, answer)
	}
	report, err := gitgateway.ReadReport(bytes.NewReader(answer), command.Ref)
	return judged(report, firstOf(err, readErr), a, action.Observed(watch.Record()))
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// judged turns a report into what became of the push.
func judged(report gitgateway.Report, err error, a PushArguments, e action.Evidence) action.Outcome {
	switch {
	case err != nil:
		return action.Uncertain(fault.UpstreamError, "GitHub took the pack, and its report did not arrive whole.", e)
	case report.OK:
		return action.Succeeded(result("Pushed "+a.New[:10]+" to "+a.Branch+" of "+a.Repository+".", report.Remote, false), e)
	}
	why := gitgateway.Explain(report.Refused+report.Why, report.Remote)
	return action.Failed(fault.UpstreamError, why.What, e).WithProviderCode(why.Code).WithAnswer(result(why.What+" "+why.Next, report.Remote, true))
}

// explained says precisely why a status refused, where the body does.
func explained(o action.Outcome, status int, body []byte) action.Outcome {
	if o.Kind() != action.OutcomeFailed || status == 0 {
		return o
	}
	why := gitgateway.Explain("", string(body[:min(len(body), 4096)]))
	if why.Code == "upstream_error" {
		return o
	}
	return action.Failed(fault.UpstreamError, why.What, o.Evidence()).WithProviderCode(why.Code).WithAnswer(result(why.What+" "+why.Next, string(body[:min(len(body), 4096)]), true))
}

// result is an MCP tool result with what GitHub said to git's user, as an agent may read it.
func result(words, remote string, isError bool) json.RawMessage {
	text := strings.Join(append([]string{words}, gitgateway.RemoteLines(remote)...), "\n")
	raw, _ := json.Marshal(map[string]any{"content": []map[string]string{{"type": "text", "text": text}}, "isError": isError}) // texts always marshal
	return raw
}

// CanReconcile implements provider.OwnReconciler.
func (p *Provider) CanReconcile(call provider.Call) bool {
	return call.Tool == Push || looked(call.Tool)
}

// Reconcile implements provider.Reconciler by reading where the branch is now, or whether what carries the action's mark is there.
func (p *Provider) Reconcile(ctx context.Context, c *provider.Conn, call provider.Call, _ action.Evidence) (provider.Sighting, error) {
	if call.Tool != Push {
		return p.lookFor(ctx, c, call)
	}
	a, err := ReadPush(call.Arguments)
	if err != nil {
		return provider.Sighting{Sight: provider.Unseen, Sentence: "The arguments of the push cannot be read."}, nil
	}
	r, err := p.Repository(ctx, c, a.Repository, true)
	if err != nil {
		return provider.Sighting{}, err
	}
	if r.ID != a.RepositoryID {
		return provider.Sighting{Sight: provider.Unseen, Sentence: "The name leads to another repository now."}, nil
	}
	ref := "refs/heads/" + a.Branch
	answer, err := p.Upload(ctx, c, r, true, gitgateway.LsRefs(ref))
	if err != nil {
		return provider.Sighting{}, err
	}
	refs, err := gitgateway.ReadRefs(answer)
	_ = answer.Close()
	if err != nil {
		return provider.Sighting{}, provider.Upstream("GitHub's list of branches cannot be read.", err)
	}
	switch now := gitgateway.Find(refs, ref); now {
	case a.New:
		return provider.Sighting{Sight: provider.Applied, Sentence: "“" + a.Branch + "” is at " + a.New[:10] + ", as pushed."}, nil
	case a.Old:
		return provider.Sighting{Sight: provider.Absent, Sentence: "“" + a.Branch + "” is where it was before the push."}, nil
	default:
		return p.beyond(ctx, c, r, a, now)
	}
}

// beyond judges a branch that is neither where it was nor where the push would have put it. From there the lost push can do nothing any
// more: it names the old id.
func (p *Provider) beyond(ctx context.Context, c *provider.Conn, r Repository, a PushArguments, now string) (provider.Sighting, error) {
	if now == gitgateway.Zero {
		return provider.Sighting{Sight: provider.Unseen, Sentence: "“" + a.Branch + "” is gone, so nothing tells whether the push had arrived."}, nil
	}
	var compared struct {
		Status string `json:"status"`
	}
	if _, err := p.get(ctx, c, "/repos/"+r.Now+"/compare/"+a.New+"..."+now+"?per_page=1", &compared); err != nil {
		if fault.Is(err, fault.UpstreamError) {
			return provider.Sighting{Sight: provider.Unseen, Sentence: "“" + a.Branch + "” is at " + now[:10] + ", and GitHub does not compare it with the push."}, nil
		}
		return provider.Sighting{}, err
	}
	if compared.Status == "ahead" || compared.Status == "identical" {
		return provider.Sighting{Sight: provider.Applied, Sentence: "“" + a.Branch + "” is at " + now[:10] + ", which builds on " + a.New[:10] + "."}, nil
	}
	return provider.Sighting{Sight: provider.Unseen, Sentence: "“" + a.Branch + "” is at " + now[:10] + ", which does not build on the push; it may have been there in between."}, nil
}
