package secret

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/internal/fault"
)

const text = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"

type holder struct {
	Name   string
	Token  Value
	hidden Value
}

func TestAValueDoesNotPrint(t *testing.T) {
	v := New(text)
	h := holder{"a", v, v}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%p", "%10s", "%-40v", "% x", "%08b", "%c", "%U", "%e"} {
		fmt.Fprintf(&out, verb+"\n", v)
		fmt.Fprintf(&out, verb+"\n", &v)
		fmt.Fprintf(&out, verb+"\n", h)
		fmt.Fprintf(&out, verb+"\n", &h)
		fmt.Fprintf(&out, verb+"\n", []Value{v})
		fmt.Fprintf(&out, verb+"\n", map[string]Value{"k": v})
	}
	fmt.Fprintln(&out, v, errors.New(v.String()), v.GoString())
	for _, log := range []*slog.Logger{slog.New(slog.NewJSONHandler(&out, nil)), slog.New(slog.NewTextHandler(&out, nil))} {
		log.Info("m", "v", v, "p", &v, "h", h, "hp", &h, "any", []any{v}, slog.Group("g", "v", v))
	}
	for _, form := range []string{text, "sk_live", fmt.Sprintf("%x", text), fmt.Sprintf("%X", text), fmt.Sprintf("%q", text)} {
		if strings.Contains(out.String(), form) {
			t.Errorf("%s was printed", form)
		}
	}
	if !strings.Contains(out.String(), Placeholder) {
		t.Error("nothing says that something was left out")
	}
}

func TestAValueIsNotMarshalled(t *testing.T) {
	v := New(text)
	if b, err := json.Marshal(holder{Token: v}); err == nil {
		t.Errorf("JSON: %s", b)
	}
	if b, err := json.Marshal(map[string]any{"a": &v}); err == nil {
		t.Errorf("JSON: %s", b)
	}
	if b, err := xml.Marshal(holder{Token: v}); err == nil {
		t.Errorf("XML: %s", b)
	}
	if err := gob.NewEncoder(new(bytes.Buffer)).Encode(holder{Token: v}); err == nil {
		t.Error("gob")
	}
	if _, err := v.MarshalText(); err == nil {
		t.Error("text")
	}
}

func TestAValueIsComparedAndNamedWithoutBeingShown(t *testing.T) {
	v := New(text)
	if !v.Equal(New(text)) || v.Equal(New(text+"x")) || v.Equal(Value{}) || !(Value{}).Equal(New("")) || v.Reveal() != text {
		t.Error("wrong comparison")
	}
	if v.Fingerprint() != New(text).Fingerprint() || v.Fingerprint() == New(text+"x").Fingerprint() || len(v.Fingerprint()) != 12 || (Value{}).Fingerprint() != "" {
		t.Error("wrong fingerprint")
	}
	if v.Last4() != "p7dc" || New("shortsecret").Last4() != "" || (Value{}).Last4() != "" {
		t.Error("wrong last four")
	}
}

func generated(t *testing.T) *Keyset {
	t.Helper()
	k, err := Generate()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

var place = Binding{Org: "org_1", Connection: "crm-abcdef", Field: "token", Origin: "https://crm.example", Version: 3}

func TestASealedValueOpensOnlyWhereItBelongs(t *testing.T) {
	k := generated(t)
	s, err := k.Seal(New(text), place)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := k.Open(s, place); err != nil || v.Reveal() != text {
		t.Fatal(err)
	}
	if again, _ := k.Seal(New(text), place); bytes.Equal(again, s) || bytes.Contains(s, []byte(text)) {
		t.Error("the ciphertext gives something away")
	}
	for name, other := range map[string]func(*Binding){
		"organization": func(b *Binding) { b.Org = "org_2" },
		"connection":   func(b *Binding) { b.Connection = "crm-bcdefg" },
		"field":        func(b *Binding) { b.Field = "token2" },
		"origin":       func(b *Binding) { b.Origin = "https://evil.example" },
		"version":      func(b *Binding) { b.Version = 2 },
		"border":       func(b *Binding) { b.Org, b.Connection = "org_1c", "rm-abcdef" },
	} {
		b := place
		other(&b)
		if v, err := k.Open(s, b); !fault.Is(err, fault.ConnectionUnavailable) || !v.IsZero() {
			t.Errorf("it opens with another %s", name)
		}
	}
	for _, bad := range []Sealed{nil, {}, s[:len(s)-1], append(bytes.Clone(s), 0), flipped(s, 0), flipped(s, 3), flipped(s, len(s)-1)} {
		if _, err := k.Open(bad, place); err == nil {
			t.Error("a damaged text opens")
		}
	}
	if _, err := generated(t).Open(s, place); err == nil {
		t.Error("another keyset opens it")
	}
	if _, err := k.Seal(Value{}, place); err == nil {
		t.Error("nothing was sealed")
	}
}

func flipped(s Sealed, i int) Sealed {
	c := bytes.Clone(s)
	c[i] ^= 1
	return c
}

func TestTheChainKeyAuthenticates(t *testing.T) {
	k := generated(t)
	tag, err := k.MAC([]byte("entry"))
	if err != nil || !k.Verify(tag, []byte("entry")) || k.Verify(tag, []byte("entrY")) || k.Verify(nil, []byte("entry")) || k.Verify(tag[:4], []byte("entry")) {
		t.Error("wrong MAC", err)
	}
	if generated(t).Verify(tag, []byte("entry")) {
		t.Error("another keyset verifies it")
	}
}

func TestRotationWithTwoServersRunning(t *testing.T) {
	old := generated(t)
	sealed, _ := old.Seal(New(text), place)
	tag, _ := old.MAC([]byte("entry"))

	added, id, err := old.AddKey(Sealing)
	if err != nil {
		t.Fatal(err)
	}
	promoted, err := added.Promote(Sealing, id)
	if err != nil {
		t.Fatal(err)
	}
	fresh, _ := promoted.Seal(New(text), place)
	// A server that knows the added key but does not use it yet opens what one that does has sealed, and the other way round.
	for _, k := range []*Keyset{added, promoted} {
		for _, s := range []Sealed{sealed, fresh} {
			if v, err := k.Open(s, place); err != nil || v.Reveal() != text {
				t.Error(err)
			}
		}
		if !k.Verify(tag, []byte("entry")) {
			t.Error("the chain broke")
		}
	}
	if _, err := old.Open(fresh, place); err == nil {
		t.Error("a server without the key opens it")
	}
	if old.NeedsReseal(sealed) || !promoted.NeedsReseal(sealed) || promoted.NeedsReseal(fresh) || !promoted.NeedsReseal(nil) {
		t.Error("what needs sealing again is not found")
	}

	oldID, _ := sealed.KeyID()
	if _, err := promoted.Destroy(Sealing, oldID); !fault.Is(err, fault.CodeConflict) {
		t.Errorf("an enabled key was destroyed: %v", err)
	}
	disabled, err := promoted.Disable(Sealing, oldID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := disabled.Open(sealed, place); err == nil {
		t.Error("a disabled key opens")
	}
	enabled, err := disabled.Enable(Sealing, oldID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := enabled.Open(sealed, place); err != nil {
		t.Error(err)
	}
	destroyed, err := disabled.Destroy(Sealing, oldID)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(destroyed.Keys()); n != 2 {
		t.Errorf("%d keys are left", n)
	}
	if _, err := promoted.Disable(Sealing, id); err == nil {
		t.Error("the key in use was disabled")
	}
	if _, _, err := old.AddKey("other"); err == nil {
		t.Error("a keyset without purpose")
	}
}

func TestAKeysetFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keyset.json")
	if _, err := Load(path); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	k, err := LoadOrCreate(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o", info.Mode())
	}
	sealed, _ := k.Seal(New(text), place)
	again, err := LoadOrCreate(path)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := again.Open(sealed, place); err != nil || v.Reveal() != text {
		t.Error(err)
	}
	if _, err := Create(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a keyset was overwritten: %v", err)
	}
	rotated, _, err := again.AddKey(Chain)
	if err != nil {
		t.Fatal(err)
	}
	if err := rotated.Save(path); err != nil {
		t.Fatal(err)
	}
	final, err := Load(path)
	if err != nil || len(final.Keys()) != 3 {
		t.Fatal(final, err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o", info.Mode())
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".keyset-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAKeysetFileThatCannotBeTrustedIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "keyset.json")
	if _, err := Create(path); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o660, 0o666, 0o610} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	for name, content := range map[string]string{
		"empty": "", "text": "hello", "other": `{"format":2}`, "without keys": `{"format":1}`, "bad keys": `{"format":1,"sealing":{"primaryKeyId":1},"chain":{}}`,
	} {
		p := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(p); err == nil {
			t.Errorf("%s was loaded", name)
		}
	}
	if _, err := Load(dir); err == nil {
		t.Error("a folder was loaded")
	}
}

func TestTwoServersThatStartAtOnceShareOneKeyset(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keyset.json")
	const servers = 8
	keys := make(chan *Keyset, servers)
	for range servers {
		go func() {
			k, err := LoadOrCreate(path)
			if err != nil {
				t.Error(err)
			}
			keys <- k
		}()
	}
	first := <-keys
	sealed, err := first.Seal(New(text), place)
	if err != nil {
		t.Fatal(err)
	}
	for range servers - 1 {
		if _, err := (<-keys).Open(sealed, place); err != nil {
			t.Error(err)
		}
	}
}
