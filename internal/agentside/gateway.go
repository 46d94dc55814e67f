package agentside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"countersign/internal/fault"
	"countersign/internal/secret"
)

// Config is the gateway configuration of a run, as GET /gateway/config answers it.
type Config struct {
	MCP       struct{ URL string } `json:"mcp"`
	Git       []Repository         `json:"git"`
	Stdio     []Runtime            `json:"stdio"`
	ExpiresAt time.Time            `json:"expires_at"`
	Surface   string               `json:"surface"`
}

// Repository is one that the run may fetch from.
type Repository struct {
	Connection string `json:"connection"`
	Name       string `json:"repository"`
	URL        string `json:"url"`
	InsteadOf  string `json:"instead_of"`
}

// Runtime names a server that this image starts.
type Runtime struct {
	Key string `json:"runtime"`
}

// Preflight is what would become of each call of the run, as GET /gateway/preflight answers it.
type Preflight struct {
	Surface   string    `json:"surface"`
	ExpiresAt time.Time `json:"expires_at"`
	Budget    struct {
		Consequential, Used int
	} `json:"budget"`
	Tools []struct {
		Name, Connection, Tool, Effect, Verdict, Code, Reason, Next string
	} `json:"tools"`
	Days []Day `json:"days"`
	Git  []struct {
		Connection string
		Branches   []string
	} `json:"git"`
}

// Day is what is left of a limit of the day.
type Day struct {
	Connection string
	Actions    *struct{ Most, Used int }
	Amount     *struct{ Currency, Most, Used string }
	ResetsAt   time.Time `json:"resets_at"`
}

// Gateway asks one gateway with the token of one run.
type Gateway struct {
	origin string
	token  secret.Value
	client *http.Client
}

// asked bounds one question to the gateway; maxAnswer is what it may answer, in bytes.
const (
	asked     = 20 * time.Second
	maxAnswer = 8 << 20
)

// Open names a gateway by its origin, or by any address below it. The token travels with each request, so that plain http is for this
// machine alone unless somebody says otherwise.
func Open(address string, token secret.Value, plain bool) (*Gateway, error) {
	origin, err := originOf(address, plain)
	if err != nil {
		return nil, err
	}
	// A redirect could carry the token elsewhere, so none is followed.
	client := &http.Client{Timeout: asked, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Gateway{origin, token, client}, nil
}

func originOf(address string, plain bool) (string, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http":
		return "", invalid("“"+address+"” is no address of a gateway.", "Write it like https://countersign.example.com.")
	case u.Scheme == "http" && !plain && !loopback(u.Hostname()):
		return "", invalid("The gateway "+u.Host+" is not on this machine, and without https others could read the run token on its way.", "Use its https address, or say --plain-http where the network is yours.")
	}
	return u.Scheme + "://" + u.Host, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Config fetches the configuration of the run. Every address in it is on one origin, which gets the token: the gateway's own, or the public
// one of the same server.
func (g *Gateway) Config(ctx context.Context, plain bool) (Config, error) {
	var c Config
	if _, err := g.get(ctx, "/gateway/config", &c); err != nil {
		return Config{}, err
	}
	origin, err := originOf(c.MCP.URL, plain)
	if err != nil {
		return Config{}, err
	}
	for _, r := range c.Git {
		if at, err := originOf(r.URL, plain); err != nil || at != origin || !strings.HasPrefix(r.InsteadOf, "https://") || strings.ContainsAny(r.URL+r.InsteadOf, " \n\"\\#;") {
			return Config{}, cannot("The configuration names a repository at an address that is not the gateway's.", "Tell the operator of the gateway.")
		}
	}
	return c, nil
}

// Preflight fetches what the run may do, and the gateway's time.
func (g *Gateway) Preflight(ctx context.Context) (p Preflight, at time.Time, err error) {
	at, err = g.get(ctx, "/gateway/preflight", &p)
	return p, at, err
}

// ErrToken is the cause of whatever failed because the gateway does not take the token.
var ErrToken = errors.New("the gateway does not take the run token")

func (g *Gateway) get(ctx context.Context, path string, into any) (at time.Time, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.origin+path, nil)
	if err != nil {
		return at, err
	}
	req.Header.Set("Authorization", "Bearer "+g.token.Reveal())
	res, err := g.client.Do(req)
	if err != nil {
		return at, cannot("The gateway "+g.origin+" does not answer.", "Check the address after --gateway, and that this machine may reach it.").Wrap(err)
	}
	defer res.Body.Close()
	at, _ = http.ParseTime(res.Header.Get("Date"))
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case res.StatusCode == http.StatusUnauthorized:
		return at, fault.New(fault.Unauthenticated, fault.CodeUnauthenticated, "The run token is missing, wrong, expired or of an ended run.", "Start a run and use its token.").Wrap(ErrToken)
	case err != nil || res.StatusCode != http.StatusOK:
		return at, cannot(fmt.Sprintf("The gateway %s answered %s with status %d.", g.origin, path, res.StatusCode), "Check that the address after --gateway is that of a Countersign server.").Wrap(err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return at, cannot("The gateway "+g.origin+" answered "+path+" with something else than was asked for.", "Check that the address after --gateway is that of a Countersign server.").Wrap(err)
	}
	return at, nil
}
