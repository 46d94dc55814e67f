package gitgateway

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's own checksum of a pack
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strconv"

	"countersign/internal/fault"
)

// PackLimits bound one pack.
type PackLimits struct {
	Bytes   int64
	Objects uint32
}

// DefaultPackLimits hold what a branch of ordinary work needs a hundred times over.
var DefaultPackLimits = PackLimits{Bytes: 100 << 20, Objects: 100_000}

// Pack is a pack as it was received.
type Pack struct {
	Digest  string // "sha256:…" of its bytes
	Bytes   int64
	Objects uint32
}

const (
	packHeader  = 12
	packTrailer = sha1.Size
)

// Receive copies a pack to dst and judges its frame: version 2, within the limits, whole, and nothing after its trailer. What is inside is
// judged by the quarantine.
func (l PackLimits) Receive(dst io.Writer, src io.Reader) (Pack, error) {
	var head [packHeader]byte
	if _, err := io.ReadFull(src, head[:]); err != nil {
		return Pack{}, cutOff(err)
	}
	if !bytes.Equal(head[:4], []byte("PACK")) || binary.BigEndian.Uint32(head[4:8]) != 2 {
		return Pack{}, malformed("What follows the list of branches is no pack of version 2.")
	}
	p := Pack{Objects: binary.BigEndian.Uint32(head[8:])}
	if p.Objects > l.Objects {
		return Pack{}, tooLarge("The push holds " + strconv.FormatUint(uint64(p.Objects), 10) + " objects; at most " + strconv.FormatUint(uint64(l.Objects), 10) + " go in one.")
	}
	t := &trailed{sum: sha1.New()} //nolint:gosec // as above
	whole := sha256.New()
	out := io.MultiWriter(dst, whole, t)
	if _, err := out.Write(head[:]); err != nil {
		return Pack{}, err
	}
	n, err := io.Copy(out, io.LimitReader(src, l.Bytes-packHeader+1))
	p.Bytes = n + packHeader
	switch {
	case err != nil:
		return Pack{}, cutOff(err)
	case p.Bytes > l.Bytes:
		return Pack{}, tooLarge("The push is larger than " + strconv.FormatInt(l.Bytes>>20, 10) + " MiB.")
	case !t.holds():
		return Pack{}, malformed("The pack of the push is not whole, or something follows it.")
	}
	p.Digest = "sha256:" + hex.EncodeToString(whole.Sum(nil))
	return p, nil
}

func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return malformed("The push ended before its pack did.").Wrap(err)
	}
	return err
}

func tooLarge(what string) *fault.Error {
	return fault.New(fault.TooLarge, fault.ResultTooLarge, what, "Push fewer commits at once, and keep large files out of the history.")
}

// trailed sums everything but the last bytes, which must be that sum.
type trailed struct {
	sum  hash.Hash
	last []byte
}

// Write implements io.Writer.
func (t *trailed) Write(b []byte) (int, error) {
	t.last = append(t.last, b...)
	if n := len(t.last) - packTrailer; n > 0 {
		t.sum.Write(t.last[:n])
		t.last = append(t.last[:0], t.last[n:]...)
	}
	return len(b), nil
}

func (t *trailed) holds() bool {
	return len(t.last) == packTrailer && bytes.Equal(t.sum.Sum(nil), t.last)
}
