package credential

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"countersign/internal/egress"
	"countersign/internal/secret"
)

// accounts is one key for all tests: making one is slow.
var accounts = sync.OnceValue(func() (k struct {
	file   secret.Value
	public *rsa.PublicKey
},
) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	file, err := json.MarshalIndent(map[string]string{
		"type": "service_account", "client_email": "reports@harbor.example", "private_key_id": "k1", "token_uri": "https://elsewhere.example/steal",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}, "", "  ")
	if err != nil {
		panic(err)
	}
	k.file, k.public = secret.New(string(file)), &key.PublicKey
	return k
})

// tokenServer issues numbered tokens to whoever signs properly.
type tokenServer struct {
	issued  atomic.Int64
	refuses atomic.Bool
	life    int
}

func (s *tokenServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.FormValue("assertion"), ".")
	if s.refuses.Load() || r.FormValue("grant_type") != grantJWT || len(parts) != 3 {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
	if rsa.VerifyPKCS1v15(accounts().public, crypto.SHA256, sum[:], signature) != nil || !strings.Contains(string(claims), `"scope":"a b"`) || !strings.Contains(string(claims), audience) {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, `{"access_token":"issued-token-number-%d","expires_in":%d,"token_type":"Bearer"}`, s.issued.Add(1), s.life)
}

func accountWorld(t *testing.T, life int) (*tokenServer, *Account, egress.Destination) {
	t.Helper()
	s := &tokenServer{life: life}
	tokens := httptest.NewServer(s)
	t.Cleanup(tokens.Close)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // echoes what it was sent
		fmt.Fprint(w, r.Header.Get("Authorization"), " by ", accounts().file.Reveal())
	}))
	t.Cleanup(api.Close)
	at, err := egress.Operator(tokens.URL + "/token")
	if err != nil {
		t.Fatal(err)
	}
	to, err := egress.Operator(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewAccount(CompactKey(accounts().file), at, []string{"a", "b"}, to)
	if err != nil {
		t.Fatal(err)
	}
	return s, a, to
}

func fetch(t *testing.T, a *Account, d egress.Destination) (string, error) {
	t.Helper()
	res, err := egress.Client(d, egress.Options{Editor: a}).Get(d.URL())
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}

func TestTheKeyOfAServiceAccountIsExchangedOnceAndNeverShown(t *testing.T) {
	s, a, to := accountWorld(t, 3600)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			body, err := fetch(t, a, to)
			if err != nil || !strings.HasPrefix(body, "Bearer "+Marker) || strings.Contains(body, "issued-token") || strings.Contains(body, "PRIVATE KEY") {
				t.Errorf("%q %v", body, err)
			}
		})
	}
	all.Wait()
	if n := s.issued.Load(); n != 1 {
		t.Errorf("%d exchanges for 8 requests", n)
	}
}

func TestATokenThatDoesNotLastIsReplacedBeforeItEnds(t *testing.T) {
	s, a, to := accountWorld(t, 3600)
	for range 2 {
		if _, err := fetch(t, a, to); err != nil {
			t.Fatal(err)
		}
		a.mu.Lock()
		a.renewAt = a.renewAt.Add(-2 * assertionLife)
		a.mu.Unlock()
	}
	if n := s.issued.Load(); n != 2 {
		t.Errorf("%d exchanges", n)
	}
}

func TestARefusedKeyIsARefusedCredential(t *testing.T) {
	s, a, to := accountWorld(t, 3600)
	s.refuses.Store(true)
	if _, err := fetch(t, a, to); !errors.Is(err, egress.ErrUnauthorized) {
		t.Errorf("%v", err)
	}
	other, err := egress.Operator("http://127.0.0.1:1/elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	s.refuses.Store(false)
	if _, err := fetch(t, a, other); err == nil || strings.Contains(err.Error(), "connection refused") {
		t.Errorf("a token was meant for another origin: %v", err)
	}
}

func TestWhatIsNoKeyIsSaidInWords(t *testing.T) {
	for name, file := range map[string]string{
		"not JSON":      "-----BEGIN",
		"another type":  `{"type":"authorized_user","client_email":"a@b","private_key":"x"}`,
		"no key in it":  `{"type":"service_account","client_email":"a@b","private_key":"x"}`,
		"not an object": `[]`,
	} {
		if why := CheckKey(secret.New(file)); why == "" || strings.Contains(why, "a@b") {
			t.Errorf("%s: %q", name, why)
		}
	}
	if why := CheckKey(CompactKey(accounts().file)); why != "" {
		t.Error(why)
	}
	if strings.Contains(CompactKey(accounts().file).Reveal(), "\n") {
		t.Error("the key is kept on several lines")
	}
}
