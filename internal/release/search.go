package release

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"countersign/internal/manifest"
	"countersign/internal/registry"
)

// Query is what the catalog page asks. Every empty part matches everything.
type Query struct {
	Text     string // words: "refund a customer"
	Category manifest.Category
	Kind     registry.Kind
	Auth     manifest.Contract
}

// place is where a word of a manifest stands, best first.
type place int

const (
	inName place = iota
	inCategory
	inSummary
	inTools
	inText
	nowhere
)

// indexed is the words of one manifest in order, each with the best place it stands in. In order, what begins with a word stands
// side by side, so that a question of a thousand manifests is answered without looking at their other words.
type indexed []indexedWord

type indexedWord struct {
	text string
	at   place
}

// maxWords bounds one question.
const maxWords = 16

// Search lists the manifests that hold every word of the question, best first, then by name; when no manifest holds every word,
// those that hold most of them. A word matches where a word of the manifest begins with it. It reads memory only.
func (r Release) Search(q Query) []manifest.Manifest {
	wanted := slices.DeleteFunc(wordsOf(q.Text), func(w string) bool { return filler[w] })
	wanted = wanted[:min(len(wanted), maxWords)]
	all := r.all()
	type hit struct{ at, missing, rank int }
	var hits []hit
	fewest := len(wanted)
	for i, m := range all.manifests {
		if !q.allows(m) {
			continue
		}
		missing, rank := all.index[i].rank(wanted)
		if len(wanted) > 0 && missing == len(wanted) {
			continue
		}
		hits = append(hits, hit{i, missing, rank})
		fewest = min(fewest, missing)
	}
	hits = slices.DeleteFunc(hits, func(h hit) bool { return h.missing > fewest })
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(a.rank, b.rank) })
	out := make([]manifest.Manifest, len(hits))
	for i, h := range hits {
		out[i] = all.manifests[h.at]
	}
	return out
}

func (q Query) allows(m manifest.Manifest) bool {
	if q.Category != "" && m.Category != q.Category || q.Kind != "" && m.Kind != q.Kind {
		return false
	}
	_, ok := m.Contract(q.Auth)
	return q.Auth == "" || ok
}

// rank sums the places of the words found, a whole word before a beginning; lower is better.
func (x indexed) rank(wanted []string) (missing, sum int) {
	for _, w := range wanted {
		best := 2 * int(nowhere)
		first, _ := slices.BinarySearchFunc(x, w, func(e indexedWord, w string) int { return strings.Compare(e.text, w) })
		for _, e := range x[first:] {
			if !strings.HasPrefix(e.text, w) {
				break
			}
			d := 2 * int(e.at)
			if e.text != w {
				d++
			}
			best = min(best, d)
		}
		if best == 2*int(nowhere) {
			missing++
		}
		sum += best
	}
	return missing, sum
}

// filler is what people type around the words that matter.
var filler = map[string]bool{"a": true, "an": true, "the": true, "to": true, "of": true, "in": true, "on": true, "and": true, "or": true, "for": true, "with": true, "my": true, "our": true, "from": true}

func indexAll(ms []manifest.Manifest) []indexed {
	out := make([]indexed, len(ms))
	for i, m := range ms {
		x := words{}
		x.add(inName, m.Name, m.Key)
		x.add(inCategory, m.Category.Label(), string(m.Category))
		x.add(inSummary, m.Summary)
		for _, t := range m.Tools {
			x.add(inTools, t.Name, t.Sentence)
		}
		x.add(inText, m.Description)
		out[i] = x.inOrder()
	}
	return out
}

// words is an index while it is made.
type words map[string]place

func (x words) add(p place, texts ...string) {
	for _, t := range texts {
		for _, w := range wordsOf(t) {
			if old, ok := x[w]; !ok || p < old {
				x[w] = p
			}
		}
	}
}

func (x words) inOrder() indexed {
	out := make(indexed, 0, len(x))
	for w, p := range x {
		out = append(out, indexedWord{w, p})
	}
	slices.SortFunc(out, func(a, b indexedWord) int { return strings.Compare(a.text, b.text) })
	return out
}

// wordsOf splits a text into lower-case words; a plural s is dropped so that "refunds" finds a refund.
func wordsOf(s string) []string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, w := range words {
		if len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
			words[i] = strings.TrimSuffix(w, "s")
		}
	}
	return words
}
