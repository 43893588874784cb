package nearest

import "testing"

func TestWord(t *testing.T) {
	known := []string{"minTargets", "mode", "port", "equals-ignore-case", "prefix"}
	tests := map[string]string{
		"minTarget":        "minTargets",
		"MINTARGETS":       "minTargets",
		"equalsIgnoreCase": "equals-ignore-case",
		"Prefix":           "prefix",
		"prefx":            "prefix",
		"prot":             "", // two edits of a short word
		"prt":              "port",
		"nope":             "",
		"":                 "",
	}
	for word, want := range tests {
		if got := Word(word, known); got != want {
			t.Errorf("Word(%q) = %q, want %q", word, got, want)
		}
	}
}
