package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// hashBytes is how much of a plan's SHA-256 names it: 12 hexadecimal digits are
// short enough to type, and an approval is compared with a plan made anew, never
// looked up among many.
const hashBytes = 6

// Hash names the held removals of a group, so that an operator can approve that
// very plan (I9). Equal held keys in the same group give an equal hash, in any
// run and on any machine: what is known of the pods behind them, which fades with
// time and differs between those who look, has no part in it.
func (c Changes) Hash(group string) string {
	if len(c.Held) == 0 {
		return ""
	}
	h := sha256.New()
	field := func(s string) { _, _ = io.WriteString(h, s+"\x00") } // a hash never fails to write
	field(group)
	for _, ch := range c.Held {
		field(ch.Key.String())
	}
	return hex.EncodeToString(h.Sum(nil)[:hashBytes])
}
