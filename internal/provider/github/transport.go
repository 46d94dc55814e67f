package github

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"countersign/internal/gitgateway"
	"countersign/internal/provider"
	"countersign/internal/registry"
)

// Version2 is the only value of the Git-Protocol header that is passed on.
const Version2 = "version=2"

// Advertisement is GitHub's answer to info/refs; gitgateway.Advertise passes it on.
func (p *Provider) Advertisement(ctx context.Context, c *provider.Conn, r Repository, s gitgateway.Service, v2 bool) (io.ReadCloser, error) {
	return p.ask(ctx, c, http.MethodGet, r, "/info/refs?service="+string(s), s, v2, nil)
}

// Upload is GitHub's answer to a request of a fetch, as it comes.
func (p *Provider) Upload(ctx context.Context, c *provider.Conn, r Repository, v2 bool, body []byte) (io.ReadCloser, error) {
	return p.ask(ctx, c, http.MethodPost, r, "/git-upload-pack", gitgateway.UploadPack, v2, body)
}

// Upstream lets a mirror read a repository.
func (p *Provider) Upstream(c *provider.Conn, r Repository) gitgateway.Upstream {
	return func(ctx context.Context, body []byte) (io.ReadCloser, error) { return p.Upload(ctx, c, r, true, body) }
}

// ask reads of a repository. One that was renamed since it was last looked at is looked at again, and asked by the name it has now.
func (p *Provider) ask(ctx context.Context, c *provider.Conn, method string, r Repository, path string, s gitgateway.Service, v2 bool, body []byte) (io.ReadCloser, error) {
	answer, err := p.read(ctx, c, method, r, path, s, v2, body)
	if !errors.Is(err, errMoved) {
		return answer, err
	}
	now, again := p.Repository(ctx, c, r.Name, true)
	if again != nil || now.Now == r.Now || now.ID != r.ID {
		return nil, firstOf(again, err)
	}
	return p.read(ctx, c, method, now, path, s, v2, body)
}

func (p *Provider) read(ctx context.Context, c *provider.Conn, method string, r Repository, path string, s gitgateway.Service, v2 bool, body []byte) (io.ReadCloser, error) {
	endpoint, err := c.Endpoint(registry.GitHTTP)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, remote(endpoint, r.Now)+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", userAgent)
	want := "application/x-" + string(s) + "-advertisement"
	if method == http.MethodPost {
		want = "application/x-" + string(s) + "-result"
		req.Header.Set("Content-Type", "application/x-"+string(s)+"-request")
		req.Header.Set("Accept", want)
	}
	if v2 {
		req.Header.Set("Git-Protocol", Version2)
	}
	resp, err := endpoint.Reader.Do(req)
	if err != nil {
		return nil, unreachable(err)
	}
	if resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), want) {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 4096)) // its words only make the reason more precise
	if resp.StatusCode == http.StatusOK {
		return nil, provider.Upstream("GitHub's answer is not one of git.", nil)
	}
	return nil, answered(resp.StatusCode, said)
}

func remote(e provider.Endpoint, name string) string {
	return strings.TrimSuffix(e.URL, "/") + "/" + name + ".git"
}
