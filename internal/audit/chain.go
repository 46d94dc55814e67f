package audit

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"
)

// Signer makes the chain's keyed MAC. secret.Keyset implements it.
type Signer interface {
	MAC(data []byte) ([]byte, error)
	Verify(mac, data []byte) bool
}

// encode is the byte form that is signed: the previous MAC, the position, and every field with its length in front, so that no two
// different entries have the same bytes.
func encode(prev []byte, r Recorded) []byte {
	b := make([]byte, 0, 1<<10) // more than most take
	b = put(b, "countersign audit v1")
	b = put(b, prev)
	var small [64]byte
	b = put(b, strconv.AppendInt(append(strconv.AppendInt(small[:0], r.Seq, 10), ' '), r.ID, 10))
	b = put(b, r.At.UTC().Truncate(time.Microsecond).AppendFormat(small[:0], time.RFC3339Nano))
	for _, s := range [...]string{string(r.Org), string(r.Actor.Kind), r.Actor.ID, r.Actor.Name, string(r.Event), r.Object.Kind, r.Object.ID, r.Digest} {
		b = put(b, s)
	}
	for _, f := range r.Facts {
		b = put(put(b, f.Name), f.Value)
	}
	return b
}

// put appends a field behind its length.
func put[T string | []byte](b []byte, field T) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(field))), field...)
}

// Seal returns the MAC that chains r (with its Seq set) after the entry whose MAC is prev; prev is empty for the first.
func Seal(s Signer, prev []byte, r Recorded) ([]byte, error) { return s.MAC(encode(prev, r)) }

// Link is one position of the stored chain: the seal and the entry it seals, which is nil when the entry is gone.
type Link struct {
	Seq     int64
	EntryID int64
	MAC     []byte
	Entry   *Recorded
}

// Break is the first thing wrong with a chain.
type Break struct {
	Seq     int64
	EntryID int64
	What    string
}

// Error is the break as a sentence.
func (b *Break) Error() string {
	return fmt.Sprintf("the chain breaks at position %d (entry %d): %s", b.Seq, b.EntryID, b.What)
}

// Checkpoint is a statement about a chain that can be kept elsewhere: at that time it had Seq entries and ended in MAC.
type Checkpoint struct {
	Org string    `json:"org"`
	Seq int64     `json:"seq"`
	MAC []byte    `json:"mac"`
	At  time.Time `json:"at"`
}

// Verifier walks a chain from its first link and remembers where it stands.
type Verifier struct {
	signer Signer
	seq    int64
	prev   []byte
}

// NewVerifier starts before the first entry.
func NewVerifier(s Signer) *Verifier { return &Verifier{signer: s} }

// Next checks the next link. A gap, a missing entry, or a MAC that does not fit is a *Break naming the position.
func (v *Verifier) Next(l Link) error {
	if l.Seq != v.seq+1 {
		return &Break{Seq: v.seq + 1, EntryID: l.EntryID, What: "one or more entries before this one were deleted with their seals."}
	}
	if l.Entry == nil {
		return &Break{Seq: l.Seq, EntryID: l.EntryID, What: "the entry was deleted."}
	}
	r := *l.Entry
	r.Seq = l.Seq
	if !v.signer.Verify(l.MAC, encode(v.prev, r)) {
		return &Break{Seq: l.Seq, EntryID: l.EntryID, What: "the entry or its seal was edited."}
	}
	v.seq, v.prev = l.Seq, l.MAC
	return nil
}

// End checks that the chain reaches as far as a checkpoint says, and through the same MAC if it ends there.
func (v *Verifier) End(c Checkpoint) error {
	if v.seq < c.Seq {
		return &Break{Seq: v.seq + 1, What: fmt.Sprintf("the chain was truncated: a checkpoint of %s knows %d entries, only %d are left.", c.At.UTC().Format(time.RFC3339), c.Seq, v.seq)}
	}
	if v.seq == c.Seq && !bytes.Equal(v.prev, c.MAC) {
		return &Break{Seq: v.seq, What: "the chain's last seal is not the one a checkpoint recorded."}
	}
	return nil
}

// Length is the number of links checked so far.
func (v *Verifier) Length() int64 { return v.seq }
