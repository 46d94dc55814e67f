package ui

import (
	"strconv"
	"time"
)

// Layouts for people; always UTC, and said so where a time stands alone.
const (
	machine  = time.RFC3339
	machineM = "2006-01-02T15:04:05.000Z07:00"
	stamp    = "2 Jan 2006, 15:04 UTC"
	day      = "2 January 2006"
	clock    = "15:04 UTC"
	seconds  = "15:04:05"
	millis   = "15:04:05.000"
)

// Left is a remaining time in words, rounded down so that it never promises more than there is. app.js counts with the same words.
func Left(d time.Duration) string {
	switch {
	case d <= 0:
		return "no time"
	case d < time.Minute:
		return "less than 1 min"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + " h"
	default:
		return strconv.Itoa(int(d/(24*time.Hour))) + " days"
	}
}

// Ago is an elapsed time in words, with the same steps as Left.
func Ago(d time.Duration) string {
	if d < time.Minute {
		return "just now"
	}
	return Left(d) + " ago"
}

// Count is n with the right form of its noun: Count(1, "tool", "tools") is "1 tool". Thousands are grouped.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Grouped(n) + " " + many
}

// Grouped writes n with commas between thousands.
func Grouped(n int) string {
	s := strconv.Itoa(n)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(s) - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Ordinal is 1st, 2nd, 3rd, 4th … 11th, 12th, 13th … 21st.
func Ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}
