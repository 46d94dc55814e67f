package secret

import "math"

// Entropy is the Shannon entropy of a word, in bits a character: English sits below 3 over such lengths of repeated letters, random
// hexadecimal near 3.7, random base64 above 4.
func Entropy(word string) float64 {
	counts, runes := map[rune]float64{}, 0.0
	for _, r := range word {
		counts[r]++
		runes++
	}
	var h float64
	for _, n := range counts {
		p := n / runes
		h -= p * math.Log2(p)
	}
	return h
}
