// Package nearest finds, for a word that is not known, the known word that was
// probably meant, so that an error can say so.
package nearest

import "strings"

// maxLength bounds the words that are compared, in bytes: longer ones are no
// slips of the pen.
const maxLength = 64

// Word returns the known word that is closest to word: equal but for case and
// separators, or within two edits (one for short words). It returns "" where
// none is close.
func Word(word string, known []string) string {
	if word == "" || len(word) > maxLength {
		return ""
	}
	best, bestDistance := "", 3
	if len(word) < 5 {
		bestDistance = 2
	}
	folded := fold(word)
	for _, k := range known {
		if len(k) > maxLength {
			continue
		}
		if fold(k) == folded {
			return k
		}
		if d := distance(folded, fold(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// fold drops what people get wrong most: case, and how words are joined.
func fold(s string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "", ".", "").Replace(strings.ToLower(s))
}

// distance is the number of bytes to insert, remove or change.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := diagonal
			if a[i-1] != b[j-1] {
				change++
			}
			diagonal = row[j]
			row[j] = min(change, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
