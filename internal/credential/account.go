package credential

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"countersign/internal/egress"
	"countersign/internal/fault"
	"countersign/internal/secret"
)

// Account authorises requests with access tokens that the key of a service account is exchanged for (RFC 7523). The key itself is sent
// to nobody: only what it signed goes to the token endpoint, and only the token to the service. It implements egress.Editor.
type Account struct {
	email, keyID string
	key          *rsa.PrivateKey
	token        egress.Destination
	to           []egress.Destination
	scopes       []string
	client       *http.Client
	hides        *Redactor // the key, should anybody echo it

	turn    chan struct{} // held while exchanging; a channel, so that waiting ends with the waiter's context
	mu      sync.Mutex
	now     *Authorizer
	before  *Authorizer
	renewAt time.Time
}

const (
	assertionLife = time.Hour // the longest that Google takes
	renewBefore   = 5 * time.Minute
	exchangeWait  = 15 * time.Second
	grantJWT      = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	audience      = "https://oauth2.googleapis.com/token" // what is signed, wherever the operator has moved the endpoint
)

// accountKey is the file that the vendor's console makes. Its addresses are not read: where a key is used is never up to who pasted it.
type accountKey struct {
	Type         string `json:"type"`
	ClientEmail  string `json:"client_email"`
	PrivateKeyID string `json:"private_key_id"`
	PrivateKey   string `json:"private_key"`
}

// CompactKey brings the pasted file onto one line. What is no JSON stays as it is, for CheckKey to say so.
func CompactKey(v secret.Value) secret.Value {
	var b bytes.Buffer
	if json.Compact(&b, []byte(v.Reveal())) != nil {
		return v
	}
	return secret.New(b.String())
}

// CheckKey says what is wrong with the pasted key of a service account; empty where nothing is. It never quotes it.
func CheckKey(v secret.Value) string {
	_, _, why := parseKey(v)
	return why
}

func parseKey(v secret.Value) (accountKey, *rsa.PrivateKey, string) {
	var k accountKey
	if json.Unmarshal([]byte(v.Reveal()), &k) != nil {
		return k, nil, "This is not the JSON file of a service account key; paste the whole file."
	}
	if k.Type != "service_account" || k.ClientEmail == "" || k.PrivateKey == "" {
		return k, nil, "This JSON is not a service account key: it needs type service_account, client_email and private_key."
	}
	block, _ := pem.Decode([]byte(k.PrivateKey))
	if block == nil {
		return k, nil, "The private_key of this file cannot be read; paste the file as it was downloaded."
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok || key.N.BitLen() < 2048 {
		return k, nil, "The private_key of this file is not an RSA key of at least 2048 bits; make a new key."
	}
	return k, key, ""
}

// Account opens the stored key of a service account, whose tokens are for requests to these destinations.
func (v *Vault) Account(ctx context.Context, p Place, field string, token egress.Destination, scopes []string, to ...egress.Destination) (*Account, error) {
	values, err := v.values(ctx, p, []string{field}, token)
	if err != nil {
		return nil, err
	}
	return NewAccount(values[field], token, scopes, to...)
}

// NewAccount makes an Account of a key.
func NewAccount(v secret.Value, token egress.Destination, scopes []string, to ...egress.Destination) (*Account, error) {
	k, key, why := parseKey(v)
	if why != "" {
		return nil, fault.New(fault.Unavailable, fault.ConnectionUnavailable, why, "Enter the key again on the connection's page.")
	}
	if token.IsZero() || len(to) == 0 || slices.ContainsFunc(to, egress.Destination.IsZero) {
		return nil, egress.ErrRefused
	}
	return &Account{
		email: k.ClientEmail, keyID: k.PrivateKeyID, key: key, token: token, to: to, scopes: scopes,
		client: egress.Client(token, egress.Options{Timeout: exchangeWait, MaxBytes: 64 << 10}), hides: NewRedactor(secret.New(k.PrivateKey)),
		turn: make(chan struct{}, 1),
	}, nil
}

// Edit implements egress.Editor.
func (a *Account) Edit(r *http.Request) error {
	now, err := a.valid(r.Context())
	if err != nil {
		return err
	}
	return now.Edit(r)
}

// Body implements egress.Editor.
func (a *Account) Body(body io.Reader) io.Reader {
	for _, issued := range a.issued() {
		body = issued.Body(body)
	}
	return a.hides.Reader(body)
}

// Header implements egress.Editor.
func (a *Account) Header(h http.Header) {
	for _, issued := range a.issued() {
		issued.Header(h)
	}
	a.hides.Header(h)
}

// issued are the tokens that an answer under way may still echo.
func (a *Account) issued() []*Authorizer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc([]*Authorizer{a.now, a.before}, func(x *Authorizer) bool { return x == nil })
}

// valid answers a token that lasts. Those who need a new one at the same moment wait for one exchange.
func (a *Account) valid(ctx context.Context) (*Authorizer, error) {
	if now := a.lasting(); now != nil {
		return now, nil
	}
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if now := a.lasting(); now != nil {
		return now, nil
	}
	token, life, err := a.exchange(ctx)
	if err != nil {
		return nil, err
	}
	contract, err := Token("Authorization", "Bearer {secret}")
	if err != nil {
		return nil, err
	}
	next, err := Bind(contract, map[string]secret.Value{TokenField: token}, a.to[0], a.to[1:]...)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now, a.before, a.renewAt = next, a.now, time.Now().Add(life-min(renewBefore, life/4))
	return next, nil
}

func (a *Account) lasting() *Authorizer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now == nil || !time.Now().Before(a.renewAt) {
		return nil
	}
	return a.now
}

// exchange trades a signed assertion for an access token.
func (a *Account) exchange(ctx context.Context) (secret.Value, time.Duration, error) {
	assertion, err := a.assertion(time.Now())
	if err != nil {
		return secret.Value{}, 0, fault.Of(err)
	}
	ctx, _ = egress.Observe(ctx) // the record of the request that waits for the token is its own
	form := url.Values{"grant_type": {grantJWT}, "assertion": {assertion}}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.token.URL(), strings.NewReader(form))
	if err != nil {
		return secret.Value{}, 0, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	res, err := a.client.Do(r)
	if err != nil {
		return secret.Value{}, 0, err
	}
	defer res.Body.Close()
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
		Error       string `json:"error"`
	}
	bad := json.NewDecoder(res.Body).Decode(&answer)
	switch {
	case res.StatusCode == http.StatusBadRequest, res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden:
		return secret.Value{}, 0, fault.New(fault.Unavailable, fault.ConnectionUnavailable, "The service does not accept the key of this service account (any more).",
			"Make a new key in the Google Cloud console and enter it on the connection's page.").Wrap(egress.ErrUnauthorized)
	case res.StatusCode != http.StatusOK || bad != nil || wrong(answer.AccessToken) != "" || answer.ExpiresIn <= 0:
		return secret.Value{}, 0, fault.New(fault.Unavailable, fault.ConnectionUnavailable, "The service's token endpoint gave no token.", "Try again later; an admin can test the connection on its page.")
	}
	return secret.New(answer.AccessToken), time.Duration(answer.ExpiresIn) * time.Second, nil
}

// assertion is the signed JWT.
func (a *Account) assertion(now time.Time) (string, error) {
	head, err := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": a.keyID})
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{
		"iss": a.email, "scope": strings.Join(a.scopes, " "), "aud": audience, "iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	})
	if err != nil {
		return "", err
	}
	signed := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.key, crypto.SHA256, sum[:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), err
}

var _ egress.Editor = (*Account)(nil)
