package github

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"countersign/internal/fault"
	"countersign/internal/gitgateway"
	"countersign/internal/provider"
	"countersign/internal/registry"
)

// Repository is one that a connection is for, as GitHub knows it.
type Repository struct {
	Name          string // "owner/name" in lower case, as it was connected
	Now           string // the name GitHub has for it now, in lower case; requests are sent to this one
	ID            int64  // GitHub's number, which a rename does not change
	DefaultBranch string
	MayPush       bool // says the API; what a ruleset allows is another matter
	Token         Token
}

// lookWithin bounds one question to the API.
const lookWithin = 20 * time.Second

// freshFor is how long an answer about a repository is believed for a fetch. A push asks anew.
const freshFor = time.Minute

// maxAPIAnswer bounds one answer of the API.
const maxAPIAnswer = 4 << 20

// known remembers what was found out about the repositories of one connection.
type known struct {
	mu  sync.Mutex
	all map[string]found
}

type found struct {
	Repository
	at time.Time
}

// Repository answers one that the connection is for. A name it is not for, and one that GitHub has given to something else since, are
// refused alike: outside. One that was renamed is followed by its number.
func (p *Provider) Repository(ctx context.Context, c *provider.Conn, name string, fresh bool) (Repository, error) {
	name = strings.ToLower(name)
	if !slices.Contains(Repositories(c.Settings.Resources), name) {
		return Repository{}, outside("The connection is not for the repository “" + gitgateway.Visible(name) + "”.")
	}
	k := provider.Remember(c, func() *known { return &known{all: map[string]found{}} })
	k.mu.Lock()
	f, ok := k.all[name]
	k.mu.Unlock()
	if ok && !fresh && time.Since(f.at) < freshFor {
		return f.Repository, nil
	}
	at := time.Now()
	r, err := p.look(ctx, c, name)
	if err != nil {
		return Repository{}, err
	}
	k.mu.Lock()
	k.all[name] = found{r, at}
	k.mu.Unlock()
	return r, nil
}

func outside(what string) *fault.Error {
	return fault.New(fault.Forbidden, fault.OutsideResource, what, "Use a repository of the gateway configuration, or ask an admin to connect this one.")
}

// described is what the API says of a repository.
type described struct {
	ID            int64  `json:"id"`
	FullName      string `json:"full_name"`
	DefaultBranch string `json:"default_branch"`
	Private       bool   `json:"private"`
	Archived      bool   `json:"archived"`
	Permissions   struct {
		Push bool `json:"push"`
	} `json:"permissions"`
}

// look asks the API, and compares the number with the kept one.
func (p *Provider) look(ctx context.Context, c *provider.Conn, name string) (Repository, error) {
	var answer described
	header, err := p.get(ctx, c, "/repos/"+name, &answer)
	if errors.Is(err, errMoved) {
		return p.follow(ctx, c, name, err)
	}
	if err != nil {
		return Repository{}, err
	}
	if !strings.EqualFold(answer.FullName, name) || answer.ID <= 0 {
		return Repository{}, outside("GitHub has another repository under the name “" + name + "” now.")
	}
	kept, err := p.Pins.Pin(ctx, c.Org, c.Key, name, answer.ID)
	if err != nil {
		return Repository{}, err
	}
	if kept != answer.ID {
		return Repository{}, outside("“" + name + "” is not the repository any more that was connected: its name was given to another one.")
	}
	return p.named(ctx, c, name, answer, header)
}

// follow finds a repository that GitHub would redirect, by the number that was kept when it was met. The redirect itself is not followed:
// whoever has taken the old name since could have made it.
func (p *Provider) follow(ctx context.Context, c *provider.Conn, name string, moved error) (Repository, error) {
	kept, err := p.Pins.Pins(ctx, c.Org, c.Key)
	if err != nil {
		return Repository{}, err
	}
	i := slices.IndexFunc(kept, func(k gitgateway.Pinned) bool { return k.Name == name })
	if i < 0 {
		return Repository{}, moved
	}
	var answer described
	header, err := p.get(ctx, c, "/repositories/"+strconv.FormatInt(kept[i].ID, 10), &answer)
	if err != nil {
		return Repository{}, err
	}
	if answer.ID != kept[i].ID || !gitgateway.IsRepository(answer.FullName) {
		return Repository{}, outside("GitHub answers for “" + name + "” with another repository than the one that was connected.")
	}
	return p.named(ctx, c, name, answer, header)
}

// named keeps the name that a repository has now.
func (p *Provider) named(ctx context.Context, c *provider.Conn, name string, d described, header http.Header) (Repository, error) {
	r := Repository{Name: name, Now: strings.ToLower(d.FullName), ID: d.ID, DefaultBranch: d.DefaultBranch, MayPush: d.Permissions.Push, Token: tokenOf(header)}
	pinned := gitgateway.Pinned{Name: name, ID: d.ID, Now: r.Now}
	if r.Now == name {
		pinned.Now = ""
	}
	return r, p.Pins.Named(ctx, c.Org, c.Key, pinned)
}

// DefaultBranch is the branch of a repository that agents never push to.
func (p *Provider) DefaultBranch(ctx context.Context, c *provider.Conn, name string) (string, error) {
	r, err := p.Repository(ctx, c, name, false)
	return r.DefaultBranch, err
}

// get asks the API for one JSON document.
func (p *Provider) get(ctx context.Context, c *provider.Conn, path string, into any) (http.Header, error) {
	status, header, body, err := p.reply(ctx, c, path)
	switch {
	case err != nil:
		return nil, err
	case status == http.StatusNotFound && strings.Count(path, "/") > 3: // behind a repository that is there
		return nil, provider.Upstream("GitHub knows no such thing in this repository.", nil)
	case status == http.StatusForbidden && (header.Get("Retry-After") != "" || header.Get("X-RateLimit-Remaining") == "0"):
		return nil, answered(http.StatusTooManyRequests, nil) // which GitHub says with 403 as well
	case status != http.StatusOK:
		return nil, lacking(answered(status, body), header)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return nil, provider.Upstream("GitHub's answer is not the JSON it documents.", err)
	}
	return header, nil
}

// lacking names the permission that GitHub asks for, where it does.
func lacking(err error, header http.Header) error {
	f, ok := fault.As(err)
	wanted := header.Get("X-Accepted-GitHub-Permissions")
	if !ok || wanted == "" || !errors.Is(err, errBarred) {
		return err
	}
	return fault.New(f.Kind, f.Code, strings.TrimSuffix(f.What, ".")+": "+gitgateway.Clip(gitgateway.Visible(wanted), 100)+".", f.Next).Wrap(err)
}

// reply is whatever the API answers to a read.
func (p *Provider) reply(ctx context.Context, c *provider.Conn, path string) (status int, header http.Header, body []byte, err error) {
	endpoint, err := c.Endpoint(registry.API)
	if err != nil {
		return 0, nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(endpoint.URL, "/")+path, nil)
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	req.Header.Set("User-Agent", userAgent)
	resp, err := endpoint.Reader.Do(req)
	if err != nil {
		return 0, nil, nil, unreachable(err)
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(io.LimitReader(resp.Body, maxAPIAnswer)); err != nil {
		return 0, nil, nil, unreachable(err)
	}
	return resp.StatusCode, resp.Header, body, nil
}

const userAgent = "git/countersign"

func unreachable(err error) error {
	if f, ok := fault.As(err); ok {
		return f
	}
	if errIsTimeout(err) {
		return provider.TimedOut(err)
	}
	return provider.Unreachable("GitHub cannot be reached.", err)
}

func errIsTimeout(err error) bool {
	t, ok := err.(interface{ Timeout() bool })
	return ok && t.Timeout()
}

// errBarred is behind every refusal that the token's rights may be the reason for, and behind no failure of GitHub's own.
var errBarred = errors.New("GitHub lets the token not do this, or shows it nothing to do it to")

// errMoved is behind the refusal of an answer that leads elsewhere.
var errMoved = errors.New("GitHub answers with a redirect")

// answered is the fault for a status that is no success.
func answered(status int, body []byte) error {
	switch status {
	case http.StatusUnauthorized:
		return provider.Unauthorized()
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return fault.New(fault.Forbidden, fault.OutsideResource, "GitHub has this repository under another name now.", "Connect it by the name it has now.").Wrap(errMoved)
	case http.StatusForbidden, http.StatusNotFound:
		why := gitgateway.Explain("", string(body[:min(len(body), 4096)]))
		if why.Code == "upstream_error" {
			why = gitgateway.Explain("", "Repository not found")
		}
		return fault.New(fault.Unavailable, fault.UpstreamError, why.What, why.Next).Wrap(errBarred)
	case http.StatusTooManyRequests:
		return provider.Upstream("GitHub's rate limit for the token is used up.", nil)
	}
	return provider.Upstream("GitHub answered with an error (HTTP "+http.StatusText(status)+").", nil)
}
