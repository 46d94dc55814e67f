package secret

import (
	"encoding/binary"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/mac"
	"github.com/tink-crypto/tink-go/v2/tink"

	"countersign/internal/fault"
)

// Sealed is ciphertext with the id of its key in front. It opens only with the binding it was sealed with.
type Sealed []byte

// Binding says where a sealed value belongs. It is authenticated, not stored inside: a row copied to another organization,
// connection, field or version does not open there, and neither does one whose destination was changed beside it: whoever can
// write the database must not be able to have a credential sent elsewhere.
type Binding struct {
	Org        string
	Connection string
	Field      string
	Origin     string // where the value may be sent; empty for what is never sent
	Version    int64
}

// bindingFormat versions the encoding below.
const bindingFormat = 1

// associated is the format, then each part with its length in front, so that no two bindings have one encoding.
func (b Binding) associated() []byte {
	out := []byte{bindingFormat}
	for _, s := range []string{b.Org, b.Connection, b.Field, b.Origin} {
		out = binary.BigEndian.AppendUint32(out, uint32(len(s)))
		out = append(out, s...)
	}
	return binary.BigEndian.AppendUint64(out, uint64(b.Version))
}

// Purpose names one of the two keysets in the file. Tink allows one primitive per keyset.
type Purpose string

// The purposes.
const (
	Sealing Purpose = "sealing" // AEAD, for credentials
	Chain   Purpose = "chain"   // MAC, for the audit chain
)

// Purposes lists both.
var Purposes = []Purpose{Sealing, Chain}

// Keyset seals, opens and authenticates. It is immutable and safe for concurrent use; rotation makes a new one.
type Keyset struct {
	handles map[Purpose]*keyset.Handle
	aead    tink.AEAD
	mac     tink.MAC
}

// KeyInfo describes one key of a keyset without its material.
type KeyInfo struct {
	Purpose Purpose
	ID      uint32
	Primary bool
	Enabled bool
}

// Generate makes a keyset with one fresh key for each purpose.
func Generate() (*Keyset, error) {
	sealing, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, broken(err)
	}
	chain, err := keyset.NewHandle(mac.HMACSHA256Tag256KeyTemplate())
	if err != nil {
		return nil, broken(err)
	}
	return build(map[Purpose]*keyset.Handle{Sealing: sealing, Chain: chain})
}

func build(handles map[Purpose]*keyset.Handle) (*Keyset, error) {
	a, err := aead.New(handles[Sealing])
	if err != nil {
		return nil, broken(err)
	}
	m, err := mac.New(handles[Chain])
	if err != nil {
		return nil, broken(err)
	}
	return &Keyset{handles: handles, aead: a, mac: m}, nil
}

func broken(cause error) error {
	return fault.New(fault.Internal, fault.CodeInternal, "The keyset cannot be used.", "Restore the keyset file from a backup; without it sealed credentials cannot be opened.").Wrap(cause)
}

// Seal encrypts v for one place. An empty value is refused: it would look like a stored credential.
func (k *Keyset) Seal(v Value, b Binding) (Sealed, error) {
	if v.IsZero() {
		return nil, fault.New(fault.Invalid, fault.CodeInvalid, "There is no secret to seal.", "Enter the secret.")
	}
	out, err := k.aead.Encrypt([]byte(v.Reveal()), b.associated())
	if err != nil {
		return nil, broken(err)
	}
	return out, nil
}

// Open decrypts s for the place it was sealed for. A wrong place, a wrong or disabled key and a damaged text look the same.
func (k *Keyset) Open(s Sealed, b Binding) (Value, error) {
	text, err := k.aead.Decrypt(s, b.associated())
	if err != nil {
		return Value{}, fault.New(fault.Unavailable, fault.ConnectionUnavailable, "A stored credential cannot be opened with the keys this server has.",
			"Restore the keyset file, or enter the credential again.").Wrap(err)
	}
	return New(string(text)), nil
}

// MAC authenticates data under the primary chain key; the key's id is part of the answer.
func (k *Keyset) MAC(data []byte) ([]byte, error) {
	out, err := k.mac.ComputeMAC(data)
	if err != nil {
		return nil, broken(err)
	}
	return out, nil
}

// Verify reports whether tag is a MAC of data under any enabled chain key.
func (k *Keyset) Verify(tag, data []byte) bool { return k.mac.VerifyMAC(tag, data) == nil }
