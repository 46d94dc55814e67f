package secret

import (
	"strconv"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/mac"
	tinkpb "github.com/tink-crypto/tink-go/v2/proto/tink_go_proto"

	"countersign/internal/fault"
)

// Rotation has steps because two servers run at once: first both must know a key (Add), then it may be used (Promote), then what
// the old one sealed is sealed again, and only then is the old one disabled and, when nothing misses it, destroyed.

// Keys lists the keys of both purposes, in the order of the file.
func (k *Keyset) Keys() []KeyInfo {
	var out []KeyInfo
	for _, p := range Purposes {
		info := k.handles[p].KeysetInfo()
		for _, key := range info.GetKeyInfo() {
			out = append(out, KeyInfo{
				Purpose: p, ID: key.GetKeyId(), Primary: key.GetKeyId() == info.GetPrimaryKeyId(),
				Enabled: key.GetStatus() == tinkpb.KeyStatusType_ENABLED,
			})
		}
	}
	return out
}

// AddKey returns a keyset that also knows a fresh key for p. The new key opens and verifies but is not yet used.
func (k *Keyset) AddKey(p Purpose) (*Keyset, uint32, error) {
	template := aead.AES256GCMKeyTemplate()
	if p == Chain {
		template = mac.HMACSHA256Tag256KeyTemplate()
	}
	var id uint32
	next, err := k.change(p, func(m *keyset.Manager) (err error) {
		id, err = m.Add(template)
		return err
	})
	return next, id, err
}

// Promote returns a keyset that seals or authenticates with the given key.
func (k *Keyset) Promote(p Purpose, id uint32) (*Keyset, error) {
	return k.change(p, func(m *keyset.Manager) error { return m.SetPrimary(id) })
}

// Disable returns a keyset that no longer uses the given key, but still holds it, so that the step can be taken back.
func (k *Keyset) Disable(p Purpose, id uint32) (*Keyset, error) {
	return k.change(p, func(m *keyset.Manager) error { return m.Disable(id) })
}

// Enable takes Disable back.
func (k *Keyset) Enable(p Purpose, id uint32) (*Keyset, error) {
	return k.change(p, func(m *keyset.Manager) error { return m.Enable(id) })
}

// Destroy returns a keyset without the given key. Only a disabled key can be destroyed.
func (k *Keyset) Destroy(p Purpose, id uint32) (*Keyset, error) {
	for _, key := range k.Keys() {
		if key.Purpose == p && key.ID == id && key.Enabled {
			return nil, fault.New(fault.Conflict, fault.CodeConflict, "The key "+strconv.FormatUint(uint64(id), 10)+" is still in use.", "Disable it first and see that nothing misses it.")
		}
	}
	return k.change(p, func(m *keyset.Manager) error { return m.Delete(id) })
}

func (k *Keyset) change(p Purpose, edit func(*keyset.Manager) error) (*Keyset, error) {
	old, ok := k.handles[p]
	if !ok {
		return nil, fault.Field("purpose", "There is no keyset for “"+string(p)+"”; choose sealing or chain.")
	}
	m := keyset.NewManagerFromHandle(old)
	if err := edit(m); err != nil {
		return nil, fault.New(fault.Conflict, fault.CodeConflict, "The key cannot be changed in this way.", "List the keys and choose one that is enabled and not primary.").Wrap(err)
	}
	h, err := m.Handle()
	if err != nil {
		return nil, broken(err)
	}
	handles := map[Purpose]*keyset.Handle{p: h}
	for _, other := range Purposes {
		if other != p {
			handles[other] = k.handles[other]
		}
	}
	return build(handles)
}

// NeedsReseal reports whether s was sealed by another key than the primary one, so that lazy re-encryption can find it.
func (k *Keyset) NeedsReseal(s Sealed) bool {
	id, ok := s.KeyID()
	return !ok || id != k.handles[Sealing].KeysetInfo().GetPrimaryKeyId()
}

// KeyID is the id of the key that sealed s.
func (s Sealed) KeyID() (uint32, bool) {
	if len(s) < 5 || s[0] != 1 { // Tink's own prefix: 0x01 and the id
		return 0, false
	}
	return uint32(s[1])<<24 | uint32(s[2])<<16 | uint32(s[3])<<8 | uint32(s[4]), true
}
