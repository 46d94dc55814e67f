package ui

import (
	"strconv"
	"strings"
	"unicode"
)

// Letters of other scripts that read as Latin ones in the faces people use. A letter counts only where a word mixes scripts, or
// where a whole word is made of them in a text that is otherwise Latin: “сору” in an English sentence.
const (
	cyrillicLike = "аеорсухікјѕԁһӏѵԛԝьпгтмвнАВЕЅІЈКМНОРСТХУҮԌԚԜЬԁⅼ"
	greekLike    = "αγικνορτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳϹϺ"
)

// innocentWithLatin are scripts whose letters stand beside Latin ones in honest text and read as none of them.
var innocentWithLatin = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo, unicode.Thai, unicode.Hebrew, unicode.Arabic, unicode.Devanagari}

// confusable reports whether a letter of a non-Latin script can be taken for a Latin one.
func confusable(r rune) bool {
	switch {
	case unicode.Is(unicode.Cyrillic, r):
		return strings.ContainsRune(cyrillicLike, r)
	case unicode.Is(unicode.Greek, r):
		return strings.ContainsRune(greekLike, r)
	}
	return !unicode.In(r, innocentWithLatin...)
}

// foreignDigit reports whether a character is a digit of another script: the Bengali four is drawn like an 8.
func foreignDigit(r rune) bool { return r > 0x7f && unicode.Is(unicode.Nd, r) }

// originOf says what a marked character really is: its value as a digit, or its script.
func originOf(r rune) string {
	if !foreignDigit(r) {
		return scriptOf(r)
	}
	value := 0
	for unicode.Is(unicode.Nd, r-1) { // digits of a script stand together, from 0 to 9
		r, value = r-1, value+1
	}
	return "digit " + strconv.Itoa(value%10)
}

// scriptOf names the script of a letter for the mark.
func scriptOf(r rune) string {
	for _, name := range []string{"Cyrillic", "Greek", "Latin", "Armenian", "Cherokee", "Coptic", "Georgian", "Lisu", "Deseret", "Tifinagh", "Canadian_Aboriginal", "Osage", "Vai"} {
		if unicode.Is(unicode.Scripts[name], r) {
			return strings.ReplaceAll(name, "_", " ")
		}
	}
	return "other script"
}

func isLatin(r rune) bool { return r < 0x80 || unicode.Is(unicode.Latin, r) }

// isLetter leaves out letters that belong to no script, such as the micro sign: they stand in honest units.
func isLetter(r rune) bool {
	return unicode.IsLetter(r) && !unicode.In(r, unicode.Common, unicode.Inherited)
}

// inWord reports whether a character continues a word. What hides does, too: a zero-width space must not split a word for us
// that stays one word for the reader.
func inWord(r rune) bool {
	if r == '\n' || r == '\t' || r == ' ' {
		return false
	}
	if unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) || r == '_' {
		return true
	}
	s, _ := judge(r)
	return s == hides
}

// lookAlikes returns the indexes of the letters to mark in runes.
func lookAlikes(runes []rune) map[int]bool {
	marks := map[int]bool{}
	var whole [][2]int // words made of nothing but foreign look-alikes
	honest := false    // a foreign word that cannot pass for Latin: then foreign words are simply the language
	latin, anyForeign := false, false
	for i := 0; i < len(runes); {
		if !inWord(runes[i]) {
			i++
			continue
		}
		j := i
		for j < len(runes) && inWord(runes[j]) {
			j++
		}
		w := weigh(runes[i:j])
		anyForeign = anyForeign || w.foreign > 0
		if w.latin > 0 || w.ascii > 0 {
			markDigits(runes, i, j, marks)
		}
		switch {
		case w.latin > 0 && w.foreign > 0:
			markMinority(runes, i, j, w, marks)
		case w.foreign > 0 && w.foreign == w.alike:
			whole = append(whole, [2]int{i, j})
		case w.foreign > 0:
			honest = true
		}
		latin = latin || w.latin > 0
		i = j
	}
	if latin && !honest {
		for _, w := range whole {
			markMinority(runes, w[0], w[1], word{latin: 1}, marks)
		}
	}
	if latin && !anyForeign {
		markDigits(runes, 0, len(runes), marks)
	}
	return marks
}

// word counts the letters of one word by what they are.
type word struct{ latin, foreign, alike, ascii int } // ascii: digits

func weigh(runes []rune) word {
	var w word
	for _, r := range runes {
		switch {
		case r >= '0' && r <= '9':
			w.ascii++
		case !isLetter(r):
		case isLatin(r):
			w.latin++
		default:
			w.foreign++
			if confusable(r) {
				w.alike++
			}
		}
	}
	return w
}

// markDigits marks digits of other scripts among Latin letters and our own digits.
func markDigits(runes []rune, from, to int, marks map[int]bool) {
	for i := from; i < to; i++ {
		if foreignDigit(runes[i]) {
			marks[i] = true
		}
	}
}

// markMinority marks the letters of the script that is rarer in the word; of two equal ones the foreign. Foreign letters are
// marked only if they can be mistaken, so that “5 µm”, “Δx” and “λ-calculus” stay clean.
func markMinority(runes []rune, from, to int, w word, marks map[int]bool) {
	foreignIsRare := w.foreign <= w.latin
	for i := from; i < to; i++ {
		r := runes[i]
		if !isLetter(r) {
			continue
		}
		if foreignIsRare && !isLatin(r) && confusable(r) {
			marks[i] = true
		}
		if !foreignIsRare && w.alike > 0 && isLatin(r) {
			marks[i] = true
		}
	}
}
