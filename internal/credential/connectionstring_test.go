package credential

import (
	"fmt"
	"strings"
	"testing"

	"countersign/internal/egress"
	"countersign/internal/secret"
)

const (
	atlas  = "mongodb+srv://agents:p%40ss-canary%2F1@cluster0.ab12c.mongodb.net/?retryWrites=true&w=majority&appName=Cluster0"
	listed = "mongodb://agents:p-canary-22@db2.shop.example:27018,DB1.shop.example/shop?replicaSet=rs0&tls=true"
)

func TestAConnectionStringIsTakenApart(t *testing.T) {
	for s, want := range map[string][4]string{
		atlas:  {"mongodb+srv://cluster0.ab12c.mongodb.net", "p@ss-canary/1", "", ""},
		listed: {"mongodb://db1.shop.example:27017,db2.shop.example:27018", "p-canary-22", "shop", "rs0"},
	} {
		d, err := AddressOf(secret.New(s))
		if err != nil || d.URL() != want[0] {
			t.Errorf("%v, %v", d.URL(), err)
			continue
		}
		a, err := Bind(ConnectionString("dsn"), map[string]secret.Value{"dsn": secret.New(s)}, d)
		if err != nil {
			t.Fatal(err)
		}
		login, ok := a.Login()
		if !ok || login.Option("authsource") != want[2] || login.Option("replicaset") != want[3] {
			t.Errorf("options %q %q", login.Option("authsource"), login.Option("replicaset"))
		}
		login.Present(func(user, password string) {
			if user != "agents" || password != want[1] {
				t.Errorf("logs in as %q", user)
			}
		})
		if got := string(login.Redact([]byte(`{"note":"` + want[1] + `"}`))); strings.Contains(got, "canary") {
			t.Errorf("the password comes back: %s", got)
		}
		if got := fmt.Sprintf("%v %+v", a, login); strings.Contains(got, "canary") {
			t.Errorf("the password prints: %s", got)
		}
	}
}

// A string that was stored for one place opens for no other, unless the operator moved it.
func TestAConnectionStringIsForOnePlace(t *testing.T) {
	values := map[string]secret.Value{"dsn": secret.New(listed)}
	for _, other := range []string{"mongodb://db1.shop.example", "mongodb://db1.evil.example,db2.shop.example:27018"} {
		d, err := egress.Database(other)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Bind(ConnectionString("dsn"), values, d); err == nil {
			t.Errorf("it opens for %s", other)
		}
	}
	moved, err := egress.Operator("http://127.0.0.1:27017")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Bind(ConnectionString("dsn"), values, moved); err != nil {
		t.Error(err)
	}
}

// Whatever opens a file, reads what is the machine's, weakens TLS or leads elsewhere is refused, and no sentence repeats the password.
func TestConnectionStringsThatDoMoreAreRefused(t *testing.T) {
	const of = "mongodb://agents:p-canary-22@db.shop.example/?"
	bad := []string{
		of + "tlsCAFile=/etc/passwd", of + "TLSCERTIFICATEKEYFILE=x", of + "tlsInsecure=true", of + "tlsAllowInvalidCertificates=true", of + "tls=false", of + "ssl=false",
		of + "authMechanism=MONGODB-AWS", of + "authMechanism=MONGODB-OIDC", of + "authMechanism=GSSAPI", of + "authMechanism=PLAIN", of + "authMechanism=MONGODB-X509",
		of + "authMechanismProperties=ENVIRONMENT:gcp", of + "directConnection=true", of + "loadBalanced=true", of + "srvServiceName=x", of + "proxyHost=10.0.0.1",
		of + "w=0", of + "w=-1", of + "journal=false", of + "unheardOf=1", of + "authSource=a&authsource=b", of + "authSource=a%2Fb", of + "readPreference=whoever",
		"mongodb://agents:p-canary-22@127.0.0.1/", "mongodb://agents:p-canary-22@2130706433/", "mongodb://agents:p-canary-22@localhost/", "mongodb://agents:p-canary-22@db.internal/",
		"mongodb://agents:p-canary-22@%2Ftmp%2Fmongodb-27017.sock/", "mongodb://agents:p-canary-22@db.shop.example:22/", "mongodb://agents:p-canary-22@[::1]/",
		"mongodb://db.shop.example/", "mongodb://agents@db.shop.example/", "mongodb://agents:@db.shop.example/", "mongodb://agents:p-canary-22/x@db.shop.example/", "mongodb://agents:p-canary-22@x@db.shop.example/",
		"mongodb+srv://agents:p-canary-22@cluster0.ab12c.mongodb.net:27017/", "mongodb+srv://agents:p-canary-22@a.b.c,d.e.f/", "mongodb+srv://agents:p-canary-22@mongodb.net/",
		"mongodb+srv://agents:<db_password>@cluster0.ab12c.mongodb.net/", "http://agents:p-canary-22@db.shop.example/", "p-canary-22", "",
	}
	for _, s := range bad {
		err := ConnectionString("dsn").Check(map[string]secret.Value{"dsn": secret.New(s)})
		if err == nil {
			t.Errorf("taken: %s", s)
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("the sentence holds the password: %v", err)
		}
	}
	for option, why := range map[string]string{"tlsCAFile=x": "names a file", "tlsInsecure=true": "read along", "directConnection=true": "which servers", "proxyHost=x": "another machine", "unheardOf=1": "does not know"} {
		if err := ConnectionString("dsn").Check(map[string]secret.Value{"dsn": secret.New(of + option)}); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", option, err)
		}
	}
}
