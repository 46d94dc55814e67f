package credential

import (
	"io"
	"sync"
)

// search finds many patterns in one pass (Wu and Manber): a table over three-byte blocks says how far it is safe to jump, so that
// long answers cost little. All patterns are compared at a block that could end the shortest of them.
type search struct {
	patterns []string // longest first
	window   int      // length of the shortest pattern
	block    int
	shift    [4096]uint16
}

func newSearch(patterns []string) *search {
	s := &search{patterns: patterns}
	if len(patterns) == 0 {
		return s
	}
	s.window = len(patterns[len(patterns)-1])
	s.block = min(3, s.window)
	for i := range s.shift {
		s.shift[i] = uint16(min(s.window-s.block+1, 1<<16-1))
	}
	for _, p := range patterns {
		for end := s.block; end <= s.window; end++ {
			h := hash(p[end-s.block : end])
			s.shift[h] = min(s.shift[h], uint16(s.window-end))
		}
	}
	return s
}

func hash[T string | []byte](b T) uint32 {
	var h uint32
	for i := range len(b) {
		h = h*31*7 + uint32(b[i])
	}
	return (h ^ h>>12) & 4095
}

func (s *search) empty() bool { return s == nil || len(s.patterns) == 0 }

// replace appends src to dst with every pattern replaced. Unless last, it leaves the rest in which a pattern may have begun and
// says how much of src it used.
func (s *search) replace(dst, src []byte, last bool) (out []byte, used int) {
	if s.empty() {
		return append(dst, src...), len(src)
	}
	from := 0 // everything before is copied
	for end := s.window; end <= len(src); {
		if jump := int(s.shift[hash(src[end-s.block:end])]); jump > 0 {
			end += jump
			continue
		}
		start := end - s.window
		n, open := s.at(src[start:], last)
		switch {
		case open:
			return append(dst, src[from:start]...), start
		case n > 0:
			dst = append(append(dst, src[from:start]...), Marker...)
			from, end = start+n, start+n+s.window
		default:
			end++
		}
	}
	if last {
		return append(dst, src[from:]...), len(src)
	}
	keep := s.begun(src, max(from, len(src)-s.window+1))
	return append(dst, src[from:keep]...), keep
}

// untouched reports whether replace would leave src as it is, and hold none of it back.
func (s *search) untouched(src []byte, last bool) bool {
	for end := s.window; end <= len(src); {
		if jump := int(s.shift[hash(src[end-s.block:end])]); jump > 0 {
			end += jump
			continue
		}
		if n, open := s.at(src[end-s.window:], last); n > 0 || open {
			return false
		}
		end++
	}
	return last || s.begun(src, max(0, len(src)-s.window+1)) == len(src)
}

// begun is the first place from which the rest of src could be the beginning of a pattern. Nothing else is held back: an event
// stream that stays open after its answer must deliver the answer.
func (s *search) begun(src []byte, from int) int {
	for ; from < len(src); from++ {
		rest := src[from:]
		for _, p := range s.patterns {
			if len(rest) < len(p) && p[0] == rest[0] && p[:len(rest)] == string(rest) {
				return from
			}
		}
	}
	return from
}

// at returns the length of the longest pattern at the start of b. Open says that a longer one may be there once more has come.
func (s *search) at(b []byte, last bool) (n int, open bool) {
	for _, p := range s.patterns {
		if len(b) >= len(p) {
			if string(b[:len(p)]) == p {
				return len(p), false
			}
		} else if !last && p[:len(b)] == string(b) {
			return 0, true
		}
	}
	return 0, false
}

type redactingReader struct {
	search *search
	src    io.Reader
	in     []byte // read, not yet searched
	out    []byte // searched, not yet delivered
	sent   int
	err    error
	memory *memory // of in and out; nil once it was given back
}

// memory is what one answer passes through. An answer is small and its memory is not, so that it serves one answer after the other. It
// is cleared in between, since an upstream may have reflected a secret into it.
type memory struct{ in, out []byte }

var memories = sync.Pool{New: func() any { return &memory{in: make([]byte, 0, 8<<10)} }}

// keptMemory is the most worth keeping, in bytes.
const keptMemory = 256 << 10

func newRedactingReader(s *search, src io.Reader) *redactingReader {
	m := memories.Get().(*memory)
	return &redactingReader{search: s, src: src, in: m.in[:0], out: m.out[:0], memory: m}
}

// over gives the memory back once everything was delivered. A reader that is left before its end keeps it to itself.
func (r *redactingReader) over() {
	if r.memory != nil && cap(r.in)+cap(r.out) <= keptMemory {
		clear(r.in[:cap(r.in)])
		r.memory.in, r.memory.out = r.in, r.out
		memories.Put(r.memory)
	}
	r.memory, r.in, r.out, r.sent = nil, nil, nil, 0
}

// Read implements io.Reader.
func (r *redactingReader) Read(p []byte) (int, error) {
	if len(p) >= cap(r.in) && len(r.in) == 0 && r.sent == len(r.out) && r.err == nil {
		if n, whole := r.direct(p); whole {
			return n, nil
		}
	}
	for r.sent == len(r.out) {
		if r.err != nil {
			r.over()
			return 0, r.err
		}
		r.fill()
	}
	n := copy(p, r.out[r.sent:])
	r.sent += n
	return n, nil
}

// direct reads straight into the caller's memory, where nearly every answer can stay: no secret is in it and none begins at its end.
// Else it is taken back and goes the long way.
func (r *redactingReader) direct(p []byte) (n int, whole bool) {
	n, r.err = r.src.Read(p)
	if n > 0 && r.search.untouched(p[:n], r.err != nil) {
		return n, true
	}
	r.in = append(r.in, p[:n]...)
	clear(p[:n])
	r.sift()
	return 0, false
}

func (r *redactingReader) fill() {
	if cap(r.in)-len(r.in) < 4<<10 {
		r.in = append(make([]byte, 0, 2*cap(r.in)), r.in...)
	}
	n, err := r.src.Read(r.in[len(r.in):cap(r.in)])
	r.in, r.err = r.in[:len(r.in)+n], err
	r.sift()
}

// sift replaces what it finds in all that was read, as far as that can be told.
func (r *redactingReader) sift() {
	out, used := r.search.replace(r.out[:0], r.in, r.err != nil)
	r.out, r.sent = out, 0
	r.in = r.in[:copy(r.in, r.in[used:])]
}
