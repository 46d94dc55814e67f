// Package archtest holds the architecture as a test: which package may import which, what each package says of itself, and which words
// are not used for our own concepts. It owns no code that runs in the product.
package archtest
