//go:build linux

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"sync"
	"testing"
	"time"
)

// authority is the one that this network believes.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
	pool *x509.CertPool

	mu     sync.Mutex
	issued map[certificate]*tls.Config
}

// certificate is what is wrong with one, if anything is.
type certificate struct {
	name              string
	selfSigned        bool
	expired, notYet   bool
	oldest            bool // TLS 1.1 at most
	unknownAuthority  bool
	forAnotherPurpose bool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{issued: map[certificate]*tls.Config{}, pool: x509.NewCertPool()}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Authority of this network"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	must(t, err)
	a.cert, err = x509.ParseCertificate(raw)
	must(t, err)
	a.pool.AddCert(a.cert)
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	return a
}

// serving is a server with that certificate.
func (a *authority) serving(c certificate) *tls.Config {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.issued[c] == nil {
		a.issued[c] = a.make(c)
	}
	return a.issued[c]
}

func (a *authority) make(c certificate) *tls.Config {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(a.issued)) + 2), Subject: pkix.Name{CommonName: c.name}, DNSNames: []string{c.name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if c.expired {
		template.NotAfter = time.Now().Add(-time.Minute)
	}
	if c.notYet {
		template.NotBefore = time.Now().Add(30 * time.Minute)
	}
	if c.forAnotherPurpose {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // without randomness nothing here works
	}
	parent, signer := a.cert, a.key
	switch {
	case c.selfSigned:
		parent, signer = template, key
	case c.unknownAuthority: // of the same name, with another key
		if signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			panic(err)
		}
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		panic(err) // of a template made here
	}
	out := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{raw}, PrivateKey: key}}}
	if c.oldest {
		out.MinVersion, out.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	}
	return out
}
