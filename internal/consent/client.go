package consent

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"countersign/internal/fault"
	"countersign/internal/manifest"
	"countersign/internal/secret"
)

// CallbackPath and DocumentPath are the two addresses that authorization servers know us by. They never change.
const (
	CallbackPath = "/oauth/callback"
	DocumentPath = "/.well-known/oauth-client.json"
)

// clientName is what people read at the authorization server.
const clientName = "Countersign"

// Ours is this server as a client: its public address.
type Ours struct{ PublicURL string }

// Callback is our one redirect address.
func (o Ours) Callback() string { return o.PublicURL + CallbackPath }

// DocumentURL is our client id where a server reads our document; empty where nobody outside could.
func (o Ours) DocumentURL() string {
	if !strings.HasPrefix(o.PublicURL, "https://") {
		return ""
	}
	return o.PublicURL + DocumentPath
}

// registration is what is said of a client, in our document and when registering.
type registration struct {
	ID          string   `json:"client_id,omitempty"`
	Name        string   `json:"client_name"`
	URI         string   `json:"client_uri"`
	Redirects   []string `json:"redirect_uris"`
	Grants      []string `json:"grant_types"`
	Responses   []string `json:"response_types"`
	Auth        string   `json:"token_endpoint_auth_method"`
	Application string   `json:"application_type"`
	Scope       string   `json:"scope,omitempty"`
}

func (o Ours) registration(auth manifest.TokenAuth) registration {
	application := "web"
	if strings.HasPrefix(o.PublicURL, "http://") { // on a developer's own machine
		application = "native"
	}
	return registration{
		Name: clientName, URI: o.PublicURL, Redirects: []string{o.Callback()}, Grants: []string{"authorization_code", "refresh_token"},
		Responses: []string{"code"}, Auth: string(auth), Application: application,
	}
}

// Document is our client id metadata document. It names itself, and nothing in it is secret: such a client proves itself by being
// where it says it is.
func (o Ours) Document() ([]byte, error) {
	r := o.registration(manifest.NoAuth)
	r.ID = o.DocumentURL()
	return json.MarshalIndent(r, "", "  ")
}

// Entered is a client that an admin made at the vendor and typed in.
type Entered struct {
	ID     string
	Secret secret.Value
}

// ErrNoClient says that the authorization server takes none of the clients that this server could make by itself.
var ErrNoClient = fault.New(fault.Invalid, fault.CodeInvalid, "This authorization server takes only a client that was made there beforehand.",
	"Make one as described below and enter its id and secret; nothing was asked yet.")

// client finds who asks: the client that an admin entered or the one this connection has there already; else our document; else a
// registration of its own. ErrNoClient asks the admin.
func (o Ours) client(ctx context.Context, s Site, f Found, a manifest.OAuth, entered Entered, known *knownClient) (Client, secret.Value, error) {
	switch {
	case entered.ID != "":
		c := Client{Identity: Registered, ID: entered.ID}
		auth, err := clientAuth(a, f.Auth, !entered.Secret.IsZero())
		c.Auth = auth
		return c, entered.Secret, err
	case known != nil && known.fits(f, a, o):
		return known.Client, known.secret, nil
	case a.Client == manifest.RegisteredClient:
		return Client{}, secret.Value{}, ErrNoClient
	case f.Documents && o.DocumentURL() != "":
		return Client{Identity: Document, ID: o.DocumentURL(), Auth: manifest.NoAuth}, secret.Value{}, nil
	case f.Register != "":
		return o.register(ctx, s, f, a)
	}
	return Client{}, secret.Value{}, ErrNoClient
}

// knownClient is the client a connection was consented with before.
type knownClient struct {
	Client
	secret secret.Value
	server Server
}

// fits reports whether it may be used again: at the same server only, and our document only while it is ours.
func (k *knownClient) fits(f Found, a manifest.OAuth, o Ours) bool {
	if k.server.Issuer != f.Issuer || originOf(k.server.Token) != originOf(f.Token) {
		return false
	}
	switch k.Identity {
	case Registered:
		return true
	case Document:
		return k.ID == o.DocumentURL() && a.Client == manifest.AnyClient
	default:
		return a.Client == manifest.AnyClient
	}
}

// clientAuth chooses how a client proves itself. The server's own list decides, unless the manifest knows better.
func clientAuth(a manifest.OAuth, offered []string, hasSecret bool) (manifest.TokenAuth, error) {
	if !hasSecret {
		if a.TokenAuth == manifest.BasicAuth || a.TokenAuth == manifest.PostAuth {
			return "", fault.Field("client_secret", "This vendor's clients have a secret; enter it with the id.")
		}
		return manifest.NoAuth, nil
	}
	if a.TokenAuth != manifest.AdvertisedAuth {
		return a.TokenAuth, nil
	}
	if len(offered) > 0 && !slices.Contains(offered, string(manifest.BasicAuth)) && slices.Contains(offered, string(manifest.PostAuth)) {
		return manifest.PostAuth, nil
	}
	return manifest.BasicAuth, nil // the standard's own default
}

// register makes a client of this connection's own (RFC 7591).
func (o Ours) register(ctx context.Context, s Site, f Found, a manifest.OAuth) (Client, secret.Value, error) {
	auth := a.TokenAuth
	if auth == manifest.AdvertisedAuth {
		auth = manifest.NoAuth
		for _, better := range []manifest.TokenAuth{manifest.PostAuth, manifest.BasicAuth} {
			if slices.Contains(f.Auth, string(better)) {
				auth = better
			}
		}
	}
	body, err := json.Marshal(o.registration(auth))
	if err != nil {
		return Client{}, secret.Value{}, err
	}
	answered, err := s.post(ctx, f.Register, "application/json", body, nil)
	if err != nil {
		return Client{}, secret.Value{}, unread(err)
	}
	var made struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Auth   string `json:"token_endpoint_auth_method"`
	}
	if answered.status/100 != 2 || json.Unmarshal(answered.body, &made) != nil || !plain(made.ID) || made.Secret != "" && !plain(made.Secret) {
		return Client{}, secret.Value{}, ErrNoClient // an allowlist, mostly; the admin can still make one by hand
	}
	c := Client{Identity: Dynamic, ID: made.ID, Auth: manifest.TokenAuth(made.Auth)}
	if !slices.Contains([]manifest.TokenAuth{manifest.NoAuth, manifest.BasicAuth, manifest.PostAuth}, c.Auth) {
		c.Auth = auth
	}
	if c.Auth != manifest.NoAuth && made.Secret == "" {
		c.Auth = manifest.NoAuth
	}
	return c, secret.New(made.Secret), nil
}

// mostPlain is as long as an entered credential may be. Tokens that hold what they allow, as several vendors' do, have 3 KiB and more.
const mostPlain = 8 << 10

// plain texts can stand in a header or a form without changing what is around them.
func plain(s string) bool {
	return s != "" && len(s) <= mostPlain && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e })
}

// authorise puts the client's proof on a request to the token or revocation endpoint.
func (c Client) authorise(form url.Values, key secret.Value) func(*http.Request) {
	switch c.Auth {
	case manifest.BasicAuth:
		return func(r *http.Request) { r.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(key.Reveal())) }
	case manifest.PostAuth:
		form.Set("client_secret", key.Reveal())
	}
	form.Set("client_id", c.ID)
	return nil
}
