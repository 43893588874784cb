package eventpattern

import (
	"bytes"
	"math"
	"strconv"
)

// number is the value of a JSON number. exact says that the text is, but for
// zeros and the place of the point, the short decimal form of the double: only
// such numbers take part in comparisons by value.
type number struct {
	value float64
	exact bool
}

const notExact = "%s is not the short decimal form of a double: use a number of at most 15 digits"

func parseNumber(s string) number {
	if n, ok := smallInteger(s); ok {
		return number{n, true}
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(v, 0) {
		return number{}
	}
	given, ok := decimalOf([]byte(s))
	if !ok {
		return number{value: v}
	}
	short, _ := decimalOf(strconv.AppendFloat(make([]byte, 0, 32), v, 'e', -1, 64))
	return number{v + 0, given == short} // -0 + 0 is 0
}

// smallInteger reads what most numbers are: digits alone, few enough to be exact.
func smallInteger(s string) (float64, bool) {
	if len(s) > 15 {
		return 0, false
	}
	n := 0
	for i := 0; i < len(s); i++ {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int(c)
	}
	return float64(n), true
}

// decimal is a number as digits and exponent: 0.d1d2d3… × 10^exponent, without
// leading or trailing zeros. Zero has no digits.
type decimal struct {
	digits   [maxDigits]byte
	n        int
	exponent int
	negative bool
}

// maxDigits is more than the 17 digits of the longest short form of a double.
const maxDigits = 20

// decimalOf reads a JSON number. It reports false for one with more digits than
// any short form has.
func decimalOf(s []byte) (d decimal, ok bool) {
	mantissa, exp := s, 0
	if i := bytes.IndexAny(s, "eE"); i >= 0 {
		mantissa = s[:i]
		var err error
		if exp, err = strconv.Atoi(string(s[i+1:])); err != nil {
			return d, false
		}
	}
	if mantissa[0] == '-' {
		d.negative, mantissa = true, mantissa[1:]
	}
	point, zeros := false, 0 // zeros not yet known to be trailing ones
	for _, c := range mantissa {
		switch {
		case c == '.':
			point = true
			continue
		case c == '0' && d.n == 0: // leading
			if point {
				d.exponent--
			}
			continue
		case c == '0':
			zeros++
		case d.n+zeros+1 > maxDigits:
			return d, false
		default:
			for ; zeros > 0; zeros-- {
				d.digits[d.n] = '0'
				d.n++
			}
			d.digits[d.n] = c
			d.n++
		}
		if !point {
			d.exponent++
		}
	}
	if d.n == 0 {
		return decimal{}, true
	}
	d.exponent += exp
	return d, true
}
