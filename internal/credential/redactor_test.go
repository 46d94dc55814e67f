package credential

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"countersign/internal/secret"
)

// odd holds every character that some encoding treats in a special way.
const odd = `s3cr/t+"k&y\<%=>'~ 1`

func encodings(s string) map[string]string {
	quoted, _ := json.Marshal(s)
	out := map[string]string{
		"plain": s, "in a sentence": "the key " + s + " was refused", "JSON": string(quoted), "JSON with slashes": strings.ReplaceAll(string(quoted), "/", `\/`),
		"query": url.QueryEscape(s), "path": url.PathEscape(s), "html": html.EscapeString(s), "hex": hex.EncodeToString([]byte(s)),
		"HEX": strings.ToUpper(hex.EncodeToString([]byte(s))), "every byte": everyByte(s, "%%%02X"), "unicode escapes": everyByte(s, `\u%04x`),
	}
	for i := range 6 {
		text := strings.Repeat("u", i) + ":" + s + strings.Repeat("!", i)
		out[fmt.Sprint("base64 ", i)] = base64.StdEncoding.EncodeToString([]byte(text))
		out[fmt.Sprint("base64url ", i)] = base64.RawURLEncoding.EncodeToString([]byte(text))
	}
	return out
}

func TestASecretIsFoundInEveryEncoding(t *testing.T) {
	for _, s := range []string{odd, token, "0123456789abcdef"} {
		r := NewRedactor(secret.New("another-credential-entirely"), secret.New(s))
		for name, text := range encodings(s) {
			if got := string(r.Bytes([]byte(text))); !strings.Contains(got, Marker) || strings.Contains(got, s) {
				t.Errorf("%s of %q: %q", name, s, got)
			}
		}
	}
}

func TestBase64LeavesNothingToDecode(t *testing.T) {
	r := NewRedactor(secret.New(token))
	for i := range 9 {
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("u", i) + ":" + token + strings.Repeat("!", i)))
		left := strings.Split(string(r.Bytes([]byte(text))), Marker)
		for _, part := range left {
			for cut := range 4 {
				decoded, _ := base64.RawStdEncoding.DecodeString(strings.TrimRight(part[min(cut, len(part)):], "="))
				if bytes.Contains(decoded, []byte(token[4:len(token)-4])) {
					t.Errorf("shift %d: %q holds %q", i, part, decoded)
				}
			}
		}
	}
}

func TestOrdinaryTextIsLeftAlone(t *testing.T) {
	r := NewRedactor(secret.New(token))
	text := strings.Repeat("The quick brown fox "+token[:len(token)-1]+" jumps. ", 500)
	if got := r.Bytes([]byte(text)); string(got) != text {
		t.Error("text without the secret was changed")
	}
	for _, r := range []*Redactor{NewRedactor(), NewRedactor(secret.Value{}), {}} {
		if got := r.Bytes([]byte(text)); string(got) != text {
			t.Error("a redactor without secrets changes text")
		}
		if b, err := io.ReadAll(r.Reader(strings.NewReader(text))); string(b) != text || err != nil {
			t.Error("a redactor without secrets changes a stream")
		}
	}
}

func TestAStreamIsRedactedWhereverItIsCut(t *testing.T) {
	r := NewRedactor(secret.New(token), secret.New(token+"-longer-than-the-first"))
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		var src, want strings.Builder
		for range rnd.IntN(40) {
			switch rnd.IntN(5) {
			case 0:
				src.WriteString(token)
				want.WriteString(Marker)
				src.WriteByte(';')
				want.WriteByte(';')
			case 1:
				src.WriteString(token + "-longer-than-the-first")
				want.WriteString(Marker)
			case 2:
				part := token[:rnd.IntN(len(token))] + "|"
				src.WriteString(part)
				want.WriteString(part)
			default:
				filler := strings.Repeat("abc xyz ", rnd.IntN(600))
				src.WriteString(filler)
				want.WriteString(filler)
			}
		}
		whole := string(r.Bytes([]byte(src.String())))
		if whole != want.String() {
			t.Fatalf("whole:\n got %q\nwant %q", whole, want.String())
		}
		for _, cut := range []io.Reader{
			strings.NewReader(src.String()), iotest.OneByteReader(strings.NewReader(src.String())), iotest.HalfReader(strings.NewReader(src.String())),
			iotest.DataErrReader(strings.NewReader(src.String())),
		} {
			got, err := io.ReadAll(r.Reader(cut))
			if err != nil || string(got) != want.String() {
				t.Fatalf("%T differs from the whole: %v", cut, err)
			}
		}
	}
}

func TestAnOpenStreamDeliversAllThatCannotBeASecret(t *testing.T) {
	r := NewRedactor(secret.New(token))
	src, feed := io.Pipe()
	defer feed.Close()
	out := r.Reader(src)
	for _, text := range []string{"data: {}\n\n", "brief", "a longer one, in which " + token[:9] + " is only a part\n"} {
		go func() { _, _ = io.WriteString(feed, text) }()
		got := make([]byte, len(text))
		if _, err := io.ReadFull(out, got); err != nil || string(got) != text {
			t.Fatalf("%q %v", got, err)
		}
	}
}

func TestAStreamsErrorArrivesAfterItsBytes(t *testing.T) {
	r := NewRedactor(secret.New(token))
	broken := io.ErrUnexpectedEOF
	got, err := io.ReadAll(r.Reader(io.MultiReader(strings.NewReader("a "+token+" "+token[:5]), iotest.ErrReader(broken))))
	if err != broken || string(got) != "a "+Marker+" "+token[:5] {
		t.Errorf("%q %v", got, err)
	}
}

func BenchmarkReader64KB(b *testing.B) {
	r := NewRedactor(secret.New(token))
	src := []byte(strings.Repeat(`{"id":"c_1001","name":"Amara Okafor","email":"amara@northwind.example"},`, 64<<10/72))
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if _, err := io.Copy(io.Discard, r.Reader(bytes.NewReader(src))); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzRedactor(f *testing.F) {
	f.Add("secret-value", "x secret-value y")
	f.Add("aaaa", "aaaaaaa")
	f.Fuzz(func(t *testing.T, s, text string) {
		if len(s) < 4 || strings.Contains(Marker, s) || strings.Contains(s, "[") || strings.Contains(s, "]") {
			return
		}
		r := NewRedactor(secret.New(s))
		whole := r.Bytes([]byte(text))
		if bytes.Contains(whole, []byte(s)) && !strings.Contains(s, " ") {
			t.Fatalf("%q still holds %q", whole, s)
		}
		stream, err := io.ReadAll(r.Reader(iotest.OneByteReader(strings.NewReader(text))))
		if err != nil || !bytes.Equal(stream, whole) {
			t.Fatalf("stream %q, whole %q, %v", stream, whole, err)
		}
	})
}
