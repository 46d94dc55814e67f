package credential

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"countersign/internal/secret"
)

// pieces gives a text in pieces of any size, the last with or before the end.
type pieces struct {
	rest string
	rnd  *rand.Rand
	last bool
}

func (p *pieces) Read(b []byte) (int, error) {
	n := copy(b, p.rest[:min(len(p.rest), 1+p.rnd.IntN(3000))])
	if p.rest = p.rest[n:]; p.rest == "" && (n == 0 || p.last) {
		return n, io.EOF
	}
	return n, nil
}

// TestLargeReadsAreRedactedToo reads into memory large enough to be read into directly, and looks also at what lies behind what was given.
func TestLargeReadsAreRedactedToo(t *testing.T) {
	r := NewRedactor(secret.New(token))
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		var text strings.Builder
		for range rnd.IntN(12) {
			text.WriteString([]string{token, token[:rnd.IntN(len(token))], strings.Repeat("abc xyz ", rnd.IntN(400)), token[:len(token)-1] + "|"}[rnd.IntN(4)])
		}
		want := string(r.Bytes([]byte(text.String())))
		in := r.Reader(&pieces{text.String(), rnd, rnd.IntN(2) == 0})
		var got bytes.Buffer
		memory := make([]byte, 16<<10)
		for {
			clear(memory)
			n, err := in.Read(memory)
			got.Write(memory[:n])
			if bytes.Contains(memory, []byte(token)) || len(bytes.TrimLeft(memory[n:], "\x00")) > 0 {
				t.Fatal("the caller's memory holds more than was given")
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if got.String() != want {
			t.Fatalf("got %q\nwant %q", got.String(), want)
		}
	}
}
